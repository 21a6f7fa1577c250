"""Spans leave the process over OTLP, with our ids and times."""

from __future__ import annotations

import asyncio

from earmark.runtime import export, semconv
from earmark.runtime.clock import SystemClock
from earmark.runtime.ids import SeededIds
from earmark.runtime.telemetry import Tracing
from support.runtime_otlp import receiver


async def test_a_span_arrives_with_its_ids_and_service() -> None:
    async with receiver() as received:
        processor = export.otlp_processor(received.endpoint)
        tracing = Tracing("framework", SystemClock(), SeededIds(1), processor, strict=True)
        with tracing.span(semconv.SCHEDULING_ATTEMPT, {semconv.POD_NAME: "a", "earmark.victims": ["x", "y"]}):
            identity = tracing.current()
        assert identity is not None
        await export.flush(processor)
        await asyncio.wait_for(received.arrived.wait(), 10)
        (span,) = received.spans
        assert (span.service, span.name) == ("earmark-framework", semconv.SCHEDULING_ATTEMPT)
        assert (int(span.trace_id, 16), int(span.span_id, 16)) == (identity.trace_id, identity.span_id)
        assert span.attributes == {semconv.POD_NAME: "a", "earmark.victims": ["x", "y"]}
        assert span.start <= span.end
