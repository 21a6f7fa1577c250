"""Spans: ids from our own source, times from our own clock, finished spans handed to an OpenTelemetry processor.

Spans are built as finished values, so that nothing of the SDK's global state (random ids, wall clock, a provider) is in
play. Export is in earmark.runtime.export; names are in earmark.runtime.semconv.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from earmark.kube.clock import Clock
from earmark.runtime import semconv
from earmark.runtime.component import AttributeValue, Ids, SpanIdentity, Telemetry

_log = logging.getLogger(__name__)

_current: ContextVar[SpanIdentity | None] = ContextVar("earmark_span", default=None)

_SCOPE = InstrumentationScope("earmark")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class SpanSink(Protocol):
    """The part of an OpenTelemetry SpanProcessor that takes finished spans."""

    def on_end(self, span: ReadableSpan) -> None: ...


class RpcTelemetry(Telemetry, Protocol):
    """Telemetry, with what the RPC interceptors need."""

    def rpc_span(
        self, method: str, kind: SpanKind, parent: SpanIdentity | None
    ) -> contextlib.AbstractContextManager[None]:
        """Run a block in the span of an RPC; `parent` comes from the metadata (server) or the context (client)."""


class NoopTelemetry:
    """Records nothing."""

    @contextlib.contextmanager
    def span(self, name: str, attributes: Mapping[str, AttributeValue] | None = None) -> Iterator[None]:
        """Run the block."""
        yield

    @contextlib.contextmanager
    def rpc_span(self, method: str, kind: SpanKind, parent: SpanIdentity | None) -> Iterator[None]:
        """Run the block."""
        yield

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
        """Do nothing."""

    def span_id(self) -> int:
        """Return an id that no one will see."""
        return 1

    def current(self) -> SpanIdentity | None:
        """Return None."""
        return None


class Tracing:
    """Keeps the context's span and hands finished ones to a sink. Without a sink, ids still travel (for the logs)."""

    def __init__(
        self, service: str, clock: Clock, ids: Ids, sink: SpanSink | None = None, *, strict: bool = False
    ) -> None:
        """Trace for a service; `strict` raises ValueError for a name that semconv lacks, else it is logged."""
        self._clock = clock
        self._ids = ids
        self._sink = sink
        self._strict = strict
        self._resource = Resource({"service.name": f"earmark-{service}", "service.namespace": "earmark"})

    def current(self) -> SpanIdentity | None:
        """Return the identity of the context's span, if there is one."""
        return _current.get()

    def span_id(self) -> int:
        """Return a fresh span id; never 0."""
        return self._ids.below(2**64 - 1) + 1

    def _trace_id(self) -> int:
        return int(self._ids.uuid().replace("-", ""), 16)

    @contextlib.contextmanager
    def span(self, name: str, attributes: Mapping[str, AttributeValue] | None = None) -> Iterator[None]:
        """Run a block in a span, a child of the context's. An exception marks the span as failed and goes on."""
        with self._within(name, SpanKind.INTERNAL, _current.get(), attributes or {}):
            yield

    @contextlib.contextmanager
    def rpc_span(self, method: str, kind: SpanKind, parent: SpanIdentity | None) -> Iterator[None]:
        """Run a block in the span of an RPC; `method` as in the wire's path ("/package.Service/Method")."""
        service, _, name = method.strip("/").partition("/")
        attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name}
        with self._within(method.strip("/"), kind, parent, attributes):
            yield

    @contextlib.contextmanager
    def _within(
        self, name: str, kind: SpanKind, parent: SpanIdentity | None, attributes: Mapping[str, AttributeValue]
    ) -> Iterator[None]:
        identity = SpanIdentity(
            self._trace_id() if parent is None else parent.trace_id,
            self.span_id(),
            None if parent is None else parent.span_id,
        )
        start = self._clock.now()
        token = _current.set(identity)
        error = ""
        try:
            yield
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        except BaseException as failure:
            error = f"{type(failure).__name__}: {failure}"
            raise
        finally:
            _current.reset(token)
            self._finish(name, start, self._clock.now(), attributes, identity, kind=kind, error=error)

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
        self._finish(name, start, end, attributes, identity, events=events, links=links, error=error)

    def _finish(
        self,
        name: str,
        start: datetime,
        end: datetime,
        attributes: Mapping[str, AttributeValue],
        identity: SpanIdentity,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        events: Sequence[tuple[str, datetime, Mapping[str, AttributeValue]]] = (),
        links: Sequence[SpanIdentity] = (),
        error: str = "",
    ) -> None:
        if problems := semconv.undeclared(name, attributes, [event for event, _, _ in events]):
            text = f"not declared in earmark.runtime.semconv: {', '.join(problems)}"
            if self._strict:
                raise ValueError(text)
            _log.warning(text)
        if self._sink is None:
            return
        parent = identity.parent_span_id
        self._sink.on_end(
            ReadableSpan(
                name,
                context=_context(identity.trace_id, identity.span_id),
                parent=None if parent is None else _context(identity.trace_id, parent),
                resource=self._resource,
                attributes=dict(attributes),
                events=[Event(event, dict(values), _nanoseconds(when)) for event, when, values in events],
                links=[Link(_context(link.trace_id, link.span_id)) for link in links],
                kind=kind,
                status=Status(StatusCode.ERROR, error) if error else Status(StatusCode.UNSET),
                start_time=_nanoseconds(start),
                end_time=_nanoseconds(end),
                instrumentation_scope=_SCOPE,
            )
        )


def _context(trace_id: int, span_id: int) -> SpanContext:
    return SpanContext(trace_id, span_id, is_remote=False, trace_flags=_SAMPLED)


def _nanoseconds(when: datetime) -> int:
    # Whole microseconds, without the rounding of a float.
    return (int(when.timestamp()) * 1_000_000 + when.microsecond) * 1_000


def traceparent(identity: SpanIdentity) -> str:
    """Return the W3C header for a span."""
    return f"00-{identity.trace_id:032x}-{identity.span_id:016x}-01"


def parse_traceparent(text: str) -> SpanIdentity | None:
    """Return the span that a W3C header names, or None if it is no such header."""
    parts = text.split("-")
    if len(parts) != 4 or [len(part) for part in parts] != [2, 32, 16, 2]:
        return None
    try:
        trace_id, span_id = int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return None
    return SpanIdentity(trace_id, span_id) if trace_id and span_id else None


def current_trace_id() -> str:
    """Return the hex trace id of the context's span, or "" (for the logs)."""
    identity = _current.get()
    return "" if identity is None else f"{identity.trace_id:032x}"
