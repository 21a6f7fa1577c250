"""An OTLP receiver in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True)
class ReceivedSpan:
    """One span as it came over the wire; times in seconds."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: float
    end: float
    attributes: dict[str, Any]
    events: tuple[str, ...]


@dataclass
class Receiver(trace_service_pb2_grpc.TraceServiceServicer):  # type: ignore[misc]
    """Keeps what it is sent."""

    endpoint: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def Export(self, request: Any, context: Any) -> Any:
        for resource in request.resource_spans:
            service = next(a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
            for scope in resource.scope_spans:
                self.spans += [_span(service, span) for span in scope.spans]
        self.arrived.set()
        return trace_service_pb2.ExportTraceServiceResponse()

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans of a name, by their start."""
        return sorted((span for span in self.spans if span.name == name), key=lambda span: span.start)


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


def _span(service: str, span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.start_time_unix_nano / 1e9,
        span.end_time_unix_nano / 1e9,
        {attribute.key: _value(attribute.value) for attribute in span.attributes},
        tuple(event.name for event in span.events),
    )


@contextlib.asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """Listen on loopback for the length of the block."""
    server = grpc.aio.server()
    receives = Receiver()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(receives, server)
    port = server.add_insecure_port("127.0.0.1:0")
    receives.endpoint = f"http://127.0.0.1:{port}"
    await server.start()
    try:
        yield receives
    finally:
        await server.stop(0)
