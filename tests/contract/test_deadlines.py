"""Every call that a service or the client library makes has a deadline, and none is longer than the settings say."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.client import EarmarkClient
from earmark.runtime.process import RuntimeSettings
from earmark.v1 import preemption_pb2, preemption_pb2_grpc
from support.contract_stack import Stack

LONGEST = {
    # PreBind may wait for devices to become ready.
    "/earmark.v1.SchedulerPluginService/PreBind": 900.0,
    "/earmark.v1.PreemptionService/Execute": 120.0,
    "/earmark.v1.PreemptionService/Preempt": 60.0,
    "/earmark.v1.SchedulerPluginService/Filter": 60.0,
    "/earmark.v1.SchedulerPluginService/FilterForks": 60.0,
    "/earmark.v1.FrameworkService/DryRunFilter": 60.0,
    "/earmark.v1.FrameworkService/OpenDryRun": 60.0,
}
LOOKS_AT_MEMORY = 10.0
# gRPC rounds what it sends.
ROUNDED = 1.05

# What a preemption with a settling window needs, from the first handshake to the binding.
USED = {
    "/earmark.v1.SchedulerPluginService/Describe",
    "/earmark.v1.SchedulerPluginService/OpenSession",
    "/earmark.v1.SchedulerPluginService/PreEnqueue",
    "/earmark.v1.SchedulerPluginService/PreFilter",
    "/earmark.v1.SchedulerPluginService/Filter",
    "/earmark.v1.SchedulerPluginService/FilterForks",
    "/earmark.v1.SchedulerPluginService/PostFilter",
    "/earmark.v1.SchedulerPluginService/Reserve",
    "/earmark.v1.SchedulerPluginService/PreBind",
    "/earmark.v1.SchedulerPluginService/EndCycle",
    "/earmark.v1.NominationExtensionsService/AddNominatedPod",
    "/earmark.v1.NominationExtensionsService/ConfirmNominatedPod",
    "/earmark.v1.NominationExtensionsService/RemoveNominatedPod",
    "/earmark.v1.PreemptionService/Preempt",
    "/earmark.v1.PreemptionService/Execute",
    "/earmark.v1.FrameworkService/DryRunFilter",
    "/earmark.v1.FrameworkService/PreemptPod",
    "/earmark.v1.FrameworkService/ClearNominations",
}


@pytest.mark.kep("D1")
async def test_a_whole_settling_window_is_made_of_calls_with_deadlines(services: Stack) -> None:
    async def runs(name: str) -> bool:
        return (await services.world.pod(name)).status.phase == "Running"

    await services.pod("v")
    await services.until(lambda: runs("v"))
    await services.pod("p", "high")
    await services.until(lambda: runs("p"))
    # The same decision without consequences, asked from outside.
    stub: Any = preemption_pb2_grpc.PreemptionServiceStub(services.channel("preemption"))
    await services.pod("w", "low", scheduler="somebody-else")
    request = preemption_pb2.DryRunRequest()
    request.pod.pod.namespace, request.pod.pod.name = "default", "w"

    async def told() -> bool:
        answer = await stub.DryRun(request, timeout=10)
        return bool(answer.node_reasons)

    await services.until(told)
    made = {method for method, _ in services.calls}
    assert made >= USED | {"/earmark.v1.FrameworkService/OpenDryRun", "/earmark.v1.FrameworkService/CloseDryRun"}
    too_long = [
        (method, remaining)
        for method, remaining in services.calls
        if remaining is None or remaining > ROUNDED * LONGEST.get(method, LOOKS_AT_MEMORY)
    ]
    assert too_long == []


@pytest.mark.parametrize("kind", ["socket"], indirect=True)
async def test_the_client_librarys_calls_have_deadlines(services: Stack) -> None:
    runtime = RuntimeSettings(
        addresses={name: services.address(name) for name in ("framework", "dynamicresources", "preemption")}
    )
    services.calls.clear()
    async with EarmarkClient(runtime, timeout=4.0) as client:
        await client.queue()
        await client.explain("default", "nobody")
        await client.settlements()
    mine = [(method, left) for method, left in services.calls if "FrameworkService" in method or "Settlement" in method]
    assert len(mine) == 3
    assert all(left is not None and left <= ROUNDED * 4.0 for _, left in mine)
