"""Runs that tests of the KEP look into: the gate changed in the middle, requests counted, metrics kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from earmark.apiserver.registry import Registry
from earmark.framework import component as framework
from earmark.framework.settings import FrameworkSettings
from earmark.kube.api import KubeApi, PatchType
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_STRUCT
from earmark.runtime.component import Component, Environment
from earmark.simulation.composition import SCHEDULER_NAMES, builders
from earmark.simulation.hooks import Hooks
from earmark.simulation.passthrough import PassThroughApi
from earmark.simulation.scenario import Scenario, TimelineEntry
from earmark.simulation.stage import Stage

GATE = "DRAPreemption"
GATED = ("framework", "dynamicresources", "preemption")

Wrote = tuple[float, str, str, str, str, str]
"""Seconds, client, verb, kind, name, subresource."""


@dataclass
class Switch:
    """The gate as the operator has set it; services read it when they start."""

    on: bool = True

    def builders(self, scenario: Scenario) -> Mapping[str, Callable[[Environment], Component]]:
        """Return builders that look at the switch when a service is started."""
        made = {
            on: builders(replace(scenario, feature_gates={**scenario.feature_gates, GATE: on})) for on in (True, False)
        }

        def build(name: str) -> Callable[[Environment], Component]:
            return lambda env: made[self.on][name](env)

        return {name: build(name) for name in made[True]}


@dataclass(frozen=True)
class Turn:
    """A step: the operator changes the gate and restarts what reads it."""

    switch: Switch
    on: bool

    key = "turn"

    def describe(self) -> Mapping[str, Any]:
        """Return what the log says."""
        return {"gate": self.on}

    async def run(self, stage: Stage) -> None:
        """Change the gate and restart."""
        self.switch.on = self.on
        for service in GATED:
            await stage.stop(service)
        for service in reversed(GATED):
            await stage.start(service)


def with_turns(scenario: Scenario, switch: Switch, turns: Sequence[tuple[float, bool]]) -> Scenario:
    """Return the scenario with the gate changed at these moments."""
    entries = [*scenario.timeline, *(TimelineEntry(at, Turn(switch, on)) for at, on in turns)]
    ordered = sorted(entries, key=lambda entry: float("inf") if entry.at is None else entry.at)
    return replace(scenario, timeline=tuple(ordered))


@dataclass
class Ledger:
    """Every write of a run, the services' metrics, and what is stored in the end."""

    # Plugins' durations are sampled in production; here all of them are kept.
    all_durations: bool = False
    wrote: list[Wrote] = field(default_factory=list)
    metrics: dict[str, CollectorRegistry] = field(default_factory=dict)
    _registry: Registry | None = None

    def hooks(self) -> Hooks:
        """Return hooks that keep what happens."""
        return Hooks(api=self._api, prepare=self._prepare, builders=self._builders)

    def stored(self, kind: str, name: str, namespace: str = "default") -> Any:
        """Return an object as the API has it."""
        assert self._registry is not None
        return self._registry.lookup(kind, namespace, name)

    def samples(self, service: str, name: str) -> list[Sample]:
        """Return a metric's samples."""
        return [
            sample for family in self.metrics[service].collect() for sample in family.samples if sample.name == name
        ]

    def _prepare(self, registry: Registry) -> None:
        self._registry = registry

    def _api(self, client: str, api: KubeApi, clock: Clock) -> KubeApi:
        begun = clock.monotonic()
        return _Counted(
            api, lambda *what: self.wrote.append((round(clock.monotonic() - begun, 3), client, *what))
        )  # fmt: skip

    def _builders(self, scenario: Scenario) -> Mapping[str, Callable[[Environment], Component]]:
        def keeping(name: str, build: Callable[[Environment], Component]) -> Callable[[Environment], Component]:
            def built(env: Environment) -> Component:
                self.metrics[name] = env.metrics
                return build(env)

            return built

        made = dict(builders(scenario))
        if self.all_durations:
            gates = {GATE: scenario.feature_gates.get(GATE, False)}
            settings = FrameworkSettings(
                scheduler_names=SCHEDULER_NAMES, feature_gates=gates, plugin_metrics_sample_percent=100
            )
            made["framework"] = lambda env: framework.build(settings, env)
        return {name: keeping(name, build) for name, build in made.items()}


class _Counted(PassThroughApi):
    def __init__(self, inner: KubeApi, wrote: Callable[[str, str, str, str], None]) -> None:
        super().__init__(inner)
        self._wrote = wrote

    async def create(self, value: Any) -> Any:
        self._wrote("create", BY_STRUCT[type(value)].kind, value.metadata.name, "")
        return await super().create(value)

    async def patch(
        self,
        kind: Any,
        name: str,
        namespace: str,
        patch: Any,
        *,
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> Any:
        self._wrote("patch", BY_STRUCT[kind].kind, name, subresource)
        return await super().patch(kind, name, namespace, patch, subresource=subresource, patch_type=patch_type)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        self._wrote("create", "Pod", name, "binding")
        await super().bind(namespace, name, uid, node_name)

    async def delete(self, kind: Any, name: str, namespace: str = "", **options: Any) -> None:
        self._wrote("delete", BY_STRUCT[kind].kind, name, "")
        await super().delete(kind, name, namespace, **options)
