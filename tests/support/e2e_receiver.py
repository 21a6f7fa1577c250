"""An OTLP receiver that listens in a thread: it serves processes for longer than one test's event loop."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True)
class Span:
    """One span as it came over the wire; times in seconds of the epoch."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: float
    end: float
    attributes: dict[str, Any]
    events: tuple[str, ...]
    # When it arrived here.
    received: float


@dataclass
class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps what it is sent."""

    endpoint: str = ""
    _spans: list[Span] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def Export(self, request: Any, context: Any) -> Any:
        now = time.time()
        for resource in request.resource_spans:
            service = next(a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
            found = [_span(service, span, now) for scope in resource.scope_spans for span in scope.spans]
            with self._lock:
                self._spans += found
        return trace_service_pb2.ExportTraceServiceResponse()

    def trace(self, trace_id: str) -> list[Span]:
        """The spans of a trace, by their start."""
        with self._lock:
            return sorted((span for span in self._spans if span.trace_id == trace_id), key=lambda span: span.start)

    def about(self, preemptor_uid: str) -> list[Span]:
        """The spans that name a preemptor, by their start."""
        with self._lock:
            mine = [span for span in self._spans if span.attributes.get("earmark.preemptor.uid") == preemptor_uid]
        return sorted(mine, key=lambda span: span.start)

    def services(self) -> set[str]:
        """Everybody who has sent something."""
        with self._lock:
            return {span.service for span in self._spans}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


def _span(service: str, span: Any, now: float) -> Span:
    return Span(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano / 1e9,
        span.end_time_unix_nano / 1e9,
        {attribute.key: _value(attribute.value) for attribute in span.attributes},
        tuple(event.name for event in span.events),
        now,
    )


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """Listen on loopback for the length of the block."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    receives = Receiver()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receives, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    receives.endpoint = f"http://127.0.0.1:{port}"
    server.start()
    try:
        yield receives
    finally:
        server.stop(0)
