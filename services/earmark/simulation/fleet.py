"""The services of a run: built as in production, on in-process channels, killed and started like processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from prometheus_client import CollectorRegistry

from earmark.kube.api import KubeApi
from earmark.kube.clock import Clock
from earmark.runtime.component import Component, Environment
from earmark.runtime.environment import in_process_environment
from earmark.runtime.ids import SeededIds
from earmark.runtime.inprocess import InProcessNetwork, InProcessServer
from earmark.runtime.interceptors import ClientInterceptor, ServerInterceptor
from earmark.runtime.tasks import ComponentTasks
from earmark.runtime.telemetry import NoopTelemetry, SpanSink, Tracing

# Seconds, for the simulation's own calls.
CALL_TIMEOUT = 60.0

Builder = Callable[[Environment], Component]
# Server interceptors that look at what a component does.
Guards = Callable[[Component], Sequence["grpc.aio.ServerInterceptor[Any, Any]"]]


@dataclass(frozen=True, slots=True)
class Running:
    """A service that runs."""

    component: Component
    tasks: ComponentTasks
    metrics: CollectorRegistry


class Fleet:
    """Starts and kills services by name."""

    def __init__(
        self,
        builders: Mapping[str, Builder],
        *,
        clock: Clock,
        ids: SeededIds,
        api: Callable[[str], KubeApi],
        on_crash: Callable[[str, str], None],
        guards: Guards = lambda _: (),
        spans: SpanSink | None = None,
    ) -> None:
        """Build services with `builders`; `api` gives each its own client, `on_crash(service, what)` hears of ends.

        spans: gets the finished spans; by default they are only held against their declaration.
        """
        self._spans = spans
        self._builders = builders
        self._clock = clock
        self._ids = ids
        self._api = api
        self._on_crash = on_crash
        self._guards = guards
        self._running: dict[str, Running] = {}
        self._starts: dict[str, int] = {}
        self._network = InProcessNetwork()

    async def start(self, name: str) -> None:
        """Start a service; its randomness depends on the seed, its name and how often it was started."""
        self._starts[name] = self._starts.get(name, 0) + 1
        ids = self._ids.derive(f"{name}/{self._starts[name]}")
        # A name that is not declared ends the run.
        telemetry = Tracing(name, self._clock, ids.derive("spans"), self._spans, strict=True)
        environment, tasks = in_process_environment(
            name,
            network=self._network,
            clock=self._clock,
            ids=ids,
            api=self._api(name),
            telemetry=telemetry,
            on_failure=lambda task, error: self._on_crash(name, f"{task}: {type(error).__name__}: {error}"),
        )
        component = self._builders[name](environment)
        server = InProcessServer([ServerInterceptor(telemetry), *self._guards(component)])
        component.register(server)
        self._running[name] = Running(component, tasks, environment.metrics)
        self._network.serve(name, server)
        await component.start()

    def kill(self, name: str) -> None:
        """End a service as kill -9 does: calls to it break, its tasks are gone with all it knew."""
        self._network.remove(name)
        self._running.pop(name).tasks.kill()

    def running(self, name: str) -> Component | None:
        """Return a service that runs."""
        found = self._running.get(name)
        return found.component if found is not None else None

    @property
    def names(self) -> tuple[str, ...]:
        """The services that run."""
        return tuple(self._running)

    @property
    def metrics(self) -> Sequence[CollectorRegistry]:
        """The metrics of the services that run."""
        return [running.metrics for running in self._running.values()]

    def channel(self, name: str) -> grpc.aio.Channel:
        """Return a channel of the simulation's own to a service."""
        return self._network.channel(name, [ClientInterceptor(NoopTelemetry())])

    def ready(self) -> bool:
        """Whether all services that run can do their work."""
        return all(running.component.ready() for running in self._running.values())
