"""`earmark trace`: the same tree from Jaeger's query API and, with fewer spans, from the plugin's record."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from earmark.cli import trace as command
from earmark.cli.errors import BadInput, CommandError
from earmark.runtime import semconv
from earmark.runtime.export import MemorySink
from earmark.simulation import fleet
from earmark.simulation.player import play
from earmark.v1 import common_pb2, settlement_pb2
from support import telemetry_jaeger
from support.simulation_player import OWN, scenario

T0 = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def spans() -> list[ReadableSpan]:
    """The trace of one window, as all services tell it."""
    sink = MemorySink()
    original = fleet.Tracing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            fleet, "Tracing", lambda name, clock, ids, _, strict: original(name, clock, ids, sink, strict=True)
        )
        assert play(scenario(OWN / "window.yaml", "window")).ok
    (root,) = sink.named(semconv.SETTLING)
    return [span for span in sink.spans if span.context.trace_id == root.context.trace_id]


def test_jaegers_answer_becomes_the_tree(spans: list[ReadableSpan]) -> None:
    found = command.from_jaeger(telemetry_jaeger.answer(spans))
    lines = list(command.lines(found, T0))
    assert [line.split()[0] for line in lines][:1] == ["+0.000s"]
    text = "\n".join(lines)
    assert [name for name in ("victim.terminating", "  nodes.terminate", "capacity.held") if name not in text] == []
    assert "+0.000s   18.0" in text
    assert "victims=default/tenant" in text
    assert "devices=accel.example.org/east/a0" in text


def test_of_a_window_that_is_open_the_phases_stand_at_the_top(spans: list[ReadableSpan]) -> None:
    so_far = [span for span in spans if span.name in ("settling.started", "preemption.execute")]
    lines = list(command.lines(command.from_jaeger(telemetry_jaeger.answer(so_far)), T0))
    assert len(lines) == 2


async def test_jaeger_is_asked_for_the_windows_trace(spans: list[ReadableSpan]) -> None:
    trace_id = f"{spans[0].context.trace_id:032x}"
    async with telemetry_jaeger.fake({trace_id: telemetry_jaeger.answer(spans)}) as url:
        assert len(await command._from_jaeger(url, trace_id)) == len(spans)
        assert await command._from_jaeger(url, "0" * 32) == []


async def test_what_is_no_jaeger_is_told_in_one_line() -> None:
    with pytest.raises(CommandError, match="Jaeger does not answer"):
        await command._from_jaeger(f"http://127.0.0.1:{telemetry_jaeger.free_port()}", "1" * 32)
    with pytest.raises(BadInput, match="not an address"):
        await command._from_jaeger("localhost:16686", "1" * 32)
    async with telemetry_jaeger.fake({"1" * 32: {"hello": "world"}}) as url:
        with pytest.raises(CommandError, match="not an answer of Jaeger's query API"):
            await command._from_jaeger(url, "1" * 32)


def stamp(second: float) -> Timestamp:
    made = Timestamp()
    made.FromMilliseconds(int((T0.timestamp() + second) * 1000))
    return made


def window(**more: Any) -> settlement_pb2.Settlement:
    return settlement_pb2.Settlement(
        preemptor=common_pb2.PodReference(namespace="default", name="p", uid="p"),
        node_name="n1",
        generation=1,
        victims=[settlement_pb2.SettlementVictim(pod=common_pb2.PodReference(name="v", uid="v"), gone=stamp(2))],
        devices=["d/p/x"],
        t0=stamp(0),
        t1=stamp(2),
        **more,
    )


def test_without_jaeger_the_record_tells_the_phases() -> None:
    claim = settlement_pb2.SettlementClaim(namespace="default", name="c", uid="c", deallocated=stamp(5))
    found = command.from_record(window(claims=[claim], t3=stamp(5), t4=stamp(6), outcome="scheduled"))
    assert [(s.name, (s.start - T0).total_seconds(), (s.end - T0).total_seconds()) for s in found if s.end] == [
        ("settling", 0, 6),
        ("victim.terminating", 0, 2),
        ("claim.deallocating", 2, 5),
        ("capacity.held", 5, 6),
    ]


def test_a_claim_that_is_still_awaited_is_shown_as_open() -> None:
    claim = settlement_pb2.SettlementClaim(namespace="default", name="c", uid="c")
    found = command.from_record(window(claims=[claim]))
    lines = list(command.lines(found, datetime(2026, 1, 1, 12, 1, tzinfo=UTC)))
    assert [line for line in lines if "..." in line] == [lines[0], lines[2]]
    assert "58.000s ..." in lines[2]
    assert "claim=default/c" in lines[2]


def test_a_real_jaeger_has_the_trace_with_its_spans_parents_and_order(
    spans: list[ReadableSpan], tmp_path: Path
) -> None:
    program = telemetry_jaeger.binary()
    if program is None:
        pytest.skip("no Jaeger: tests/tools/build_jaeger.sh builds it, EARMARK_JAEGER names one")
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    trace_id = f"{spans[0].context.trace_id:032x}"
    with telemetry_jaeger.real(program, tmp_path) as (otlp, query):
        processor = SimpleSpanProcessor(OTLPSpanExporter(endpoint=otlp, insecure=True))
        # While the window is open there is no root; the phases that have ended are there.
        *phases, root = sorted(spans, key=lambda span: span.name == semconv.SETTLING)
        for expected in (phases, [*phases, root]):
            for span in expected if root not in expected else [root]:
                processor.on_end(span)
            found = _asked(query, trace_id, len(expected))
            assert sorted(span.name for span in found) == sorted(span.name for span in expected)
        wanted = command.from_jaeger(telemetry_jaeger.answer(spans))
        assert {(s.id, s.parent, s.service) for s in found} == {(s.id, s.parent, s.service) for s in wanted}
        assert list(command.lines(found, T0)) == list(command.lines(wanted, T0))
        processor.shutdown()


def _asked(query: str, trace_id: str, wanted: int) -> list[command.Span]:
    deadline = time.monotonic() + 10
    while True:
        with urllib.request.urlopen(f"{query}/api/traces/{trace_id}", timeout=5) as response:
            found = command.from_jaeger(json.load(response))
        if len(found) >= wanted or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def test_the_documents_trace_is_this_one(spans: list[ReadableSpan], repository: Path) -> None:
    text = (repository / "docs/observability.md").read_text(encoding="utf-8")
    shown = text.partition("<!-- trace -->")[2].partition("<!-- end of trace -->")[0].strip().splitlines()[1:-1]
    lines = command.lines(command.from_jaeger(telemetry_jaeger.answer(spans)), T0)
    # Names of generated claims depend on the seed.
    assert [re.sub(r"dev-\w+", "dev", line) for line in shown] == [re.sub(r"dev-\w+", "dev", line) for line in lines]
