"""The spans and numbers of a settling window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.settlementwatch import SettlementWatch
from earmark.dynamicresources.settling import Metrics, SettlementTracker, summary
from earmark.runtime import semconv
from earmark.runtime.component import SpanIdentity
from earmark.runtime.settling_trace import settling_trace
from support.dra_cluster import NOW, Cluster

Span = tuple[str, float, float, Mapping[str, Any], SpanIdentity, str]


class Recorder:
    """A telemetry that keeps what is emitted, in seconds since the beginning."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._ids = 0

    def emit(
        self,
        name: str,
        start: datetime,
        end: datetime,
        attributes: Mapping[str, Any],
        *,
        identity: SpanIdentity,
        events: Sequence[Any] = (),
        links: Sequence[Any] = (),
        error: str = "",
    ) -> None:
        begin, finish = ((moment - NOW).total_seconds() for moment in (start, end))
        self.spans.append((name, begin, finish, attributes, identity, error))

    def span_id(self) -> int:
        self._ids += 1
        return self._ids


class Clock:
    """A clock that shows what the test says."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def now(self) -> datetime:
        return self._window.now


class Window:
    """A cluster with a tracker."""

    def __init__(self) -> None:
        self.now = NOW
        self.telemetry = Recorder()
        self.registry = CollectorRegistry()
        self.cluster = Cluster()
        settings = Settings(settlement_events=False)
        unused: Any = None
        self.tracker = SettlementTracker(settings, Clock(self), self.telemetry, Metrics(self.registry), unused, unused)  # type: ignore[arg-type]
        self.cluster.core.listen(self.tracker.happened)
        self.cluster.add_slice("n1", ["gpu-0"])
        self.cluster.running("v", ["gpu-0"])
        self.cluster.pending("p")

    def play(self, end: Removal) -> None:
        self.cluster.nominate("p", "n1", ["v"])
        self.now = NOW + timedelta(seconds=10)
        self.cluster.delete_pod("v")
        self.now = NOW + timedelta(seconds=20)
        self.cluster.deallocate("v-claim")
        self.now = NOW + timedelta(seconds=21)
        self.cluster.remove("p", end)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def window() -> Window:
    return Window()


def test_the_trace_reads_as_the_keps_picture(window: Window) -> None:
    window.play(Removal.BOUND)
    assert [(name, start, end) for name, start, end, *_ in window.telemetry.spans] == [
        ("settling.started", 0, 0),
        ("victim.terminating", 0, 10),
        ("claim.deallocating", 10, 20),
        ("capacity.held", 20, 21),
        ("settling", 0, 21),
    ]


def test_all_spans_are_in_the_derived_trace_under_its_root(window: Window) -> None:
    window.play(Removal.BOUND)
    trace, root = settling_trace("uid-p", 1)
    *children, last = window.telemetry.spans
    assert last[4] == SpanIdentity(trace, root)
    assert {(span[4].trace_id, span[4].parent_span_id) for span in children} == {(trace, root)}


def test_names_and_attributes_are_declared(window: Window) -> None:
    window.play(Removal.BOUND)
    for name, _, _, attributes, _, _ in window.telemetry.spans:
        assert semconv.undeclared(name, attributes) == []


def test_an_abandoned_window_is_marked(window: Window) -> None:
    window.play(Removal.CLEARED)
    name, _, _, attributes, _, error = window.telemetry.spans[-1]
    assert (name, attributes["earmark.outcome"]) == ("settling", "cleared")
    assert error == "the nomination ended: cleared"


@pytest.mark.kep("E98")
def test_the_phases_are_measured(window: Window) -> None:
    window.play(Removal.BOUND)
    assert window.value("earmark_claim_nominations") == 0
    assert window.value("earmark_claim_nominations_total", outcome="scheduled") == 1
    assert window.value("earmark_settling_window_seconds_sum", outcome="scheduled") == 21
    for phase, seconds in (("terminating", 10), ("deallocating", 10), ("held", 1)):
        assert window.value(f"earmark_settling_{phase}_seconds_sum") == seconds


def test_a_window_is_told_in_one_sentence(window: Window) -> None:
    window.play(Removal.BOUND)
    assert summary(window.tracker.windows()[0]) == (
        "Settling window on node n1 scheduled after 21.0s: victims gone after 10.0s, claims deallocated after 20.0s"
    )


async def test_who_watches_gets_open_windows_and_changes(window: Window) -> None:
    window.cluster.nominate("p", "n1", ["v"])
    watch = window.tracker.watch()
    assert (await watch.get()).t1 is None
    window.cluster.delete_pod("v")
    assert (await watch.get()).t1 is not None
    window.tracker.unwatch(watch)
    window.cluster.deallocate("v-claim")
    assert len(watch) == 0


async def test_a_slow_watcher_gets_the_newest_state_of_each_window(window: Window) -> None:
    watch = window.tracker.watch()
    window.play(Removal.BOUND)
    assert (await watch.get()).outcome == "scheduled"
    assert len(watch) == 0


def test_what_waits_for_a_watcher_is_bounded(window: Window) -> None:
    watch = SettlementWatch(2)
    window.play(Removal.BOUND)
    state = window.tracker.windows()[0]
    for generation in range(1, 5):
        watch.put(replace(state, generation=generation))
    assert len(watch) == 2
