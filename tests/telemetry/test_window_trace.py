"""One trace a settling window, played with all services: it reads from top to bottom as the KEP's picture."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from prometheus_client import CollectorRegistry

from earmark.dynamicresources.caches import Caches
from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.settlement import Window, WindowChange, WindowClaim, WindowVictim
from earmark.dynamicresources.settling import Metrics, SettlementTracker
from earmark.framework.nominator import NominatedPod
from earmark.framework.trace import WindowSpans
from earmark.kube import objects
from earmark.kube.informer import InformerEvent
from earmark.runtime import semconv
from earmark.runtime.awaiting import Preemptors, awaiting_claim, awaiting_victim
from earmark.runtime.clock import LoopClock
from earmark.runtime.component import SpanIdentity
from earmark.runtime.export import MemorySink
from earmark.runtime.logs import JsonFormatter
from earmark.runtime.settling_trace import (
    MOST_ATTEMPTS,
    MOST_CLAIMS,
    MOST_VICTIMS,
    claim_span,
    settling_trace,
    victim_span,
)
from earmark.simulation import fleet
from earmark.simulation.player import play
from support.dra_cluster import NOW, Cluster
from support.simulation_player import OWN, complaint, scenario


@dataclass(frozen=True)
class Told:
    """A span as a reader sees it; times in seconds since t0."""

    depth: int
    name: str
    service: str
    start: float
    end: float
    span: ReadableSpan


def played(sink: MemorySink, file: Path, name: str) -> None:
    outcome = play(scenario(file, name))
    assert outcome.ok, complaint(outcome)


def traces(sink: MemorySink) -> list[list[Told]]:
    """Each window's spans as a tree, from top to bottom."""
    found = []
    for root in sink.named(semconv.SETTLING):
        spans = [span for span in sink.spans if span.context.trace_id == root.context.trace_id]
        found.append(list(below(spans, root, 0, root.start_time or 0)))
    return found


def below(spans: list[ReadableSpan], span: ReadableSpan, depth: int, t0: int) -> Iterator[Told]:
    start, end = ((moment or 0) - t0 for moment in (span.start_time, span.end_time))
    service = str(span.resource.attributes["service.name"])
    yield Told(depth, span.name, service.removeprefix("earmark-"), start / 1e9, end / 1e9, span)
    children = [child for child in spans if child.parent is not None and child.parent.span_id == span.context.span_id]
    for child in sorted(children, key=lambda item: (item.start_time or 0, item.end_time or 0)):
        yield from below(spans, child, depth + 1, t0)


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> MemorySink:
    """Gets the spans of all services of every simulation."""
    made = MemorySink()
    original = fleet.Tracing
    monkeypatch.setattr(
        fleet, "Tracing", lambda name, clock, ids, _sink, strict: original(name, clock, ids, made, strict=strict)
    )
    return made


@pytest.mark.kep("D1", "E81")
def test_a_window_reads_from_top_to_bottom(sink: MemorySink) -> None:
    played(sink, OWN / "window.yaml", "window")
    (window,) = traces(sink)
    told = [(item.depth, item.name, item.service, round(item.start), round(item.end)) for item in window]
    # t0 is 0, t1 is 8, t3 is 18, and the preemptor is bound at once.
    assert told == [
        (0, "settling", "dynamicresources", 0, 18),
        (1, "preemption.dry_run", "preemption", 0, 0),
        (1, "settling.started", "dynamicresources", 0, 0),
        (1, "preemption.execute", "preemption", 0, 0),
        (1, "victim.terminating", "dynamicresources", 0, 8),
        (2, "nodes.terminate", "nodes", 8, 8),
        (1, "claim.deallocating", "dynamicresources", 8, 18),
        (2, "claimcontroller.deallocate", "claimcontroller", 18, 18),
        (1, "scheduling.attempt", "framework", 18, 18),
        (1, "capacity.held", "dynamicresources", 18, 18),
    ]
    by_name = {item.name: dict(item.span.attributes or {}) for item in window}
    dry_run = by_name["preemption.dry_run"]
    assert (dry_run["earmark.candidates"], dry_run["earmark.victims"]) == (1, ["default/tenant"])
    assert int(str(dry_run["earmark.rounds"])) >= 1
    assert by_name["settling"][semconv.POD_NAME] == "guest"
    assert by_name["victim.terminating"][semconv.POD_NAME] == "tenant"
    assert by_name["scheduling.attempt"]["earmark.outcome"] == "scheduled"
    assert by_name["capacity.held"]["earmark.devices"] == ["accel.example.org/east/a0"]
    assert [event.name for item in window for event in item.span.events] == ["victim.deleted"]


