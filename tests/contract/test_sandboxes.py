"""A sandbox sees a frozen state, leaves nothing behind, and is gone after 60 s of silence."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from earmark.kube import objects
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nomination_extensions_pb2,
    preemption_pb2,
    preemption_pb2_grpc,
    scheduler_plugin_pb2,
)
from support.contract_plugin import REJECTED, SUCCESS, UNSCHEDULABLE, Scheduler
from support.contract_stack import Stack
from support.contract_state import plugin_state

CLEARED = nomination_extensions_pb2.REMOVE_REASON_CLEARED


async def api_state(stack: Stack) -> Any:
    """Everything that a plugin could write."""
    found = {}
    for kind in (objects.Pod, objects.ResourceClaim, objects.ResourceSlice, objects.Event):
        for item in (await stack.world.api.list(kind)).items:
            found[kind.__name__, item.metadata.name] = item.metadata.resource_version
    return found


@pytest.mark.kep("E20")
async def test_a_sandbox_does_everything_and_leaves_nothing(scheduler: Scheduler) -> None:
    # The scheduler is in the middle of something.
    await scheduler.place("v")
    await scheduler.nominate("q", "v")
    own_cycle = await scheduler.pre_filter("p")
    before, in_api = plugin_state(scheduler)(), await api_state(scheduler.stack)
    sandbox = await scheduler.sandbox()
    plugin, nominations = sandbox.plugin, sandbox.nominations

    pods = [await sandbox.pod_input("p")]
    await plugin.PreEnqueue(scheduler_plugin_pb2.PreEnqueueRequest(session=sandbox.session, pods=pods), timeout=5)
    # q's nomination goes, v's device is p's, q sleeps: all of it only here.
    for name, remove in (("q", 1), ("p", None)):
        if remove is not None:
            request = nomination_extensions_pb2.RemoveNominatedPodRequest(
                session=sandbox.session, pod=await sandbox.ref(name), generation=remove, reason=CLEARED
            )
            await nominations.RemoveNominatedPod(request, timeout=5)
    await sandbox.nominate("p", "v")
    assert [item.pod.name for item in (await sandbox.listed()).nominations] == ["p"]
    cycle_id = await sandbox.pre_filter("q")
    victim = await sandbox.ref("v")
    fork: dict[str, Any] = {"session": sandbox.session, "cycle_id": cycle_id, "node_name": "n1", "pod": victim}
    await plugin.RemovePod(scheduler_plugin_pb2.RemovePodRequest(**fork), timeout=5)
    await plugin.AddPod(scheduler_plugin_pb2.AddPodRequest(**fork), timeout=5)
    in_cycle: dict[str, Any] = {"session": sandbox.session, "cycle_id": cycle_id}
    await plugin.PostFilter(scheduler_plugin_pb2.PostFilterRequest(**in_cycle), timeout=5)
    await sandbox.end("q", cycle_id, REJECTED)

    assert plugin_state(scheduler)() == before
    assert await api_state(scheduler.stack) == in_api
    assert [item.pod.name for item in (await scheduler.listed()).nominations] == ["q"]
    # The scheduler's cycle goes on.
    assert await scheduler.filter(own_cycle) == UNSCHEDULABLE
    await plugin.CloseSession(scheduler_plugin_pb2.CloseSessionRequest(session=sandbox.session), timeout=5)
    assert plugin_state(scheduler)() == before


async def test_a_sandbox_reserves_and_binds_on_paper(scheduler: Scheduler) -> None:
    before, in_api = plugin_state(scheduler)(), await api_state(scheduler.stack)
    sandbox = await scheduler.sandbox()
    cycle_id, reservation = await sandbox.reserve("v")
    bind = scheduler_plugin_pb2.PreBindRequest(session=sandbox.session, cycle_id=cycle_id, node_name="n1")
    assert (await sandbox.plugin.PreBind(bind, timeout=5)).status.code == SUCCESS
    # Taken in the sandbox, free outside.
    assert await sandbox.filter(await sandbox.pre_filter("p")) == UNSCHEDULABLE
    assert await scheduler.filter(await scheduler.pre_filter("p")) == SUCCESS
    unreserve = scheduler_plugin_pb2.UnreserveRequest(
        session=sandbox.session, pod=await sandbox.ref("v"), node_name="n1", reservation=reservation
    )
    await sandbox.plugin.Unreserve(unreserve, timeout=5)
    assert await sandbox.filter(await sandbox.pre_filter("p")) == SUCCESS
    # p's cycle is the scheduler's own.
    assert plugin_state(scheduler)()[:-1] == before[:-1]
    assert await api_state(scheduler.stack) == in_api


async def test_a_sandbox_may_bring_a_pod_of_its_own(scheduler: Scheduler) -> None:
    sandbox = await scheduler.sandbox()
    manifest = (
        '{"metadata":{"name":"idea","namespace":"default","uid":"uid-idea"},'
        '"spec":{"containers":[{"name":"main","image":"x"}],'
        '"resourceClaims":[{"name":"gpu","resourceClaimName":"p-gpu"}]}}'
    )
    pod = common_pb2.PodInput(
        pod=common_pb2.PodReference(namespace="default", name="idea", uid="uid-idea"), priority=5, manifest=manifest
    )
    request = scheduler_plugin_pb2.PreFilterRequest(session=sandbox.session, pod=pod)
    answer = await sandbox.plugin.PreFilter(request, timeout=5)
    assert answer.status.code == SUCCESS
    assert await sandbox.filter(answer.cycle_id) == SUCCESS


async def test_a_sandbox_is_frozen_at_its_beginning(scheduler: Scheduler) -> None:
    early = await scheduler.sandbox()
    await scheduler.place("v")
    late = await scheduler.sandbox()
    assert await early.filter(await early.pre_filter("p")) == SUCCESS
    assert await late.filter(await late.pre_filter("p")) == UNSCHEDULABLE


async def test_sandboxes_are_apart_from_each_other(scheduler: Scheduler) -> None:
    one, other = await scheduler.sandbox(), await scheduler.sandbox()
    cycle_id, _ = await one.reserve("v")
    assert await other.filter(await other.pre_filter("p")) == SUCCESS
    request = scheduler_plugin_pb2.PostFilterRequest(session=other.session, cycle_id=cycle_id)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await other.plugin.PostFilter(request, timeout=5)
    assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_sixty_seconds_of_silence_end_a_sandbox(scheduler: Scheduler) -> None:
    kept, silent = await scheduler.sandbox(), await scheduler.sandbox()
    cycle_id, silent_cycle = await kept.pre_filter("p"), await silent.pre_filter("p")
    for _ in range(2):
        scheduler.stack.clock.shift += 31
        # Any call keeps it; KeepSession does nothing else.
        await kept.plugin.KeepSession(scheduler_plugin_pb2.KeepSessionRequest(session=kept.session), timeout=5)
    assert await kept.filter(cycle_id) == SUCCESS
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await silent.filter(silent_cycle)
    assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert failure.value.details() == f"session: unknown session {silent.session.id!r}"
    # The scheduler's session may be silent as long as it likes.
    scheduler.stack.clock.shift += 86_400
    assert await scheduler.filter(await scheduler.pre_filter("p")) == SUCCESS


async def test_fifty_nine_seconds_of_silence_do_not(scheduler: Scheduler) -> None:
    sandbox = await scheduler.sandbox()
    cycle_id = await sandbox.pre_filter("p")
    scheduler.stack.clock.shift += 59
    assert await sandbox.filter(cycle_id) == SUCCESS


async def test_a_dry_run_over_all_services_changes_nothing(services: Stack) -> None:
    await services.pod("v", grace=600)

    async def runs() -> bool:
        return (await services.world.pod("v")).status.phase == "Running"

    await services.until(runs)
    manifest = (
        '{"metadata":{"name":"idea","namespace":"default"},"spec":{'
        '"containers":[{"name":"main","image":"x"}],"resourceClaims":[{"name":"gpu","resourceClaimName":"idea-gpu"}]}}'
    )
    await services.world.apply(
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "idea-gpu"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        }
    )
    in_api = await api_state(services)
    stub: Any = preemption_pb2_grpc.PreemptionServiceStub(services.channel("preemption"))
    request = preemption_pb2.DryRunRequest(pod=common_pb2.PodInput(priority=100, manifest=manifest))
    seen = []

    async def told() -> bool:
        # The plugin sees the claim a moment later.
        seen.append(await stub.DryRun(request, timeout=10))
        return bool(seen[-1].chosen.node_name)

    await services.until(told)
    assert [victim.name for victim in seen[-1].chosen.victims] == ["v"]
    assert await api_state(services) == in_api
    framework: Any = framework_pb2_grpc.FrameworkServiceStub(services.channel("framework"))
    assert (await framework.ListQueue(framework_pb2.ListQueueRequest(), timeout=5)).pods == []
