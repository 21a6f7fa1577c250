"""A service of the tests' own, run as a process: `python runtime_program.py NAME`."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

from earmark.runtime.component import Environment
from earmark.runtime.main import no_api, run


@dataclass(frozen=True)
class Settings:
    """How it behaves."""

    fail_after: float = 0.0
    stop_takes: float = 0.0
    ready_after: float = 0.0


class Component:
    """Does nothing, for as long as it is told."""

    def __init__(self, settings: Settings, env: Environment) -> None:
        self.name = sys.argv[1]
        self._settings = settings
        self._env = env
        self._up = False

    def register(self, server: Any) -> None:
        """No RPC."""

    async def start(self) -> None:
        self._env.tasks.spawn(self._work(), "work")

    async def _work(self) -> None:
        await self._env.clock.sleep(self._settings.ready_after)
        self._up = True
        if self._settings.fail_after:
            await self._env.clock.sleep(self._settings.fail_after)
            raise RuntimeError("worn out")

    def ready(self) -> bool:
        return self._up

    async def stop(self) -> None:
        await asyncio.sleep(self._settings.stop_takes)
        print("stopped", flush=True)


if __name__ == "__main__":
    run(sys.argv[1], Settings, Component, open_api=no_api, argv=sys.argv[2:])
