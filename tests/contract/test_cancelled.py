"""A call that its caller gives up: what has been sent to the API is finished and accounted for; nothing else is begun."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.kube import objects
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    preemption_pb2,
    preemption_pb2_grpc,
    scheduler_plugin_pb2,
)
from support.contract_plugin import SUCCESS, UNSCHEDULABLE, Scheduler
from support.contract_stack import Stack

STATUS_PATCH = RequestMatch(verb="patch", kind="ResourceClaim", subresource="status")
SECONDS = 0.5


async def claim(scheduler: Scheduler, name: str = "v-gpu") -> objects.ResourceClaim:
    return await scheduler.stack.world.api.get(objects.ResourceClaim, name, "default")


async def given_up(scheduler: Scheduler, how: str) -> str:
    """PreBind of v, whose write takes a while, given up in the middle; returns the reservation."""
    scheduler.stack.world.registry.faults.delay(STATUS_PATCH, SECONDS)
    cycle_id, reservation = await scheduler.reserve("v")
    request = scheduler_plugin_pb2.PreBindRequest(session=scheduler.session, cycle_id=cycle_id, node_name="n1")
    if how == "deadline":
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await scheduler.plugin.PreBind(request, timeout=SECONDS / 2)
        assert failure.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    else:
        call = scheduler.plugin.PreBind(request, timeout=30)
        asyncio.get_running_loop().call_later(SECONDS / 2, call.cancel)
        with pytest.raises(asyncio.CancelledError):
            await call
    scheduler.stack.world.registry.faults.delay(STATUS_PATCH, 0)
    # The write is still on its way.
    assert (await claim(scheduler)).status.allocation is None
    return reservation


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_a_write_that_was_sent_counts_until_it_is_known(scheduler: Scheduler, how: str) -> None:
    await given_up(scheduler, how)
    # Nobody else may have the device, before the write is done and after it.
    assert await scheduler.filter(await scheduler.pre_filter("p")) == UNSCHEDULABLE

    async def written() -> bool:
        return (await claim(scheduler)).status.allocation is not None

    await scheduler.stack.until(written)
    assert await scheduler.filter(await scheduler.pre_filter("p")) == UNSCHEDULABLE


@pytest.mark.parametrize("how", ["cancelled", "deadline"])
async def test_unreserve_takes_back_what_the_lost_call_has_written(scheduler: Scheduler, how: str) -> None:
    reservation = await given_up(scheduler, how)
    request = scheduler_plugin_pb2.UnreserveRequest(
        session=scheduler.session, pod=await scheduler.ref("v"), node_name="n1", reservation=reservation
    )
    await scheduler.plugin.Unreserve(request, timeout=10)

    async def free() -> bool:
        found = await claim(scheduler)
        return found.status.reserved_for == () and scheduler.component.core.world.reservations == {}

    await scheduler.stack.until(free)
    # Upstream keeps the allocation of a claim that nobody uses; the device is accounted for either way.
    allocated = (await claim(scheduler)).status.allocation is not None
    expected = UNSCHEDULABLE if allocated else SUCCESS

    async def known() -> bool:
        return await scheduler.filter(await scheduler.pre_filter("p")) == expected

    await scheduler.stack.until(known)


async def test_an_execution_that_nobody_waits_for_finishes_what_it_has_begun(services: Stack) -> None:
    await services.pod("v", grace=600)

    async def runs() -> bool:
        return (await services.world.pod("v")).status.phase == "Running"

    await services.until(runs)
    await services.pod("p", "high", scheduler="somebody-else")
    pods = {name: await services.world.pod(name) for name in ("v", "p")}
    refs = {
        name: common_pb2.PodReference(namespace="default", name=name, uid=pod.metadata.uid)
        for name, pod in pods.items()
    }
    nomination = common_pb2.Nomination(pod=refs["p"], node_name="n1", generation=1, priority=100, victims=[refs["v"]])
    services.world.registry.faults.delay(RequestMatch(verb="delete", kind="Pod"), SECONDS)
    stub: Any = preemption_pb2_grpc.PreemptionServiceStub(services.channel("preemption"))
    request = preemption_pb2.ExecuteRequest(nomination=nomination)
    call = stub.Execute(request, timeout=30)
    asyncio.get_running_loop().call_later(SECONDS / 2, call.cancel)
    with pytest.raises(asyncio.CancelledError):
        await call

    async def terminating() -> bool:
        return (await services.world.pod("v")).metadata.deletion_timestamp is not None

    await services.until(terminating)
    # Asked again, it says what it has done.
    answer = await stub.Execute(request, timeout=30)
    assert [item.outcome for item in answer.victims] == [preemption_pb2.VICTIM_OUTCOME_DELETED]


async def test_a_dry_run_that_nobody_closes_is_gone_after_sixty_seconds(services: Stack) -> None:
    await services.pod("v", grace=600)

    async def runs() -> bool:
        return (await services.world.pod("v")).status.phase == "Running"

    await services.until(runs)
    stub: Any = framework_pb2_grpc.FrameworkServiceStub(services.channel("framework"))
    request = framework_pb2.OpenDryRunRequest()
    request.pod.pod.namespace, request.pod.pod.name = "default", "v"
    forgotten, asked = [(await stub.OpenDryRun(request, timeout=5)).input.cycle_id for _ in range(2)]

    async def ask(cycle_id: str) -> None:
        query = framework_pb2.DryRunFilterRequest(cycle_id=cycle_id, queries=[common_pb2.NodeQuery(node=0)])
        await stub.DryRunFilter(query, timeout=5)

    for _ in range(2):
        services.clock.shift += 31
        await ask(asked)
    # Looked at when the next one comes.
    await stub.OpenDryRun(request, timeout=5)
    await ask(asked)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await ask(forgotten)
    assert failure.value.code() is grpc.StatusCode.FAILED_PRECONDITION
