"""The scheduling queue, rule by rule (upstream A16)."""

from __future__ import annotations

import pytest

from earmark.framework import events
from earmark.framework.events import ClusterEvent
from earmark.framework.gate import NAME as DEFAULT_PREEMPTION
from earmark.framework.gate import PreemptionGate
from earmark.framework.plugins.scheduling_gates import SchedulingGates
from earmark.framework.queue.backoff import Backoff
from earmark.framework.queue.entry import Place, QueuedPod, Strategy
from earmark.framework.queue.hints import HintRegistry
from earmark.framework.queue.scheduling_queue import QueueOptions, SchedulingQueue
from earmark.framework.status import unresolvable
from support.framework_objects import node, pod

FIT = "NodeResourcesFit"
REMOTE = "DynamicResources"


def make_queue(**options: object) -> SchedulingQueue:
    hints = HintRegistry()
    hints.register(FIT, {events.NODE_ADD: events.always, events.ASSIGNED_POD_DELETE: events.always})
    gates = (SchedulingGates(), PreemptionGate())
    for gate in gates:
        hints.register(gate.name, gate.hints)
    return SchedulingQueue(hints, gates, QueueOptions(**options))  # type: ignore[arg-type]


def fail(
    queue: SchedulingQueue, queued: QueuedPod, now: float, *plugins: str, verdict: Strategy = Strategy.SKIP
) -> None:
    queue.requeue(queued, plugins, (), verdict, now)


def popped(queue: SchedulingQueue, now: float = 0.0) -> QueuedPod:
    queued = queue.pop(now)
    assert queued is not None
    return queued


def place(queue: SchedulingQueue, name: str) -> Place:
    queued = queue.get(f"uid-{name}")
    assert queued is not None
    return queued.place


def test_higher_priority_comes_first_and_then_the_older() -> None:
    queue = make_queue()
    queue.add(pod("old", priority=1), 0.0)
    queue.add(pod("new", priority=1), 1.0)
    queue.add(pod("high", priority=2), 2.0)
    assert [popped(queue).pod.metadata.name for _ in range(3)] == ["high", "old", "new"]


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (60, 10)])
def test_backoff_doubles_up_to_the_longest(failures: int, seconds: float) -> None:
    queued = QueuedPod(pod("a"), added=0.0, timestamp=0.0, unschedulable_count=failures)
    assert Backoff().duration(queued) == seconds


def test_backoff_of_zero_is_none() -> None:
    queued = QueuedPod(pod("a"), added=0.0, timestamp=0.0, unschedulable_count=3)
    assert Backoff(longest=0).duration(queued) == 0


def test_errors_in_a_row_count_by_themselves() -> None:
    queued = QueuedPod(pod("a"), added=0.0, timestamp=0.0, unschedulable_count=5, error_count=1)
    assert Backoff().duration(queued) == 1


def test_the_end_of_a_backoff_is_aligned_to_whole_seconds() -> None:
    queued = QueuedPod(pod("a"), added=0.0, timestamp=10.3, unschedulable_count=1)
    assert Backoff().expiry(queued) == 11.0
    assert not Backoff().backing_off(queued, 11.0)
    assert Backoff().backing_off(queued, 10.9)


def test_an_idle_scheduler_takes_a_pod_from_the_backoff_queue() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0, FIT)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    assert place(queue, "a") is Place.BACKOFF
    assert popped(queue, 0.1).attempts == 2


def test_a_pod_after_an_error_waits_for_its_backoff() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0)
    assert place(queue, "a") is Place.BACKOFF
    assert queue.pop(0.5) is None
    assert queue.next_deadline() == 1.0
    queue.flush(1.0)
    assert popped(queue, 1.0).uid == "uid-a"


def test_without_popping_from_backoff_the_pod_waits() -> None:
    queue = make_queue(pop_from_backoff=False)
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0, FIT)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    assert queue.pop(0.1) is None
    queue.flush(1.0)
    assert popped(queue, 1.0).uid == "uid-a"


def test_only_plugins_that_rejected_a_pod_are_asked() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0, "NodeAffinity")
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 5.0)
    assert place(queue, "a") is Place.UNSCHEDULABLE


