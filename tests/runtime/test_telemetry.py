"""Spans: our own ids and times, and no name that is not declared."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from earmark.runtime import semconv
from earmark.runtime.clock import LoopClock
from earmark.runtime.component import SpanIdentity
from earmark.runtime.export import MemorySink, otlp_processor
from earmark.runtime.ids import SeededIds
from earmark.runtime.telemetry import Tracing, parse_traceparent, traceparent

T0 = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def sink() -> MemorySink:
    return MemorySink()


@pytest.fixture
async def tracing(clock: LoopClock, sink: MemorySink) -> Tracing:
    return Tracing("framework", clock, SeededIds(1), sink, strict=True)


@pytest.mark.virtual
async def test_a_span_has_the_clocks_times_and_its_parent(tracing: Tracing, sink: MemorySink, clock: LoopClock) -> None:
    with tracing.span(semconv.SCHEDULING_ATTEMPT, {semconv.POD_NAME: "a"}):
        await clock.sleep(1.5)
        with tracing.span(semconv.PREEMPTION_DRY_RUN):
            await clock.sleep(0.25)
    inner, outer = sink.spans
    assert inner.parent is not None
    assert (inner.parent.span_id, inner.context.trace_id) == (outer.context.span_id, outer.context.trace_id)
    assert outer.start_time == int(T0.timestamp()) * 10**9
    assert (outer.end_time or 0) - (outer.start_time or 0) == 1_750_000_000
    assert outer.attributes == {semconv.POD_NAME: "a"}


@pytest.mark.virtual
async def test_emit_keeps_explicit_ids_and_times(tracing: Tracing, sink: MemorySink) -> None:
    identity = SpanIdentity(trace_id=7, span_id=8, parent_span_id=9)
    later = T0 + timedelta(seconds=3)
    tracing.emit(
        semconv.SETTLING, T0, later, {}, identity=identity, events=[("victim.gone", later, {})], error="cleared"
    )
    (span,) = sink.spans
    assert (span.context.trace_id, span.context.span_id, span.parent and span.parent.span_id) == (7, 8, 9)
    assert [event.name for event in span.events] == ["victim.gone"]
    assert span.status.description == "cleared"
    assert (span.end_time or 0) - (span.start_time or 0) == 3_000_000_000


@pytest.mark.virtual
async def test_equal_seeds_give_equal_ids(clock: LoopClock) -> None:
    sinks = [MemorySink(), MemorySink()]
    for sink in sinks:
        with Tracing("t", clock, SeededIds(5), sink).span(semconv.SCHEDULING_ATTEMPT):
            pass
    assert sinks[0].spans[0].context == sinks[1].spans[0].context


@pytest.mark.virtual
async def test_an_undeclared_name_is_refused(tracing: Tracing) -> None:
    with pytest.raises(ValueError, match="attribute 'colour' of span 'settling'"):
        tracing.emit(semconv.SETTLING, T0, T0, {"colour": "red"}, identity=SpanIdentity(1, 2))
    with pytest.raises(ValueError, match="span 'setling'"), tracing.span("setling"):
        pass


@pytest.mark.virtual
async def test_an_exception_marks_the_span_and_goes_on(tracing: Tracing, sink: MemorySink) -> None:
    with pytest.raises(KeyError), tracing.span(semconv.PREEMPTION_EXECUTE):
        raise KeyError("x")
    assert sink.spans[0].status.description == "KeyError: 'x'"


def test_the_trace_header_is_the_standards() -> None:
    identity = SpanIdentity(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0x00F067AA0BA902B7)
    text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    assert traceparent(identity) == text
    assert parse_traceparent(text) == identity
    assert parse_traceparent("00-zz") is None
    assert parse_traceparent(f"00-{'0' * 32}-{'0' * 16}-01") is None


def test_nothing_is_exported_unless_an_endpoint_is_set() -> None:
    assert otlp_processor("", {}) is None


def _emitted_names(tree: ast.AST) -> list[str]:
    """Names of spans that a module writes as literals in `telemetry.span(...)` and `.emit(...)`."""
    names = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("span", "emit")
            and "telemetry" in ast.unparse(node.func.value)
            and node.args
            and isinstance(node.args[0], ast.Constant)
            and isinstance(node.args[0].value, str)
        ):
            names.append(node.args[0].value)
    return names


def test_every_span_name_in_the_sources_is_declared(repository: Path) -> None:
    undeclared = [
        f"{file.relative_to(repository)}: {name}"
        for file in sorted((repository / "services/earmark").rglob("*.py"))
        for name in _emitted_names(ast.parse(file.read_text(encoding="utf-8")))
        if name not in semconv.SPANS
    ]
    assert undeclared == []
