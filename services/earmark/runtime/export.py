"""Where finished spans go: memory for tests, OTLP over gRPC where an endpoint is set, nowhere otherwise."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

# Spans wait this long at most before a batch is sent.
_BATCH_DELAY_MS = 500

# What a shutdown waits for the last batch.
_FLUSH_TIMEOUT_MS = 3_000


class MemorySink:
    """Keeps finished spans, for tests and for the simulation's reports."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span."""
        self.spans.append(span)

    def named(self, name: str) -> list[ReadableSpan]:
        """Return the spans of one name, in the order in which they ended."""
        return [span for span in self.spans if span.name == name]


def otlp_processor(endpoint: str = "", environ: Mapping[str, str] | None = None) -> SpanProcessor | None:
    """Return a batching processor that sends to `endpoint` or to OTEL_EXPORTER_OTLP_ENDPOINT; None if neither is set.

    The SDK's exporter is loaded only here, because it costs memory. An http:// endpoint is used without TLS.
    """
    environ = os.environ if environ is None else environ
    target = endpoint or environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not target:
        return None
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    exporter = OTLPSpanExporter(endpoint=target, insecure=not target.startswith("https://"))
    return BatchSpanProcessor(exporter, schedule_delay_millis=_BATCH_DELAY_MS)


async def flush(processor: SpanProcessor | None) -> None:
    """Send what is left and close; the SDK blocks, so it does so in a thread."""
    if processor is None:
        return
    await asyncio.to_thread(processor.force_flush, _FLUSH_TIMEOUT_MS)
    await asyncio.to_thread(processor.shutdown)