def test_every_file_of_settling_windows_has_whole_trees_of_at_most_200_spans(sink: MemorySink) -> None:
    for file, name in (("d-waiting.yaml", "a-stuck-claim-does-not-blind-the-preemptor"), ("window.yaml", "window")):
        played(sink, OWN / file, name)
    windows = traces(sink)
    assert windows
    for window in windows:
        trace = window[0].span.context.trace_id
        everything = [span for span in sink.spans if span.context.trace_id == trace]
        assert len(window) == len(everything) <= 200, "a span is in no tree"


async def test_a_victim_and_a_claim_are_found_by_the_preemptors_record() -> None:
    text = '{"version":1,"generation":7,"victims":[{"uid":"v"}],"plugins":{"D":{"victimClaims":[{"uid":"c"}]},"X":"?"}}'
    meta = objects.ObjectMeta(namespace="default", name="p", uid="p", annotations={"earmark.dev/nomination": text})
    pod = objects.Pod(metadata=meta, status=objects.PodStatus(nominated_node_name="n1"))
    preemptors = Preemptors()
    preemptors.on_pod(InformerEvent("ADDED", None, pod))
    trace, _ = settling_trace("p", 7)
    assert awaiting_victim(preemptors.pods(), "v") == (trace, victim_span("p", 7, "v"))
    assert awaiting_claim(preemptors.pods(), "c") == (trace, claim_span("p", 7, "c"))
    assert awaiting_claim(preemptors.pods(), "v") is None
    preemptors.on_pod(InformerEvent("DELETED", pod, None))
    assert awaiting_victim(preemptors.pods(), "v") is None