def test_an_event_during_the_attempt_is_not_missed() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    fail(queue, queued, 0.2, FIT)
    assert place(queue, "a") is Place.BACKOFF


def test_an_event_before_the_attempt_does_not_count() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 0.0)
    first = popped(queue)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    second = popped(queue)
    fail(queue, second, 0.2, FIT)
    assert place(queue, second.pod.metadata.name) is Place.UNSCHEDULABLE
    fail(queue, first, 0.2, FIT)
    assert place(queue, first.pod.metadata.name) is Place.BACKOFF


def test_events_that_nobody_in_flight_needs_are_dropped() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    assert queue.in_flight.counts()[events.NODE_ADD] == 1
    queue.done(queued)
    assert not queue.in_flight.counts()
    assert queue.get("uid-a") is None


def test_a_wake_up_during_the_attempt_is_not_missed() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.wake("uid-a", ClusterEvent("ResourceClaim/Update", target="uid-a", plugin=REMOTE, at_once=True), 0.1)
    fail(queue, queued, 0.2, REMOTE)
    assert place(queue, "a") is Place.ACTIVE


@pytest.mark.parametrize(
    ("verdict", "where"),
    [
        (Strategy.SKIP, Place.UNSCHEDULABLE),
        (Strategy.AFTER_BACKOFF, Place.BACKOFF),
        (Strategy.IMMEDIATELY, Place.ACTIVE),
    ],
)
def test_the_verdict_of_a_remote_plugin_decides(verdict: Strategy, where: Place) -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0, REMOTE, verdict=verdict)
    assert place(queue, "a") is where


def test_a_pending_plugin_lets_the_pod_go_on_without_backoff() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.requeue(popped(queue), (FIT,), (FIT,), Strategy.SKIP, 0.0)
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 0.1)
    assert place(queue, "a") is Place.ACTIVE


def test_activate_passes_over_the_backoff() -> None:
    queue = make_queue(pop_from_backoff=False)
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 0.0)
    queue.activate(["uid-a"], 0.1)
    assert popped(queue, 0.1).uid == "uid-a"


def test_activate_of_a_pod_in_flight_is_kept_for_its_end() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.activate(["uid-a"], 0.0)
    fail(queue, queued, 0.1, "NodeAffinity")
    assert place(queue, "a") is Place.ACTIVE


def test_a_pod_that_nothing_woke_for_five_minutes_is_tried_again() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    fail(queue, popped(queue), 10.0, FIT)
    assert queue.next_deadline() == 330.0
    queue.flush(329.0)
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.flush(330.0)
    queued = popped(queue, 330.0)
    assert queued.flushed


def test_scheduling_gates_keep_a_pod_out_until_they_are_gone() -> None:
    queue = make_queue()
    gated = pod("a", spec={"schedulingGates": [{"name": "wait"}]})
    queue.add(gated, 0.0)
    assert place(queue, "a") is Place.GATED
    queue.move(ClusterEvent(events.NODE_ADD, new=node("n")), 1.0)
    assert place(queue, "a") is Place.GATED
    queue.update(pod("a"), 2.0)
    assert place(queue, "a") is Place.ACTIVE


def gated_preemptor() -> tuple[SchedulingQueue, PreemptionGate]:
    gate = PreemptionGate()
    hints = HintRegistry()
    hints.register(FIT, {events.ASSIGNED_POD_DELETE: events.always})
    hints.register(gate.name, gate.hints)
    queue = SchedulingQueue(hints, (gate,))
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    gate.begin("uid-a", 7)
    fail(queue, queued, 0.0, FIT)
    return queue, gate


def test_a_preemptor_is_gated_while_its_preemption_runs() -> None:
    queue, _gate = gated_preemptor()
    assert place(queue, "a") is Place.UNSCHEDULABLE
    queue.move(ClusterEvent(events.ASSIGNED_POD_DELETE, old=pod("v", node="n")), 5.0)
    queued = queue.get("uid-a")
    assert queued is not None
    assert queued.gating_plugin == DEFAULT_PREEMPTION
    assert queued.gated_by is not None
    assert queued.gated_by.message == "waiting for the preemption for this pod to be finished"


