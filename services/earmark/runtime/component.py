"""The contract between a service and whatever runs it: a process of its own, or the simulation.

A service package has a `component.py` with `build(settings, env) -> Component`. The same component runs behind a gRPC
server with the system's clock (`__main__.py`), and in one event loop with virtual time (earmark.simulation).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

import grpc
from prometheus_client import CollectorRegistry

from earmark.kube.api import KubeApi
from earmark.kube.clock import Clock

T = TypeVar("T")

AttributeValue = str | int | float | bool | Sequence[str]


class Ids(Protocol):
    """The only source of randomness; seeded in simulations."""

    def uuid(self) -> str:
        """Return a random UUID (version 4) in its text form."""

    def random(self) -> float:
        """Return a float in [0, 1)."""

    def below(self, bound: int) -> int:
        """Return an int in [0, bound)."""


class Tasks(Protocol):
    """The background tasks of one component. They end with it; one that fails ends it."""

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background.

        An exception that leaves it is logged and makes the component fail: its process exits and is restarted.
        """


class Channels(Protocol):
    """gRPC channels to the other services, by service name."""

    def to(self, service: str) -> grpc.aio.Channel:
        """Return the channel to a service ("framework", "dynamicresources", ...), the same one every time.

        The caller makes a generated stub on it. Every call needs a timeout; context and deadlines are carried by
        interceptors. A service that is down answers UNAVAILABLE.
        """


@dataclass(frozen=True, slots=True)
class SpanIdentity:
    """Where a span belongs, for spans whose ids are derived and not taken from the context."""

    trace_id: int
    span_id: int
    parent_span_id: int | None = None


class Telemetry(Protocol):
    """Spans, without the SDK. Names and attributes are declared in earmark.runtime.semconv."""

    def span(self, name: str, attributes: Mapping[str, AttributeValue] | None = None) -> AbstractContextManager[None]:
        """Run a block in a span, a child of the context's."""

    def emit(
        self,
        name: str,
        start: datetime,
        end: datetime,
        attributes: Mapping[str, AttributeValue],
        *,
        identity: SpanIdentity,
        events: Sequence[tuple[str, datetime, Mapping[str, AttributeValue]]] = (),
        links: Sequence[SpanIdentity] = (),
        error: str = "",
    ) -> None:
        """Export a finished span with explicit times and ids."""

    def span_id(self) -> int:
        """Return a fresh span id."""

    def current(self) -> SpanIdentity | None:
        """Return the identity of the context's span, if there is one."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything that a component does not own."""

    clock: Clock
    ids: Ids
    api: KubeApi
    channels: Channels
    tasks: Tasks
    telemetry: Telemetry
    metrics: CollectorRegistry


class Server(Protocol):
    """What generated add_...Servicer_to_server functions register with: a gRPC server or the in-process one."""

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None: ...

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None: ...


class Component(Protocol):
    """A service, composed and not yet running."""

    # As in the configuration: "framework", "dynamicresources", "preemption", "claimcontroller", "nodes".
    name: str

    def register(self, server: Server) -> None:
        """Register the servicers."""

    async def start(self) -> None:
        """Start background tasks (env.tasks) and return; what is not yet ready says so in ready()."""

    def ready(self) -> bool:
        """Whether caches have synced and the service can do its work."""

    async def stop(self) -> None:
        """Finish what has been begun and return. A component that is killed gets no call: its tasks are cancelled."""
