"""The framework on the embedded API in virtual time, with a plugin and a preemption service that note their calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from earmark.framework import record
from earmark.framework.queue.entry import Place
from earmark.kube import objects
from earmark.kube.api import ApiUnavailable
from earmark.runtime.clock import LoopClock
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nomination_extensions_pb2,
    preemption_pb2,
    scheduler_plugin_pb2,
)
from support.embedded_world import World
from support.framework_fakes import NAME, SERVICE, SKIP, UNRESOLVABLE, UNSCHEDULABLE, FakePlugin, Stand, status
from support.framework_objects import manifest, node, pod
from support.uncertain_api import answer_late

pytestmark = pytest.mark.virtual


@pytest.fixture
async def world(clock: LoopClock) -> AsyncIterator[World]:
    world = World(clock)
    yield world
    await world.close()


@pytest.fixture
async def alone(world: World) -> Stand:
    """A framework without remote plugins."""
    stand = Stand(world, plugin=False)
    await stand.start()
    return stand


@pytest.fixture
async def stand(world: World) -> Stand:
    stand = Stand(world)
    await stand.start()
    return stand


def service(stand: Stand) -> Any:
    return framework_pb2_grpc.FrameworkServiceStub(stand.running.core.env.channels.to("framework"))


# --- without plugins -------------------------------------------------------------------------------------------------


async def test_a_pod_is_bound_to_the_emptier_node(alone: Stand) -> None:
    await alone.create(node("n1"), node("n2"))
    await alone.create(pod("a", cpu="1"))
    await alone.world.until(1)
    await alone.create(pod("b", cpu="1"))
    await alone.world.until(2)
    assert {await alone.node_of("a"), await alone.node_of("b")} == {"n1", "n2"}
    events = (await alone.world.api.list(objects.Event)).items
    assert {event.note for event in events} >= {"Successfully assigned default/a to n1"}
    assert alone.metric("scheduler_schedule_attempts_total", result="scheduled", profile="earmark") == 2
    assert alone.metric("scheduler_pod_scheduling_attempts_count") == 2


async def test_pods_of_other_schedulers_are_left_alone(alone: Stand) -> None:
    await alone.create(node("n1"), pod("a", spec={"schedulerName": "somebody-else"}))
    await alone.world.until(60)
    assert await alone.node_of("a") == ""
    assert await alone.condition("a") == ("", "")


async def test_a_pod_that_fits_nowhere_says_why_and_is_woken_by_a_node(alone: Stand) -> None:
    await alone.create(node("n1", cpu="1"), pod("a", cpu="2"))
    await alone.world.until(5)
    reason, message = await alone.condition("a")
    assert reason == "Unschedulable"
    assert message == "0/1 nodes are available: 1 Insufficient cpu. preemption: not helpful"
    await alone.create(node("n2", cpu="4"))
    await alone.world.until(6)
    assert await alone.node_of("a") == "n2"


async def test_without_nodes_a_pod_waits_for_one(alone: Stand) -> None:
    await alone.create(pod("a"))
    await alone.world.until(5)
    assert await alone.condition("a") == ("Unschedulable", "no nodes available to schedule pods")
    await alone.create(node("n1"))
    await alone.world.until(6)
    assert await alone.node_of("a") == "n1"


async def test_what_is_not_implemented_stays_pending_and_is_named(alone: Stand) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "x"}}
    await alone.create(node("n1"), pod("a", spec={"volumes": [volume]}))
    await alone.world.until(60)
    assert await alone.node_of("a") == ""
    _, message = await alone.condition("a")
    assert "spec.volumes[data].persistentVolumeClaim" in message


async def test_the_same_failure_is_neither_written_nor_recorded_twice(alone: Stand) -> None:
    await alone.create(node("n1", cpu="1"), pod("a", cpu="2"))
    await alone.world.until(5)
    before = (await alone.world.pod("a")).metadata.resource_version
    await service(alone).ActivatePods(
        framework_pb2.ActivatePodsRequest(pods=[common_pb2.PodReference(namespace="default", name="a")]), timeout=1
    )
    await alone.world.until(6)
    assert alone.metric("scheduler_schedule_attempts_total", result="unschedulable", profile="earmark") == 2
    assert (await alone.world.pod("a")).metadata.resource_version == before
    events = [e for e in (await alone.world.api.list(objects.Event)).items if e.reason == "FailedScheduling"]
    assert len(events) == 1


async def test_each_start_raises_the_epoch(alone: Stand) -> None:
    await alone.world.until(1)
    assert alone.running.core.epoch == 1
    await alone.start_framework()
    await alone.world.until(2)
    assert alone.running.core.epoch == 2


async def test_an_api_that_is_away_only_makes_it_wait(alone: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    await alone.create(node("n1"))
    await alone.world.until(1)
    api = alone.world.api
    bind = api.bind

    async def away(*_arguments: Any) -> None:
        raise ApiUnavailable("gone fishing")

    monkeypatch.setattr(api, "bind", away)
    await alone.create(pod("a"))
    await alone.world.until(20)
    assert await alone.node_of("a") == ""
    monkeypatch.setattr(api, "bind", bind)
    await alone.world.until(25)
    assert await alone.node_of("a") == "n1"


async def test_a_binding_that_was_done_though_the_server_failed_counts(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stand.create(node("n1"))
    await stand.world.until(1)
    left = answer_late(monkeypatch, stand.world.api, "bind")
    await stand.create(pod("a"))
    await stand.world.until(3)
    assert (left, await stand.node_of("a")) == ([0], "n1")
    assert not stand.plugin.requests("Unreserve"), "what a bound pod uses is not given back"
    assert stand.plugin.requests("EndCycle")[-1].outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND


# --- a cycle with a plugin -------------------------------------------------------------------------------------------


async def test_the_calls_of_a_cycle_come_in_order(stand: Stand) -> None:
    await stand.create(node("n1"), node("n2"), pod("a"))
    await stand.world.until(2)
    assert await stand.node_of("a") == "n1"
    cycle = [name for name in stand.plugin.names() if name not in ("OpenSession", "WatchWakeUps")]
    assert cycle == ["PreEnqueue", "PreFilter", "Filter", "Score", "Reserve", "PreBind", "EndCycle"]
    (ended,) = stand.plugin.requests("EndCycle")
    assert ended.outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND


async def test_a_plugin_that_skips_is_asked_no_more(stand: Stand) -> None:
    stand.plugin.pre_filter = status(SKIP)
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(2)
    assert await stand.node_of("a") == "n1"
    assert "Filter" not in stand.plugin.names()
    assert "Reserve" not in stand.plugin.names()


async def test_all_nodes_that_passed_here_are_asked_about_in_one_call(stand: Stand) -> None:
    await stand.create(*(node(f"n{number}") for number in range(5)), node("bad", unschedulable=True))
    await stand.create(pod("a"))
    await stand.world.until(2)
    (request,) = stand.plugin.requests("Filter")
    assert sorted(request.nodes) == ["n0", "n1", "n2", "n3", "n4"]


async def test_a_gated_pod_waits_for_the_plugins_wake_up(stand: Stand) -> None:
    stand.plugin.pre_enqueue = status(UNRESOLVABLE, "claim not created yet")
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(60)
    assert "PreFilter" not in stand.plugin.names()
    stand.plugin.pre_enqueue = common_pb2.Status()
    uid = (await stand.world.pod("a")).metadata.uid
    wake_up = scheduler_plugin_pb2.WatchWakeUpsResponse(
        number=1, pods=[common_pb2.PodReference(uid=uid)], event="ResourceClaim/Add"
    )
    stand.plugin.wake_ups.put_nowait(wake_up)
    await stand.world.until(61)
    assert await stand.node_of("a") == "n1"


async def test_a_plugin_that_is_away_is_an_error_that_is_retried(stand: Stand) -> None:
    await stand.create(node("n1"))
    await stand.world.until(1)
    stand.world.network.remove(SERVICE)
    await stand.create(pod("a"))
    await stand.world.until(30)
    assert await stand.node_of("a") == ""
    stand.plugin.instance = "second"
    stand.serve_plugin()
    await stand.world.until(45)
    assert await stand.node_of("a") == "n1"
    assert len(stand.plugin.requests("OpenSession")) == 2


async def test_a_plugin_that_starts_again_gets_the_sleepers(stand: Stand) -> None:
    stand.plugin.filter = lambda _node, _removed: status(UNSCHEDULABLE, "cannot allocate all claims")
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(2)
    stand.plugin.wake_ups.put_nowait(scheduler_plugin_pb2.WatchWakeUpsResponse(number=17))
    await stand.world.until(3)
    stand.world.network.remove(SERVICE)
    stand.plugin = FakePlugin("second")
    stand.serve_plugin()
    await stand.world.until(10)
    streams = stand.plugin.requests("WatchWakeUps")
    assert [[pod.name for pod in stream.sleepers] for stream in streams] == [["a"]]
    assert streams[0].last_number == 0


async def test_a_broken_stream_of_the_same_plugin_goes_on_where_it_was(stand: Stand) -> None:
    await stand.world.until(1)
    stand.plugin.wake_ups.put_nowait(scheduler_plugin_pb2.WatchWakeUpsResponse(number=17))
    await stand.world.until(2)
    stand.serve_plugin()
    await stand.world.until(6)
    assert [request.last_number for request in stand.plugin.requests("WatchWakeUps")] == [0, 17]
    assert len(stand.plugin.requests("OpenSession")) == 1, "the session is still good"


async def test_rejections_are_told_at_the_end_of_the_cycle(stand: Stand) -> None:
    stand.plugin.filter = lambda _node, _removed: status(UNSCHEDULABLE, "cannot allocate all claims")
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(2)
    (ended,) = stand.plugin.requests("EndCycle")
    assert ended.outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN
    await stand.create(pod("b", cpu="99"))
    await stand.world.until(4)
    assert stand.plugin.requests("EndCycle")[-1].outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_OTHERS


async def test_a_failed_reserve_is_undone_and_speaks_of_one_node(stand: Stand) -> None:
    stand.plugin.reserve = status(UNSCHEDULABLE, "taken by another pod")
    await stand.create(node("n1"), node("n2"), pod("a"))
    await stand.world.until(0.5)
    assert await stand.condition("a") == (
        "Unschedulable",
        "0/1 nodes are available: 1 taken by another pod.",
    )
    assert stand.plugin.requests("Unreserve")
    assert not stand.running.core.cache.assumed((await stand.world.pod("a")).metadata.uid)


async def test_a_failed_pre_bind_puts_the_pod_back(stand: Stand) -> None:
    stand.plugin.pre_bind = status(common_pb2.STATUS_CODE_ERROR, "no")
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(0.5)
    assert (await stand.condition("a"))[0] == "SchedulerError"
    (undone,) = stand.plugin.requests("Unreserve")
    assert (undone.reservation, undone.preempted) == ("kept", False)
    stand.plugin.pre_bind = common_pb2.Status()
    await stand.world.until(5)
    assert await stand.node_of("a") == "n1"


@pytest.mark.kep("E25")
async def test_a_pod_in_pre_bind_can_be_preempted_without_deleting_it(stand: Stand) -> None:
    stand.plugin.pre_bind_waits = asyncio.Event()
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(2)
    uid = (await stand.world.pod("a")).metadata.uid
    request = framework_pb2.PreemptPodRequest(pod=common_pb2.PodReference(uid=uid))
    assert (await service(stand).PreemptPod(request, timeout=1)).preempted
    assert not (await service(stand).PreemptPod(request, timeout=1)).preempted, "only the first time"
    await stand.world.until(2.5)
    (undone,) = stand.plugin.requests("Unreserve")
    assert undone.preempted
    assert stand.running.core.queue.get(uid) is not None
    stand.plugin.pre_bind_waits.set()
    await stand.world.until(10)
    assert await stand.node_of("a") == "n1"


async def test_a_bound_pod_cannot_be_preempted_in_memory(stand: Stand) -> None:
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(2)
    uid = (await stand.world.pod("a")).metadata.uid
    request = framework_pb2.PreemptPodRequest(pod=common_pb2.PodReference(uid=uid))
    assert not (await service(stand).PreemptPod(request, timeout=1)).preempted


# --- preemption ------------------------------------------------------------------------------------------------------


async def with_victim(stand: Stand) -> common_pb2.PodReference:
    """A node full with a victim."""
    await stand.create(node("n1", cpu="1"), pod("v", cpu="1", node="n1"))
    await stand.world.until(1)
    meta = (await stand.world.pod("v")).metadata
    return common_pb2.PodReference(namespace="default", name="v", uid=meta.uid)


async def preemptor(stand: Stand) -> None:
    await stand.world.apply(
        {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000, "apiVersion": "scheduling.k8s.io/v1"}
    )
    wanted = manifest(pod("p", cpu="1"))
    wanted["spec"]["priorityClassName"] = "high"
    await stand.world.apply(wanted)


@pytest.mark.kep("E34", "F14")
async def test_a_nomination_is_written_and_confirmed_before_it_is_executed(stand: Stand) -> None:
    victim = await with_victim(stand)
    stand.preemption.node, stand.preemption.victims = "n1", [victim]
    await preemptor(stand)
    await stand.world.until(2)
    found = await stand.world.pod("p")
    assert found.status.nominated_node_name == "n1"
    assert json.loads(found.metadata.annotations[record.ANNOTATION]) == {
        "version": 1,
        "deployment": (await stand.world.api.get(objects.Lease, "earmark-scheduler", "kube-system")).metadata.uid,
        "node": "n1",
        "generation": 41,
        "victims": [{"namespace": "default", "name": "v", "uid": victim.uid}],
        "plugins": {NAME: {"held": ["gpu-0"]}},
    }
    names = stand.plugin.names()
    begin = names.index("Preempt")
    assert names[begin : begin + 4] == ["Preempt", "ConfirmNominatedPod", "EndCycle", "Execute"]
    assert (await stand.condition("p"))[1] == "0/1 nodes are available: 1 Insufficient cpu. preemption: found"


async def test_the_input_of_a_preemption_has_what_it_needs(stand: Stand) -> None:
    victim = await with_victim(stand)
    await stand.create(node("n2", cpu="1", unschedulable=True))
    await preemptor(stand)
    await stand.world.until(2)
    given = stand.plugin.requests("Preempt")[0].input
    assert [item.name for item in given.nodes] == ["n1", "n2"]
    assert [given.statuses[item.status].plugin for item in given.nodes] == ["NodeResourcesFit", "NodeUnschedulable"]
    assert [item.pod.uid for item in given.pods] == [victim.uid]
    assert list(given.nodes[0].pods) == [0]
    assert list(given.nodes[1].pods) == []
    assert [item.plugin for item in given.plugin_cycles] == [NAME]


async def test_a_round_filters_forks_here_and_in_the_plugin(stand: Stand) -> None:
    await with_victim(stand)
    answers: list[common_pb2.NodeVerdicts] = []

    async def rounds(request: Any) -> None:
        for removed in ([], [0]):
            query = common_pb2.NodeQuery(node=0, removed=removed)
            round_ = framework_pb2.DryRunFilterRequest(cycle_id=request.input.cycle_id, queries=[query])
            answers.append((await service(stand).DryRunFilter(round_, timeout=5)).verdicts)

    stand.preemption.meanwhile = rounds
    await preemptor(stand)
    await stand.world.until(2)
    full, free = answers
    assert full.statuses[full.verdicts[0]].reasons == ["Insufficient cpu"]
    assert free.statuses[free.verdicts[0]].code == common_pb2.STATUS_CODE_SUCCESS
    (forks,) = stand.plugin.requests("FilterForks")
    assert list(forks.pod_uids) == [(await stand.world.pod("v")).metadata.uid]


async def test_a_nomination_that_is_not_confirmed_is_not_executed(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    stand.plugin.confirm_fails = True
    await preemptor(stand)
    await stand.world.until(1.5)
    assert not stand.plugin.requests("Execute")
    assert (await stand.world.pod("p")).status.nominated_node_name == ""
    assert stand.running.core.nominator.all() == ()


@pytest.mark.kep("E49", "F15")
async def test_a_victim_that_is_not_deleted_ends_the_nomination(stand: Stand) -> None:
    victim = await with_victim(stand)
    stand.preemption.node, stand.preemption.victims = "n1", [victim]
    stand.preemption.outcome = preemption_pb2.VICTIM_OUTCOME_FAILED
    await preemptor(stand)
    await stand.world.until(1)
    for _ in range(300):
        await stand.world.clock.sleep(0)
        if stand.plugin.requests("RemoveNominatedPod"):
            stand.preemption.node = ""
    removed = stand.plugin.requests("RemoveNominatedPod")[0]
    assert removed.reason == nomination_extensions_pb2.REMOVE_REASON_EXECUTION_FAILED
    assert list(removed.victims_not_deleted) == [victim.uid]
    await stand.world.until(3)
    found = await stand.world.pod("p")
    assert found.status.nominated_node_name == ""
    assert record.ANNOTATION not in found.metadata.annotations
    assert len(stand.plugin.requests("Preempt")) >= 2, "it is tried again at once"


async def test_the_preemptor_is_gated_while_its_preemption_runs(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    stand.preemption.execute_waits = asyncio.Event()
    await preemptor(stand)
    await stand.world.until(2)
    await stand.create(node("n2"))
    await stand.world.until(3)
    uid = (await stand.world.pod("p")).metadata.uid
    queued = stand.running.core.queue.get(uid)
    assert queued is not None
    assert queued.place is not Place.ACTIVE
    stand.preemption.execute_waits.set()
    await stand.world.api.delete(objects.Pod, "v", "default", grace_period_seconds=0)
    await stand.world.until(5)
    assert await stand.node_of("p") in ("n1", "n2")
    reasons = [request.reason for request in stand.plugin.requests("RemoveNominatedPod")]
    assert reasons == [
        nomination_extensions_pb2.REMOVE_REASON_ASSUMED,
        nomination_extensions_pb2.REMOVE_REASON_BOUND,
    ]


@pytest.mark.kep("E44", "D16")
async def test_a_deleted_preemptor_loses_its_nomination(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    await preemptor(stand)
    await stand.world.until(2)
    await stand.world.api.delete(objects.Pod, "p", "default")
    await stand.world.until(3)
    (removed,) = stand.plugin.requests("RemoveNominatedPod")
    assert removed.reason == nomination_extensions_pb2.REMOVE_REASON_POD_DELETED
    assert stand.running.core.nominator.all() == ()


@pytest.mark.kep("D32")
async def test_nominations_of_lower_priority_are_cleared_on_request(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    await preemptor(stand)
    await stand.world.until(2)
    stub = service(stand)
    request = framework_pb2.ClearNominationsRequest(node_name="n1", below_priority=1000)
    assert not (await stub.ClearNominations(request, timeout=5)).pods
    request.below_priority = 1001
    assert [pod.name for pod in (await stub.ClearNominations(request, timeout=5)).pods] == ["p"]
    assert (await stand.world.pod("p")).status.nominated_node_name == ""
    (removed,) = stand.plugin.requests("RemoveNominatedPod")
    assert removed.reason == nomination_extensions_pb2.REMOVE_REASON_CLEARED


@pytest.mark.kep("E58")
async def test_pass_one_of_a_plugin_adds_the_nominated_pods_of_a_node(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    await preemptor(stand)
    await stand.world.until(2)
    await stand.create(pod("q"))
    await stand.world.until(3)
    request = stand.plugin.requests("Filter")[-1]
    assert list(request.nodes) == ["n1"]
    assert [request.pod_uids[index] for index in request.queries[0].nominated] == [
        (await stand.world.pod("p")).metadata.uid
    ]


# --- restarts --------------------------------------------------------------------------------------------------------


async def nominated_and_stopped(stand: Stand) -> None:
    stand.preemption.node, stand.preemption.victims = "n1", [await with_victim(stand)]
    await preemptor(stand)
    await stand.world.until(2)
    stand.world.stop("framework")
    stand.plugin.calls.clear()


async def test_a_restarted_scheduler_hands_over_its_nominations(stand: Stand) -> None:
    await nominated_and_stopped(stand)
    await stand.world.api.delete(objects.Pod, "v", "default")
    await stand.start_framework()
    await stand.world.until(3)
    opened = stand.plugin.requests("OpenSession")[0]
    assert opened.epoch == 2
    (nomination,) = opened.nominations
    assert (nomination.pod.name, nomination.node_name, nomination.generation) == ("p", "n1", 41)
    assert json.loads(nomination.records[NAME]) == {"held": ["gpu-0"]}
    assert not stand.plugin.requests("RemoveNominatedPod")
    assert (await stand.world.pod("p")).status.nominated_node_name == "n1"


async def test_a_victim_that_was_never_deleted_ends_the_nomination_at_the_restart(stand: Stand) -> None:
    await nominated_and_stopped(stand)
    stand.preemption.node = ""
    await stand.start_framework()
    await stand.world.until(3)
    removed = stand.plugin.requests("RemoveNominatedPod")[0]
    assert removed.reason == nomination_extensions_pb2.REMOVE_REASON_EXECUTION_FAILED
    assert list(removed.victims_not_deleted) == [(await stand.world.pod("v")).metadata.uid]
    assert (await stand.world.pod("p")).status.nominated_node_name == ""


@pytest.mark.kep("E52", "F44")
async def test_without_persistence_only_the_node_is_known_after_a_restart(world: World) -> None:
    stand = Stand(world)
    stand.settings = replace(stand.settings, nomination_persistence="none")
    await stand.start()
    await nominated_and_stopped(stand)
    await stand.start_framework()
    await stand.world.until(2.5)
    assert not stand.plugin.requests("OpenSession")[0].nominations


# --- what-if and explanations ----------------------------------------------------------------------------------------


async def test_a_what_if_leaves_nothing_behind(stand: Stand) -> None:
    await with_victim(stand)
    wanted = pod("imagined", cpu="1", priority=1000)
    request = framework_pb2.OpenDryRunRequest(
        pod=common_pb2.PodInput(
            pod=common_pb2.PodReference(namespace="default", name="imagined", uid="uid-imagined"),
            priority=1000,
            manifest=msgspec.json.encode(wanted).decode(),
        )
    )
    stub = service(stand)
    answer = await stub.OpenDryRun(request, timeout=5)
    assert answer.fits_on == ""
    assert len(answer.input.pods) == 1
    query = common_pb2.NodeQuery(node=0, removed=[0])
    round_ = framework_pb2.DryRunFilterRequest(cycle_id=answer.input.cycle_id, queries=[query])
    verdicts = (await stub.DryRunFilter(round_, timeout=5)).verdicts
    assert verdicts.statuses[verdicts.verdicts[0]].code == common_pb2.STATUS_CODE_SUCCESS
    close = framework_pb2.CloseDryRunRequest(cycle_id=answer.input.cycle_id)
    await stub.CloseDryRun(close, timeout=5)
    await stub.CloseDryRun(close, timeout=5)
    assert len(stand.plugin.requests("CloseSession")) == 1
    with pytest.raises(Exception, match="no cycle"):
        await stub.DryRunFilter(round_, timeout=5)


async def test_a_pod_is_explained(stand: Stand) -> None:
    await with_victim(stand)
    await preemptor(stand)
    await stand.world.until(2)
    reference = common_pb2.PodReference(namespace="default", name="p")
    answer = await service(stand).ExplainPod(framework_pb2.ExplainPodRequest(pod=reference), timeout=1)
    assert answer.where == "unschedulable"
    assert answer.attempts == 1
    assert list(answer.waits_for) == ["NodeResourcesFit"]
    assert [(list(item.status.reasons), list(item.nodes)) for item in answer.reasons] == [
        (["Insufficient cpu"], ["n1"])
    ]
    (listed,) = (await service(stand).ListQueue(framework_pb2.ListQueueRequest(), timeout=1)).pods
    assert (listed.pod.name, listed.queue, listed.priority) == ("p", "unschedulable", 1000)
    bound = common_pb2.PodReference(namespace="default", name="v")
    assert (await service(stand).ExplainPod(framework_pb2.ExplainPodRequest(pod=bound), timeout=1)).where == "bound"


@pytest.mark.kep("F14")
async def test_a_victim_that_cannot_be_deleted_for_good_is_not_tried_without_a_pause(stand: Stand) -> None:
    victim = await with_victim(stand)
    stand.preemption.node, stand.preemption.victims = "n1", [victim]
    stand.preemption.outcome = preemption_pb2.VICTIM_OUTCOME_FAILED
    await preemptor(stand)
    await stand.world.until(1.5)
    assert len(stand.plugin.requests("Execute")) == 2, "the second time at once"
    await stand.world.until(61)
    assert len(stand.plugin.requests("Execute")) < 12, "then less and less often, every 10 s in the end"
    stand.preemption.outcome = preemption_pb2.VICTIM_OUTCOME_DELETED
    await stand.world.until(75)
    assert (await stand.world.pod("p")).status.nominated_node_name == "n1"