def test_the_opened_gate_lets_go_on_what_stood_at_it() -> None:
    queue, gate = gated_preemptor()
    queue.ungate("uid-a", DEFAULT_PREEMPTION, 1.0)
    assert place(queue, "a") is Place.UNSCHEDULABLE, "nothing has woken it"
    wake_up = ClusterEvent("ResourceClaim/Update", target="uid-a", plugin=REMOTE, at_once=True)
    queue.wake("uid-a", wake_up, 1.0)
    assert place(queue, "a") is Place.GATED
    gate.end("uid-a", 7)
    queue.ungate("uid-a", DEFAULT_PREEMPTION, 1.0)
    assert place(queue, "a") is Place.ACTIVE, "at once, as the wake-up said"


def test_a_newer_preemption_keeps_the_gate_closed() -> None:
    _queue, gate = gated_preemptor()
    gate.begin("uid-a", 8)
    gate.end("uid-a", 7)
    assert gate.pre_enqueue(pod("a")) is not None


def test_remote_plugins_are_asked_before_a_pod_enters() -> None:
    queue = make_queue()
    queue.asks_remote = True
    queue.add(pod("a"), 0.0)
    assert queue.pop(0.0) is None
    ((queued, token),) = queue.entering()
    queue.answer(queued.uid, token, unresolvable("claim not created yet").by(REMOTE), 0.0)
    assert place(queue, "a") is Place.GATED
    queue.wake("uid-a", ClusterEvent("ResourceClaim/Add", target="uid-a", plugin=REMOTE), 1.0)
    ((queued, token),) = queue.entering()
    queue.answer(queued.uid, token, None, 1.0)
    assert popped(queue, 1.0).uid == "uid-a"


def test_a_wake_up_that_overtakes_the_refusal_is_not_lost() -> None:
    queue = make_queue()
    queue.asks_remote = True
    queue.add(pod("a"), 0.0)
    ((queued, token),) = queue.entering()
    queue.wake("uid-a", ClusterEvent("ResourceClaim/Add", target="uid-a", plugin=REMOTE), 0.0)
    queue.answer(queued.uid, token, unresolvable("claim not created yet").by(REMOTE), 0.0)
    ((_, token),) = queue.entering()
    queue.answer("uid-a", token, None, 0.0)
    assert place(queue, "a") is Place.ACTIVE


def test_an_answer_that_is_too_late_is_ignored() -> None:
    queue = make_queue()
    queue.asks_remote = True
    queue.add(pod("a"), 0.0)
    ((_, token),) = queue.entering()
    queue.delete("uid-a")
    queue.add(pod("a"), 1.0)
    queue.answer("uid-a", token - 1, None, 1.0)
    assert place(queue, "a") is Place.ENTERING


def test_a_deleted_pod_is_nowhere() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queue.delete("uid-a")
    assert queue.pop(0.0) is None
    assert not any(queue.counts().values())


def test_a_pod_deleted_in_flight_does_not_come_back() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.delete("uid-a")
    fail(queue, queued, 0.0, FIT)
    assert queue.get("uid-a") is None
    assert "uid-a" not in queue.in_flight


def test_a_pod_comes_back_from_a_failed_binding_with_its_history() -> None:
    queue = make_queue()
    queue.add(pod("a"), 0.0)
    queued = popped(queue)
    queue.binding(queued)
    assert queue.get("uid-a") is None
    queue.back_from_binding(queued, (), Strategy.SKIP, 1.0)
    assert place(queue, "a") is Place.BACKOFF
    assert queued.attempts == 1


def test_the_counts_are_those_of_the_places() -> None:
    queue = make_queue()
    for name in ("a", "b", "c"):
        queue.add(pod(name), 0.0)
    fail(queue, popped(queue), 0.0, FIT)
    popped(queue)
    counts = queue.counts()
    assert (counts[Place.ACTIVE], counts[Place.UNSCHEDULABLE], counts[Place.IN_FLIGHT]) == (1, 1, 1)
