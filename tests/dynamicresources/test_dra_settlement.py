"""Settling windows and their derived traces; sessions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from earmark.dynamicresources import windowrecord
from earmark.dynamicresources.happened import NominationRecorded
from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.sessions import Sessions, StaleEpoch, UnknownSession
from earmark.dynamicresources.settlement import Phase, Window, Windows
from earmark.dynamicresources.settling import NominationMetrics
from earmark.kube.objects import Event, ObjectMeta
from support.dra_cluster import NOW, Cluster


class Watched:
    """A cluster with windows and a clock that the test moves."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.windows = Windows(1000)
        self.now = NOW
        self.cluster.core.listen(self._happened)
        self.cluster.add_slice("n1", ["gpu-0"])
        self.cluster.running("v", ["gpu-0"])
        self.cluster.pending("p")

    def _happened(self, world: object, events: tuple[object, ...]) -> None:
        for event in events:
            self.windows.apply(event, {"uid-v": True}, self.now)  # type: ignore[arg-type]

    def after(self, seconds: float) -> datetime:
        self.now = NOW + timedelta(seconds=seconds)
        return self.now

    @property
    def window(self) -> Window:
        return self.windows.all()[-1]


def test_a_window_goes_from_t0_to_t4() -> None:
    watched = Watched()
    cluster = watched.cluster
    cluster.nominate("p", "n1", ["v"])
    assert (watched.window.t0, watched.window.phase) == (NOW, Phase.TERMINATING)
    t1 = watched.after(10)
    cluster.delete_pod("v")
    assert (watched.window.t1, watched.window.phase) == (t1, Phase.DEALLOCATING)
    t3 = watched.after(20)
    cluster.deallocate("v-claim")
    assert (watched.window.t3, watched.window.phase) == (t3, Phase.HELD)
    t4 = watched.after(21)
    cluster.remove("p", Removal.BOUND)
    window = watched.window
    assert (window.t4, window.outcome, window.phase) == (t4, "scheduled", Phase.ENDED)
    assert [claim.key[1] for claim in window.claims] == ["v-claim"]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [(Removal.CLEARED, "cleared"), (Removal.POD_DELETED, "deleted"), (Removal.EXECUTION_FAILED, "failed")],
)
def test_a_window_says_how_it_ended(reason: Removal, outcome: str) -> None:
    watched = Watched()
    watched.cluster.nominate("p", "n1", ["v"])
    watched.after(5)
    watched.cluster.remove("p", reason, ["v"] if reason is Removal.EXECUTION_FAILED else [])
    assert (watched.window.outcome, watched.window.t4) == (outcome, None)


@pytest.mark.kep("F54")
def test_a_claim_may_come_free_before_its_pod_is_gone() -> None:
    watched = Watched()
    watched.cluster.nominate("p", "n1", ["v"])
    t3 = watched.after(3)
    watched.cluster.deallocate("v-claim")
    assert (watched.window.t3, watched.window.phase) == (t3, Phase.TERMINATING)


def test_only_the_newest_windows_are_kept() -> None:
    watched = Watched()
    watched.windows = Windows(2)
    for _ in range(4):
        watched.cluster.nominate("p", "n1", ["v"])
        watched.cluster.remove("p", Removal.CLEARED)
    assert [window.generation for window in watched.windows.all()] == [3, 4]


@pytest.mark.kep("E98")
def test_gauge_and_counter_of_nominations_share_a_name() -> None:
    registry = CollectorRegistry()
    metrics = NominationMetrics()
    registry.register(metrics)
    metrics.set(2)
    metrics.ended("scheduled")
    text = generate_latest(registry).decode()
    assert "earmark_claim_nominations 2.0" in text
    assert 'earmark_claim_nominations_total{outcome="scheduled"} 1.0' in text


# --- sessions ----------------------------------------------------------------------------------------------------------


def sessions() -> tuple[Sessions, list[float]]:
    time = [0.0]
    numbers = iter(range(100))
    return Sessions(lambda: f"s{next(numbers)}", lambda: time[0], 60.0), time


def test_a_newer_scheduler_fences_off_the_older_one() -> None:
    every, _ = sessions()
    core = Cluster().core
    old = every.open_scheduler(1, core)
    new = every.open_scheduler(2, core)
    assert every.get(new.id, 2) is new
    with pytest.raises(StaleEpoch):
        every.get(old.id, 1)
    with pytest.raises(StaleEpoch, match="epoch 1: epoch 2"):
        every.open_scheduler(1, core)


def test_the_same_epoch_may_come_again() -> None:
    every, _ = sessions()
    core = Cluster().core
    old = every.open_scheduler(3, core)
    new = every.open_scheduler(3, core)
    assert every.get(new.id, 3) is new
    with pytest.raises(UnknownSession):
        every.get(old.id, 3)


def test_a_sandbox_is_gone_after_a_minute_of_silence() -> None:
    every, time = sessions()
    sandbox = every.open_sandbox(Cluster().core)
    scheduler = every.open_scheduler(1, Cluster().core)
    time[0] = 50.0
    assert every.get(sandbox.id, 0) is sandbox
    time[0] = 109.0
    assert every.get(sandbox.id, 0) is sandbox
    time[0] = 170.0
    with pytest.raises(UnknownSession):
        every.get(sandbox.id, 0)
    assert every.get(scheduler.id, 1) is scheduler


def test_closing_twice_is_as_once() -> None:
    every, _ = sessions()
    sandbox = every.open_sandbox(Cluster().core)
    every.close(sandbox.id)
    every.close(sandbox.id)
    with pytest.raises(UnknownSession):
        every.get(sandbox.id, 0)


def test_a_restored_window_keeps_its_beginning() -> None:
    watched = Watched()
    cluster = watched.cluster
    cluster.nominate("p", "n1", ["v"])
    [recorded] = [event for event in cluster.happened if isinstance(event, NominationRecorded)]
    later = watched.after(30)
    windows = Windows(10)
    windows.apply(replace(recorded, restored=True), {}, later)
    [window] = windows.all()
    # The victim went while nobody looked.
    assert (window.t0, window.t1) == (NOW, later)


def test_an_ended_window_is_read_back_from_its_event() -> None:
    watched = Watched()
    watched.cluster.nominate("p", "n1", ["v"])
    watched.after(10)
    watched.cluster.delete_pod("v")
    watched.cluster.remove("p", Removal.BOUND)
    window = watched.window
    text = windowrecord.write(window)

    def event(**annotations: str) -> Event:
        return Event(reason=windowrecord.REASON, metadata=ObjectMeta(annotations=annotations))

    assert windowrecord.read(event(**{windowrecord.ANNOTATION: text})) == window
    assert windowrecord.read(event()) is None
    assert windowrecord.read(event(**{windowrecord.ANNOTATION: "{}"})) is None
    assert windowrecord.read(event(**{windowrecord.ANNOTATION: text.replace('"version":1', '"version":2')})) is None


def test_restored_windows_are_bounded_and_do_not_replace_what_this_process_has_seen() -> None:
    watched = Watched()
    watched.cluster.nominate("p", "n1", ["v"])
    open_one = watched.window
    earlier = [
        replace(open_one, generation=number, t0=NOW - timedelta(seconds=100 - number), ended=NOW, outcome="scheduled")
        for number in (1, 10, 11, 12)
    ]
    assert earlier[0].key == open_one.key
    windows = Windows(3)
    windows.restore([*earlier])
    assert [window.generation for window in windows.all()] == [10, 11, 12]
    watched.windows.restore(earlier)
    assert [window.generation for window in watched.windows.all()] == [10, 11, 12, 1]
    assert watched.window is open_one
