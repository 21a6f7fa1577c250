"""Unknown sessions and cycles, old epochs, and configurations that do not agree are FAILED_PRECONDITION."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.settings import Settings
from earmark.runtime.ids import SeededIds
from earmark.v1 import common_pb2, nodes_pb2, nodes_pb2_grpc, scheduler_plugin_pb2, settlement_pb2
from support.contract_plugin import REJECTED, SUCCESS, Scheduler
from support.contract_rpcs import RPCS, Rpc
from support.contract_stack import PLUGIN, Stack

FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


def _with(field: str) -> list[Rpc]:
    return [
        rpc
        for rpc in RPCS.values()
        if rpc.process == "dynamicresources" and field in rpc.request.DESCRIPTOR.fields_by_name
    ]


# CloseSession of a session that is gone has nothing to do.
IN_SESSION = [rpc for rpc in _with("session") if rpc.method != "CloseSession"]
# EndCycle works without the cycle.
IN_CYCLE = [rpc for rpc in _with("cycle_id") if rpc.method != "EndCycle"]


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await (call.read() if hasattr(call, "read") else call)
    return failure.value.code(), failure.value.details() or ""


def test_most_calls_name_session_and_cycle() -> None:
    assert len(IN_SESSION) == 19
    assert len(IN_CYCLE) == 9


async def test_an_unknown_session_is_refused_by_every_call(scheduler: Scheduler) -> None:
    channel = scheduler.stack.channel("dynamicresources")
    for rpc in IN_SESSION:
        request = rpc.request(session=common_pb2.SessionReference(id="nobody"))
        answer = await refused(rpc.on(channel)(request, timeout=5))
        assert answer == (FAILED_PRECONDITION, "session: unknown session 'nobody'"), rpc.name


async def test_an_old_epoch_is_refused_by_every_call(scheduler: Scheduler) -> None:
    channel = scheduler.stack.channel("dynamicresources")
    old = common_pb2.SessionReference()
    old.CopyFrom(scheduler.session)
    await scheduler.open()
    for rpc in IN_SESSION:
        answer = await refused(rpc.on(channel)(rpc.request(session=old), timeout=5))
        assert answer == (FAILED_PRECONDITION, "session: epoch 1: epoch 2 has taken over"), rpc.name


async def test_an_epoch_that_is_not_the_sessions_is_refused(scheduler: Scheduler) -> None:
    for epoch in (0, 7):
        mine = common_pb2.SessionReference(id=scheduler.session.id, epoch=epoch)
        call = scheduler.plugin.KeepSession(scheduler_plugin_pb2.KeepSessionRequest(session=mine), timeout=5)
        assert await refused(call) == (FAILED_PRECONDITION, f"session: epoch {epoch}: the session has epoch 1")


async def test_a_session_with_a_lower_epoch_than_seen_is_refused(scheduler: Scheduler) -> None:
    scheduler.epoch = 5
    await scheduler.open()
    call = scheduler.plugin.OpenSession(scheduler.handshake(epoch=3), timeout=5)
    assert await refused(call) == (FAILED_PRECONDITION, "epoch: epoch 3: epoch 6 has been seen")
    # The present session goes on.
    assert await scheduler.filter(await scheduler.pre_filter("p")) == SUCCESS


async def test_an_unknown_cycle_is_refused_by_every_call(scheduler: Scheduler) -> None:
    channel = scheduler.stack.channel("dynamicresources")
    for rpc in IN_CYCLE:
        request = rpc.request(session=scheduler.session, cycle_id="nonsense")
        answer = await refused(rpc.on(channel)(request, timeout=5))
        assert answer == (FAILED_PRECONDITION, "cycle_id: unknown cycle 'nonsense'"), rpc.name


async def test_a_cycle_ends_with_its_end_its_session_and_its_pods_next_cycle(scheduler: Scheduler) -> None:
    ended = await scheduler.pre_filter("p")
    await scheduler.end("p", ended, REJECTED)
    replaced = await scheduler.pre_filter("q")
    await scheduler.pre_filter("q")
    of_session = await scheduler.pre_filter("v")
    await scheduler.open()
    for cycle_id in (ended, replaced, of_session):
        request = scheduler_plugin_pb2.PostFilterRequest(session=scheduler.session, cycle_id=cycle_id)
        answer = await refused(scheduler.plugin.PostFilter(request, timeout=5))
        assert answer == (FAILED_PRECONDITION, f"cycle_id: unknown cycle {cycle_id!r}")


async def test_a_restarted_plugin_knows_neither_session_nor_cycle(scheduler: Scheduler) -> None:
    cycle_id = await scheduler.pre_filter("p")
    before = common_pb2.SessionReference()
    before.CopyFrom(scheduler.session)
    first = (await scheduler.plugin.Describe(scheduler_plugin_pb2.DescribeRequest(), timeout=5)).instance_id
    scheduler.stack.world.ids = SeededIds("second life")
    await scheduler.start()
    second = (await scheduler.plugin.Describe(scheduler_plugin_pb2.DescribeRequest(), timeout=5)).instance_id
    assert first != second
    request = scheduler_plugin_pb2.PostFilterRequest(session=scheduler.session, cycle_id=cycle_id)
    assert (await refused(scheduler.plugin.PostFilter(request, timeout=5)))[0] is FAILED_PRECONDITION
    request.session.CopyFrom(before)
    assert (await refused(scheduler.plugin.PostFilter(request, timeout=5)))[0] is FAILED_PRECONDITION


@pytest.mark.kep("E2")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"feature_gates": {"DRAPreemption": False}},
            "feature_gates[DRAPreemption]: False of the caller, True of DynamicResources",
        ),
        ({"feature_gates": {}}, "feature_gates[DRAPreemption]: False of the caller, True of DynamicResources"),
        (
            {"feature_gates": {"DRAPreemption": True, "DRAAdminAccess": False}},
            "feature_gates[DRAAdminAccess]: False of the caller, True of DynamicResources",
        ),
        (
            {"configuration": {"nominationPersistence": "none"}},
            "configuration[nominationPersistence]: 'none' of the caller, 'api' of DynamicResources",
        ),
        ({"protocol_version": "v0"}, "protocol_version: 'v0' of the caller, 'v1' of DynamicResources"),
    ],
)
async def test_a_mismatch_names_both_values(scheduler: Scheduler, fields: dict[str, Any], text: str) -> None:
    request: Any = scheduler.handshake(epoch=9)
    for name in fields:
        request.ClearField(name)
    request.MergeFrom(scheduler_plugin_pb2.OpenSessionRequest(**fields))
    assert await refused(scheduler.plugin.OpenSession(request, timeout=5)) == (FAILED_PRECONDITION, text)
    # It was no session: neither the present one nor its epoch is touched.
    assert await scheduler.filter(await scheduler.pre_filter("p")) == SUCCESS
    await scheduler.open()


async def test_the_framework_is_not_ready_with_a_plugin_that_does_not_agree(stack: Stack) -> None:
    await stack.cluster("gpu-0")
    with pytest.raises(AssertionError, match="not within"):
        await stack.start_all(dynamicresources=Settings(feature_gates={"DRAPreemption": False}), ready_seconds=1.5)
    assert {name: part.ready() for name, part in stack.components.items() if not part.ready()} == {"framework": False}
    # It looks again, and starts when they agree.
    await stack.start("dynamicresources", dynamicresources.build, PLUGIN)
    await stack.until(stack.components["framework"].ready)


async def test_an_unknown_cycle_of_the_framework_is_refused(services: Stack) -> None:
    rpc = RPCS["FrameworkService/DryRunFilter"]
    answer = await refused(rpc.on(services.channel("framework"))(rpc.request(cycle_id="gone"), timeout=5))
    assert answer == (FAILED_PRECONDITION, "cycle_id: no cycle 'gone' is open")


async def test_a_claim_without_an_allocation_cannot_be_attached(services: Stack) -> None:
    await services.world.apply(
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "idle"},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}},
        }
    )
    stub: Any = nodes_pb2_grpc.NodesServiceStub(services.channel("nodes"))
    request = nodes_pb2.AttachRequest(namespace="default", claim="idle", condition="Ready")
    code, text = await refused(stub.Attach(request, timeout=5))
    assert code is FAILED_PRECONDITION
    assert "idle" in text


async def test_a_service_that_is_away_is_unavailable(stack: Stack) -> None:
    rpc = RPCS["SettlementService/ListSettlements"]
    call = rpc.on(stack.channel("dynamicresources"))(settlement_pb2.ListSettlementsRequest(), timeout=5)
    assert (await refused(call))[0] is grpc.StatusCode.UNAVAILABLE
