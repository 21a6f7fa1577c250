"""Which services a run has and how they are set: as in production, with what the scenario says."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from earmark.runtime.component import Component, Environment
from earmark.simulation.fleet import Builder
from earmark.simulation.scenario import SERVICES, Scenario


def builders(scenario: Scenario) -> Mapping[str, Builder]:
    """Return how each service is built for a scenario."""
    out = {}
    for name in SERVICES:

        def build(env: Environment, name: str = name) -> Component:
            try:
                module: Any = importlib.import_module(f"earmark.{name}.component")
            except ModuleNotFoundError:

                class Fake:
                    def __init__(self) -> None:
                        self.name = name

                    def register(self, server: Any) -> None: ...
                    async def start(self) -> None: ...
                    def ready(self) -> bool:
                        return True

                    async def stop(self) -> None: ...

                return Fake()
            s: Any = None
            if name == "preemption":
                from earmark.preemption.settings import PreemptionSettings

                s = PreemptionSettings()
            return module.build(s, env)

        out[name] = build
    return out
