"""Each call that the contract calls idempotent is sent twice: the same answer, and the same state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from earmark.kube import objects
from earmark.v1 import (
    claim_controller_pb2,
    claim_controller_pb2_grpc,
    common_pb2,
    explanation_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    nomination_extensions_pb2,
    preemption_pb2,
    preemption_pb2_grpc,
    scheduler_plugin_pb2,
    settlement_pb2,
)
from support.contract_plugin import REJECTED, SUCCESS, UNSCHEDULABLE, Scheduler
from support.contract_rpcs import RPCS
from support.contract_stack import Stack
from support.contract_state import plugin_state

# Calls that make something new each time; what they made is ended by calls that are idempotent.
MAKE_SOMETHING = {
    # A session; the scheduler's ends the one before it, see test_a_repeated_handshake_takes_over_the_same_nominations.
    "SchedulerPluginService/OpenSession",
    # A cycle; it ends the pod's cycle before it.
    "SchedulerPluginService/PreFilter",
    # A reservation; see test_a_second_reserve_is_refused_and_takes_nothing.
    "SchedulerPluginService/Reserve",
    "FrameworkService/OpenDryRun",
    # A decision.
    "PreemptionService/Preempt",
    "PreemptionService/DryRun",
}
STREAMS = {"SchedulerPluginService/WatchWakeUps", "SettlementService/WatchSettlements"}
# Filled by the tests, read by the last one: `make test` distributes whole files.
_sent_twice: dict[str, None] = {}


def _undated(message: Any) -> Any:
    # Computed anew from how long ago it was, in microseconds.
    for item in (message, *getattr(message, "pods", ())):
        if hasattr(item, "since"):
            item.ClearField("since")
    return message


async def twice(rpc: str, call: Any, request: Any, state: Callable[[], Any]) -> Any:
    """Send a request twice and compare; return the answer."""
    _sent_twice[rpc] = None
    assert rpc in RPCS
    first = await call(request, timeout=30)
    after = state()
    after = await after if inspect.isawaitable(after) else after
    second = await call(request, timeout=30)
    again = state()
    again = await again if inspect.isawaitable(again) else again
    assert _undated(second) == _undated(first)
    assert again == after
    return first


# --- sessions ----------------------------------------------------------------------------------------------------------


async def test_describe_and_sessions(scheduler: Scheduler) -> None:
    state, plugin = plugin_state(scheduler), scheduler.plugin
    describe = scheduler_plugin_pb2.DescribeRequest()
    await twice("SchedulerPluginService/Describe", plugin.Describe, describe, state)
    sandbox = await scheduler.sandbox()
    for session in (scheduler.session, sandbox.session):
        keep = scheduler_plugin_pb2.KeepSessionRequest(session=session)
        await twice("SchedulerPluginService/KeepSession", plugin.KeepSession, keep, state)
        close = scheduler_plugin_pb2.CloseSessionRequest(session=session)
        await twice("SchedulerPluginService/CloseSession", plugin.CloseSession, close, state)


@pytest.mark.kep("E51")
async def test_a_repeated_handshake_takes_over_the_same_nominations(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    nomination = await scheduler.nominate("p", "v")
    first = await scheduler.open(nomination)
    listed = await scheduler.listed()
    second = await scheduler.open(nomination)
    assert list(first.held) == list(second.held) == [nomination.pod.uid]
    assert first.highest_generation == second.highest_generation == nomination.generation
    assert first.session.id != second.session.id
    assert await scheduler.listed() == listed


# --- a cycle -----------------------------------------------------------------------------------------------------------


async def test_pre_enqueue(scheduler: Scheduler) -> None:
    # One that may enter, one whose claim is missing.
    await scheduler.stack.pod("x", claim="missing")
    pods = [await scheduler.pod_input("v"), await scheduler.pod_input("x")]
    request = scheduler_plugin_pb2.PreEnqueueRequest(session=scheduler.session, pods=pods)
    call = scheduler.plugin.PreEnqueue
    answer = await twice("SchedulerPluginService/PreEnqueue", call, request, plugin_state(scheduler))
    assert [status.code for status in answer.statuses] == [
        SUCCESS,
        common_pb2.STATUS_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
    ]


async def test_filter_score_and_post_filter(scheduler: Scheduler) -> None:
    state, plugin = plugin_state(scheduler), scheduler.plugin
    cycle: dict[str, Any] = {"session": scheduler.session, "cycle_id": await scheduler.pre_filter("v")}
    queries = [common_pb2.NodeQuery(node=0), common_pb2.NodeQuery(node=1), common_pb2.NodeQuery(node=0)]
    request = scheduler_plugin_pb2.FilterRequest(**cycle, nodes=["n1", "n2"], queries=queries)
    verdicts = (await twice("SchedulerPluginService/Filter", plugin.Filter, request, state)).verdicts
    assert [verdicts.statuses[index].code for index in verdicts.verdicts] == [SUCCESS, UNSCHEDULABLE, SUCCESS]
    score = scheduler_plugin_pb2.ScoreRequest(**cycle, nodes=["n1"])
    await twice("SchedulerPluginService/Score", plugin.Score, score, state)
    post = scheduler_plugin_pb2.PostFilterRequest(**cycle)
    await twice("SchedulerPluginService/PostFilter", plugin.PostFilter, post, state)


async def test_forks(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    state, plugin = plugin_state(scheduler), scheduler.plugin
    victim = await scheduler.ref("v")
    cycle: dict[str, Any] = {"session": scheduler.session, "cycle_id": await scheduler.pre_filter("p")}
    request = scheduler_plugin_pb2.FilterForksRequest(
        **cycle, nodes=["n1"], pod_uids=[victim.uid], queries=[common_pb2.NodeQuery(node=0, removed=[0])]
    )
    verdicts = (await twice("SchedulerPluginService/FilterForks", plugin.FilterForks, request, state)).verdicts
    assert verdicts.statuses[0].code == SUCCESS
    remove = scheduler_plugin_pb2.RemovePodRequest(**cycle, node_name="n1", pod=victim)
    await twice("SchedulerPluginService/RemovePod", plugin.RemovePod, remove, state)
    add = scheduler_plugin_pb2.AddPodRequest(**cycle, node_name="n1", pod=await scheduler.ref("q"))
    await twice("SchedulerPluginService/AddPod", plugin.AddPod, add, state)


async def test_a_second_reserve_is_refused_and_takes_nothing(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    state = plugin_state(scheduler)
    before = state()
    request = scheduler_plugin_pb2.ReserveRequest(session=scheduler.session, cycle_id=cycle_id, node_name="n1")
    answer = await scheduler.plugin.Reserve(request, timeout=5)
    assert answer.status.code == UNSCHEDULABLE
    assert state() == before


async def test_unreserve(scheduler: Scheduler) -> None:
    _, reservation = await scheduler.reserve("v")
    request = scheduler_plugin_pb2.UnreserveRequest(
        session=scheduler.session, pod=await scheduler.ref("v"), node_name="n1", reservation=reservation
    )
    call = scheduler.plugin.Unreserve
    await twice("SchedulerPluginService/Unreserve", call, request, plugin_state(scheduler))
    assert scheduler.component.core.world.reservations == {}
    # Also without Reserve's answer.
    await scheduler.reserve("v")
    request.reservation = ""
    await twice("SchedulerPluginService/Unreserve", call, request, plugin_state(scheduler))
    assert scheduler.component.core.world.reservations == {}
    assert await scheduler.filter(await scheduler.pre_filter("p")) == SUCCESS


async def test_unreserve_after_pre_bind_takes_back_what_was_written_once(scheduler: Scheduler) -> None:
    cycle_id, reservation = await scheduler.reserve("v")
    bind = scheduler_plugin_pb2.PreBindRequest(session=scheduler.session, cycle_id=cycle_id, node_name="n1")
    assert (await scheduler.plugin.PreBind(bind, timeout=10)).status.code == SUCCESS
    request = scheduler_plugin_pb2.UnreserveRequest(
        session=scheduler.session, pod=await scheduler.ref("v"), node_name="n1", reservation=reservation
    )

    async def claim() -> Any:
        found = await scheduler.stack.world.api.get(objects.ResourceClaim, "v-gpu", "default")
        return found.status.reserved_for, found.metadata.resource_version

    await twice("SchedulerPluginService/Unreserve", scheduler.plugin.Unreserve, request, claim)
    assert (await claim())[0] == ()


async def test_pre_bind(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    request = scheduler_plugin_pb2.PreBindRequest(session=scheduler.session, cycle_id=cycle_id, node_name="n1")

    async def claim() -> Any:
        return await scheduler.stack.world.api.get(objects.ResourceClaim, "v-gpu", "default")

    answer = await twice("SchedulerPluginService/PreBind", scheduler.plugin.PreBind, request, claim)
    assert answer.status.code == SUCCESS


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND, scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP),
        (REJECTED, scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP),
        (scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_OTHERS, scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP),
        (scheduler_plugin_pb2.CYCLE_OUTCOME_ERROR, scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP),
        (scheduler_plugin_pb2.CYCLE_OUTCOME_POD_DELETED, scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP),
    ],
)
async def test_end_cycle(scheduler: Scheduler, outcome: Any, verdict: int) -> None:
    await scheduler.place("v")
    request = scheduler_plugin_pb2.EndCycleRequest(
        session=scheduler.session,
        pod=await scheduler.ref("p"),
        cycle_id=await scheduler.pre_filter("p"),
        outcome=outcome,
    )
    call = scheduler.plugin.EndCycle
    answer = await twice("SchedulerPluginService/EndCycle", call, request, plugin_state(scheduler))
    assert answer.verdict == verdict
    sleeps = [pod.name for pod in scheduler.component.core.wake_ups.sleepers]
    assert sleeps == (["p"] if outcome == REJECTED else [])


async def test_end_cycle_after_something_has_happened(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    cycle_id = await scheduler.pre_filter("p")
    assert await scheduler.filter(cycle_id) == UNSCHEDULABLE
    revision = scheduler.component.core.world.revision
    more = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    await scheduler.stack.world.api.patch(objects.ResourceSlice, "n1-gpu", "", {"spec": {"devices": more}})
    await scheduler.stack.until(lambda: scheduler.component.core.world.revision > revision)
    request = scheduler_plugin_pb2.EndCycleRequest(
        session=scheduler.session, pod=await scheduler.ref("p"), cycle_id=cycle_id, outcome=REJECTED
    )
    call = scheduler.plugin.EndCycle
    answer = await twice("SchedulerPluginService/EndCycle", call, request, plugin_state(scheduler))
    assert answer.verdict == scheduler_plugin_pb2.SLEEP_VERDICT_QUEUE
    assert scheduler.component.core.wake_ups.sleepers == ()


# --- nominations -------------------------------------------------------------------------------------------------------


@pytest.mark.kep("E49")
async def test_nominations(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    state, nominations = plugin_state(scheduler), scheduler.nominations
    service = "NominationExtensionsService"
    pod = await scheduler.ref("p")
    cycle_id = await scheduler.pre_filter("p")
    add = nomination_extensions_pb2.AddNominatedPodRequest(
        session=scheduler.session,
        cycle_id=cycle_id,
        pod=pod,
        node_name="n1",
        victims=[await scheduler.ref("v")],
        generation=1,
        priority=100,
    )

    def but_when(answer_state: Any) -> Any:
        # A repeated proposal is dated anew.
        return [(item.pod, item.generation, item.phase, item.devices) for item in answer_state[3].all()], answer_state[
            4:
        ]

    answer = await twice(f"{service}/AddNominatedPod", nominations.AddNominatedPod, add, state)
    assert answer.record
    confirm = nomination_extensions_pb2.ConfirmNominatedPodRequest(session=scheduler.session, pod=pod, generation=1)
    await twice(f"{service}/ConfirmNominatedPod", nominations.ConfirmNominatedPod, confirm, state)
    await scheduler.end("p", cycle_id, REJECTED)
    eligible = nomination_extensions_pb2.PodEligibleToPreemptRequest(session=scheduler.session, pod=pod, node_name="n1")
    answer = await twice(f"{service}/PodEligibleToPreempt", nominations.PodEligibleToPreempt, eligible, state)
    assert not answer.eligible
    for listing in (
        nomination_extensions_pb2.ListNominationsRequest(session=scheduler.session),
        nomination_extensions_pb2.ListNominationsRequest(),
    ):
        answer = await twice(f"{service}/ListNominations", nominations.ListNominations, listing, state)
        assert [item.pod.name for item in answer.nominations] == ["p"]
        assert [item.name for item in answer.victim_claims] == ["v-gpu"]
    for reason in ("ASSUMED", "CLEARED", "EXECUTION_FAILED", "BOUND", "POD_DELETED"):
        remove = nomination_extensions_pb2.RemoveNominatedPodRequest(
            session=scheduler.session,
            pod=pod,
            generation=1,
            reason=nomination_extensions_pb2.RemoveReason.Value(f"REMOVE_REASON_{reason}"),
            victims_not_deleted=[(await scheduler.ref("v")).uid] if reason == "EXECUTION_FAILED" else [],
        )
        await twice(f"{service}/RemoveNominatedPod", nominations.RemoveNominatedPod, remove, state)
    assert (await scheduler.listed()).nominations == []


async def test_a_proposal_that_is_repeated_after_its_confirmation_is_the_nomination(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    cycle_id = await scheduler.pre_filter("p")
    pod = await scheduler.ref("p")
    add = nomination_extensions_pb2.AddNominatedPodRequest(
        session=scheduler.session,
        cycle_id=cycle_id,
        pod=pod,
        node_name="n1",
        victims=[await scheduler.ref("v")],
        generation=1,
        priority=100,
    )
    first = await scheduler.nominations.AddNominatedPod(add, timeout=5)
    confirm = nomination_extensions_pb2.ConfirmNominatedPodRequest(session=scheduler.session, pod=pod, generation=1)
    await scheduler.nominations.ConfirmNominatedPod(confirm, timeout=5)
    listed = await scheduler.listed()
    assert await scheduler.nominations.AddNominatedPod(add, timeout=5) == first
    assert await scheduler.listed() == listed
    await scheduler.end("p", cycle_id, REJECTED)
    assert await scheduler.listed() == listed
    assert [item.name for item in listed.victim_claims] == ["v-gpu"]


@pytest.mark.kep("E48")
async def test_a_late_removal_does_not_touch_a_newer_generation(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    first = await scheduler.nominate("p", "v")
    second = await scheduler.nominate("p", "v")
    remove = nomination_extensions_pb2.RemoveNominatedPodRequest(
        session=scheduler.session,
        pod=first.pod,
        generation=first.generation,
        reason=nomination_extensions_pb2.REMOVE_REASON_CLEARED,
    )
    call = scheduler.nominations.RemoveNominatedPod
    service = "NominationExtensionsService"
    await twice(f"{service}/RemoveNominatedPod", call, remove, plugin_state(scheduler))
    assert [item.generation for item in (await scheduler.listed()).nominations] == [second.generation]


async def test_settlements(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    call = RPCS["SettlementService/ListSettlements"].on(scheduler.stack.channel("dynamicresources"))
    request = settlement_pb2.ListSettlementsRequest(open_only=True)
    answer = await twice("SettlementService/ListSettlements", call, request, plugin_state(scheduler))
    assert [item.preemptor.name for item in answer.settlements] == ["p"]


async def test_explain_devices(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    pod = await scheduler.ref("p")
    call = RPCS["ExplanationService/ExplainDevices"].on(scheduler.stack.channel("dynamicresources"))
    request = explanation_pb2.ExplainDevicesRequest(pod=pod)
    answer = await twice("ExplanationService/ExplainDevices", call, request, plugin_state(scheduler))
    assert [item.claim for node in answer.nodes for item in node.devices] == ["default/v-gpu"]


# --- the other services ------------------------------------------------------------------------------------------------


async def test_execute_deletes_each_victim_once(services: Stack) -> None:
    await services.pod("v", grace=600)

    async def runs() -> bool:
        return (await services.world.pod("v")).status.phase == "Running"

    await services.until(runs)
    victim = await services.world.pod("v")
    # Nobody schedules it: what happens is the call's doing.
    await services.pod("p", "high", scheduler="somebody-else")
    preemptor = await services.world.pod("p")
    nomination = common_pb2.Nomination(
        pod=common_pb2.PodReference(namespace="default", name="p", uid=preemptor.metadata.uid),
        node_name="n1",
        generation=1,
        priority=100,
        victims=[common_pb2.PodReference(namespace="default", name="v", uid=victim.metadata.uid)],
    )
    stub: Any = preemption_pb2_grpc.PreemptionServiceStub(services.channel("preemption"))

    async def state() -> Any:
        found = await services.world.pod("v")
        events = await services.world.api.list(objects.Event)
        return found, [event.metadata.name for event in events.items if event.reason == "Preempted"]

    request = preemption_pb2.ExecuteRequest(nomination=nomination)
    answer = await twice("PreemptionService/Execute", stub.Execute, request, state)
    assert [result.outcome for result in answer.victims] == [preemption_pb2.VICTIM_OUTCOME_DELETED]
    found, events = await state()
    assert found.metadata.deletion_timestamp is not None
    assert len(events) == 1


async def test_the_frameworks_calls(services: Stack) -> None:
    # Two pods for one device: one waits.
    await services.pod("a", grace=600)
    await services.pod("b")
    stub: Any = framework_pb2_grpc.FrameworkServiceStub(services.channel("framework"))
    waiting = common_pb2.PodReference(namespace="default", name="b")

    async def state() -> Any:
        queue = await stub.ListQueue(framework_pb2.ListQueueRequest(), timeout=5)
        return [(pod.pod.name, pod.queue) for pod in queue.pods]

    async def one_waits() -> bool:
        placed = (await services.world.pod("a")).spec.node_name
        return bool(placed) and await state() == [("b", "unschedulable")]

    await services.until(one_waits)
    opened = await stub.OpenDryRun(framework_pb2.OpenDryRunRequest(pod=common_pb2.PodInput(pod=waiting)), timeout=5)
    for rpc, call, request in (
        ("ListQueue", stub.ListQueue, framework_pb2.ListQueueRequest()),
        ("ExplainPod", stub.ExplainPod, framework_pb2.ExplainPodRequest(pod=waiting)),
        (
            "DryRunFilter",
            stub.DryRunFilter,
            framework_pb2.DryRunFilterRequest(cycle_id=opened.input.cycle_id, queries=[common_pb2.NodeQuery(node=0)]),
        ),
        ("CloseDryRun", stub.CloseDryRun, framework_pb2.CloseDryRunRequest(cycle_id=opened.input.cycle_id)),
        (
            "PreemptPod",
            stub.PreemptPod,
            framework_pb2.PreemptPodRequest(pod=common_pb2.PodReference(name="b", uid="uid-b"), preemptor=waiting),
        ),
        (
            "ClearNominations",
            stub.ClearNominations,
            framework_pb2.ClearNominationsRequest(node_name="n1", below_priority=1000),
        ),
    ):
        await twice(f"FrameworkService/{rpc}", call, request, state)

    async def asleep_again() -> Any:
        # An activated pod is tried, fails and sleeps again.
        await services.until(one_waits)
        return await state()

    activate = framework_pb2.ActivatePodsRequest(pods=[waiting])
    await twice("FrameworkService/ActivatePods", stub.ActivatePods, activate, asleep_again)


async def test_the_claim_controllers_calls(services: Stack) -> None:
    stub: Any = claim_controller_pb2_grpc.ClaimControllerServiceStub(services.channel("claimcontroller"))

    async def state() -> Any:
        return await stub.GetStatus(claim_controller_pb2.GetStatusRequest(), timeout=5)

    for rpc, call, request in (
        ("GetStatus", stub.GetStatus, claim_controller_pb2.GetStatusRequest()),
        ("Pause", stub.Pause, claim_controller_pb2.PauseRequest()),
        (
            "SetDelays",
            stub.SetDelays,
            claim_controller_pb2.SetDelaysRequest(deallocation=Duration(seconds=7, nanos=500_000_000)),
        ),
        ("Resume", stub.Resume, claim_controller_pb2.ResumeRequest()),
    ):
        await twice(f"ClaimControllerService/{rpc}", call, request, state)
    assert (await state()).deallocation_delay == Duration(seconds=7, nanos=500_000_000)


async def test_the_nodes_calls(services: Stack) -> None:
    await services.pod("a", grace=600)

    async def runs() -> bool:
        return (await services.world.pod("a")).status.phase == "Running"

    await services.until(runs)
    stub: Any = nodes_pb2_grpc.NodesServiceStub(services.channel("nodes"))

    async def state() -> Any:
        claim = await services.world.api.get(objects.ResourceClaim, "a-gpu", "default")
        status = await stub.GetNodesStatus(nodes_pb2.GetNodesStatusRequest(), timeout=5)
        return status, [(item.device, [(c.type, c.status) for c in item.conditions]) for item in claim.status.devices]

    for rpc, call, request in (
        ("GetNodesStatus", stub.GetNodesStatus, nodes_pb2.GetNodesStatusRequest()),
        ("Hold", stub.Hold, nodes_pb2.HoldRequest(node_name="n1")),
        ("Release", stub.Release, nodes_pb2.ReleaseRequest(node_name="n1")),
        ("SetStartupDelay", stub.SetStartupDelay, nodes_pb2.SetStartupDelayRequest(startup=Duration(seconds=1))),
        ("Attach", stub.Attach, nodes_pb2.AttachRequest(namespace="default", claim="a-gpu", condition="Ready")),
    ):
        await twice(f"NodesService/{rpc}", call, request, state)
    assert (await state())[1] == [("gpu-0", [("Ready", "True")])]


def test_every_call_is_repeated_or_known_not_to_be(request: pytest.FixtureRequest) -> None:
    ran = {item.name.partition("[")[0] for item in request.session.items if item.path == request.node.path}
    if len(ran) < 20 or len(_sent_twice) < 10:
        pytest.skip("only together with the tests above, in one process")
    assert set(_sent_twice) | MAKE_SOMETHING | STREAMS == set(RPCS)