class Recorder:
    """Keeps the names of what is emitted."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.links: list[tuple[SpanIdentity, ...]] = []

    def emit(self, name: str, *_: Any, links: Sequence[SpanIdentity] = (), **__: Any) -> None:
        self.names.append(name)
        self.links.append(tuple(links))

    def span_id(self) -> int:
        return 1

    def current(self) -> None:
        return None


@pytest.mark.virtual
async def test_a_preemptor_that_waits_for_hours_does_not_fill_its_trace(clock: LoopClock) -> None:
    recorder = Recorder()
    spans = WindowSpans(recorder, clock)  # type: ignore[arg-type]
    held = NominatedPod("p", "default", "p", "n1", generation=7)
    for attempt in range(500):
        spans.attempted(held, attempt, clock.now(), "unschedulable", "devices are awaited")
    spans.attempted(held, 501, clock.now(), "scheduled", "")
    assert len(recorder.names) == MOST_ATTEMPTS


def test_with_hundreds_of_victims_a_window_still_has_at_most_200_spans() -> None:
    # A victim and a claim have one child each; the window itself has root, start, dry run, execution and hold.
    assert 2 * MOST_VICTIMS + 2 * MOST_CLAIMS + MOST_ATTEMPTS + 5 <= 200
    recorder = Recorder()
    unused: Any = None
    tracker = SettlementTracker(
        Settings(settlement_events=False),
        unused,
        recorder,
        Metrics(CollectorRegistry()),
        unused,
        unused,  # type: ignore[arg-type]
    )
    victims = [PodRef("default", f"v{number}", f"v{number}") for number in range(300)]
    window = Window(
        PodRef("default", "p", "p"), "n1", 7, tuple(WindowVictim(pod) for pod in victims),
        tuple(WindowClaim(("default", f"c{number}"), f"c{number}") for number in range(300)), (), NOW,
    )  # fmt: skip
    gone = replace(window, victims=tuple(WindowVictim(pod, NOW) for pod in victims))
    free = replace(gone, claims=tuple(replace(claim, deallocated=NOW) for claim in gone.claims))
    ended = replace(free, ended=NOW, t4=NOW, outcome="scheduled")
    for before, after in ((None, window), (window, gone), (gone, free), (free, ended)):
        tracker._show(WindowChange(before, after), restored=False)
    assert len(recorder.names) == 3 + MOST_VICTIMS + MOST_CLAIMS


def test_a_later_preemption_of_the_same_pod_is_linked_with_the_one_before_it() -> None:
    cluster, recorder = Cluster(), Recorder()
    unused: Any = None
    clock: Any = type("Clock", (), {"now": staticmethod(lambda: NOW)})()
    settings = Settings(settlement_events=False)
    tracker = SettlementTracker(settings, clock, recorder, Metrics(CollectorRegistry()), unused, unused)  # type: ignore[arg-type]
    cluster.core.listen(tracker.happened)
    for node in ("n1", "n2"):
        cluster.add_slice(node, ["gpu-0"])
    cluster.running("v", ["gpu-0"], node="n1")
    cluster.running("w", ["gpu-0"], node="n2")
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.remove("p", Removal.CLEARED)
    cluster.nominate("p", "n2", ["w"])
    earlier, later = (window.generation for window in tracker.windows())
    assert earlier < later
    links = dict(zip(recorder.names, recorder.links, strict=True))
    assert links[semconv.SETTLING_STARTED] == (SpanIdentity(*settling_trace("uid-p", earlier)),)


@pytest.mark.kep("E43")
def test_the_root_is_told_when_the_scheduler_dies_after_the_binding() -> None:
    """RemoveNominatedPod(BOUND) and EndCycle(BOUND) are lost with it: the pod's own state says the same."""
    cluster, recorder = Cluster(), Recorder()
    unused: Any = None
    clock: Any = type("Clock", (), {"now": staticmethod(lambda: NOW)})()
    settings = Settings(settlement_events=False)
    tracker = SettlementTracker(settings, clock, recorder, Metrics(CollectorRegistry()), unused, unused)  # type: ignore[arg-type]
    cluster.core.listen(tracker.happened)
    cluster.add_slice("n1", ["gpu-0"])
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.remove("p", Removal.ASSUMED)
    assert semconv.SETTLING not in recorder.names
    caches = Caches(unused, clock, cluster.core, settings)
    bound = objects.Pod(
        metadata=objects.ObjectMeta(namespace="default", name="p", uid="uid-p", resource_version="9"),
        spec=objects.PodSpec(node_name="n1"),
    )
    caches._on_pod(InformerEvent("MODIFIED", None, bound))
    assert recorder.names.count(semconv.SETTLING) == 1
    assert tracker.windows()[0].outcome == "scheduled"


def test_a_line_of_the_log_leads_to_the_windows_trace(sink: MemorySink, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "earmark.dynamicresources"):
        played(sink, OWN / "window.yaml", "window")
    (root,) = sink.named(semconv.SETTLING)
    lines = [json.loads(JsonFormatter("x").format(item)) for item in caplog.records if "settling" in item.getMessage()]
    assert [line["message"] for line in lines] == ["settling window opened", "settling window ended: scheduled"]
    assert {line["trace_id"] for line in lines} == {f"{root.context.trace_id:032x}"}
    assert {(line["pod"], line["node"]) for line in lines} == {("default/guest", "east")}
