"""The emulated kubelets on the embedded API: pods start, terminate, are held; devices report conditions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import grpc
import pytest

from earmark.kube.objects import Node, Pod, ResourceClaim
from earmark.nodes.component import build
from earmark.nodes.settings import NodesSettings
from earmark.runtime.clock import LoopClock
from earmark.v1 import nodes_pb2, nodes_pb2_grpc
from support.embedded_world import World, claim, node, pod

pytestmark = pytest.mark.virtual


@pytest.fixture
async def world(clock: LoopClock) -> AsyncIterator[World]:
    world = World(clock)
    await world.apply(node())
    yield world
    await world.close()


def stub(world: World) -> nodes_pb2_grpc.NodesServiceAsyncStub:
    return nodes_pb2_grpc.NodesServiceStub(world.environment("test").channels.to("nodes"))


async def test_a_bound_pod_runs_after_the_startup_delay_with_the_start_time_of_its_arrival(world: World) -> None:
    await world.start("nodes", build, NodesSettings(startup_seconds=5))
    await world.until(2)
    await world.apply(pod("p", node_name="n1"))
    await world.until(6.9)
    assert (await world.pod("p")).status.phase == "Pending"
    await world.until(7)
    status = (await world.pod("p")).status
    assert status.phase == "Running"
    assert status.start_time is not None
    assert status.start_time == world.now.replace(microsecond=0) - timedelta(seconds=5)
    assert {item.type for item in status.conditions if item.status == "True"} >= {"Ready", "ContainersReady"}


async def test_a_pod_without_node_is_left_alone(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("p"))
    await world.until(10)
    assert (await world.pod("p")).status.phase == "Pending"


async def test_a_pod_that_comes_with_a_status_keeps_it(world: World) -> None:
    await world.apply({**pod("p", node_name="n1"), "status": {"phase": "Running", "startTime": "2025-11-20T01:52:29Z"}})
    before = await world.pod("p")
    await world.start("nodes", build, NodesSettings())
    await world.until(10)
    assert (await world.pod("p")) == before


async def test_a_pod_starts_only_when_its_claims_are_allocated_and_reserved_for_it(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(claim("c"))
    await world.apply(pod("p", node_name="n1", gpu="claim:c"))
    await world.until(5)
    assert (await world.pod("p")).status.phase == "Pending"
    found = await world.api.get(ResourceClaim, "c", "default")
    await world.allocate(found)
    await world.until(6)
    assert (await world.pod("p")).status.phase == "Pending"
    await world.api.patch(
        ResourceClaim,
        "c",
        "default",
        {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": (await world.pod("p")).metadata.uid}]}},
        subresource="status",
    )
    await world.until(7)
    assert (await world.pod("p")).status.phase == "Running"


@pytest.mark.parametrize("requested", [10.0, 10.3])
async def test_a_deleted_pod_disappears_after_its_grace_period(world: World, requested: float) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("p", node_name="n1", grace=5))
    await world.until(requested)
    await world.api.delete(Pod, "p", "default")
    await world.until(requested + 0.5)
    await world.api.patch(Pod, "p", "default", {"metadata": {"labels": {"changed": "meanwhile"}}})
    await world.until(requested + 4.9)
    assert await world.find(Pod, "p") is not None
    await world.until(requested + 5)
    assert await world.find(Pod, "p") is None


async def test_a_restarted_kubelet_keeps_to_the_grace_period_that_has_begun(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("p", node_name="n1", grace=30))
    await world.until(10)
    await world.api.delete(Pod, "p", "default")
    await world.until(20)
    await world.start("nodes", build, NodesSettings())
    await world.until(39.9)
    assert await world.find(Pod, "p") is not None
    await world.until(40)
    assert await world.find(Pod, "p") is None


async def test_a_refused_deletion_is_tried_again(world: World) -> None:
    from earmark.apiserver.faults import RequestMatch

    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("p", node_name="n1", grace=1))
    await world.until(10)
    await world.api.delete(Pod, "p", "default")
    world.registry.faults.fail(RequestMatch("delete", "Pod", "p"), times=3, status=500)
    await world.until(12)
    assert await world.find(Pod, "p") is None


async def test_a_held_node_neither_starts_nor_ends_pods_until_it_is_released(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("old", node_name="n1", grace=5))
    await world.until(1)
    rpc = stub(world)
    await rpc.Hold(nodes_pb2.HoldRequest(node_name="n1"), timeout=1)
    await world.apply(pod("new", node_name="n1"))
    await world.api.delete(Pod, "old", "default")
    await world.until(60)
    assert await world.find(Pod, "old") is not None
    assert (await world.pod("new")).status.phase == "Pending"
    state = (await rpc.GetNodesStatus(nodes_pb2.GetNodesStatusRequest(), timeout=1)).nodes[0]
    assert (state.name, state.held, state.running, state.starting, state.terminating) == ("n1", True, 0, 1, 1)
    await rpc.Release(nodes_pb2.ReleaseRequest(node_name="n1"), timeout=1)
    await world.until(60.1)
    assert await world.find(Pod, "old") is None
    assert (await world.pod("new")).status.phase == "Running"


async def test_pods_on_a_node_that_vanished_are_left_alone(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(pod("p", node_name="n1", grace=5))
    await world.until(1)
    await world.api.delete(Node, "n1")
    await world.api.delete(Pod, "p", "default")
    await world.until(100)
    assert await world.find(Pod, "p") is not None
    await world.apply(node())
    await world.until(101)
    assert await world.find(Pod, "p") is None


async def test_attach_sets_the_condition_on_every_allocated_device_and_keeps_others(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(claim("c"))
    await world.allocate(await world.api.get(ResourceClaim, "c", "default"))
    rpc = stub(world)
    await rpc.Attach(nodes_pb2.AttachRequest(namespace="default", claim="c", condition="Ready"), timeout=1)
    await rpc.Attach(
        nodes_pb2.AttachRequest(namespace="default", claim="c", condition="Attached", status="False", reason="Broken"),
        timeout=1,
    )
    (device,) = (await world.api.get(ResourceClaim, "c", "default")).status.devices
    assert (device.driver, device.pool, device.device) == ("gpu.example.com", "n1", "gpu-0")
    assert [(item.type, item.status, item.reason) for item in device.conditions] == [
        ("Ready", "True", "DriverReported"),
        ("Attached", "False", "Broken"),
    ]


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        (nodes_pb2.AttachRequest(namespace="default", condition="A"), "INVALID_ARGUMENT", "claim"),
        (
            nodes_pb2.AttachRequest(namespace="default", claim="c", condition="A", status="yes"),
            "INVALID_ARGUMENT",
            "status",
        ),
        (nodes_pb2.AttachRequest(namespace="default", claim="none", condition="A"), "NOT_FOUND", "none"),
        (
            nodes_pb2.AttachRequest(namespace="default", claim="c", condition="A"),
            "FAILED_PRECONDITION",
            "not allocated",
        ),
    ],
)
async def test_attach_says_what_is_wrong(
    world: World, request_: nodes_pb2.AttachRequest, code: str, words: str
) -> None:
    await world.start("nodes", build, NodesSettings())
    await world.apply(claim("c"))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub(world).Attach(request_, timeout=1)
    assert raised.value.code().name == code
    assert words in str(raised.value.details())


async def test_holding_an_unknown_node_is_refused(world: World) -> None:
    await world.start("nodes", build, NodesSettings())
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stub(world).Hold(nodes_pb2.HoldRequest(node_name="n9"), timeout=1)
    assert raised.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_shorter_startup_delay_counts_for_pods_that_are_starting(world: World) -> None:
    await world.start("nodes", build, NodesSettings(startup_seconds=100))
    await world.apply(pod("p", node_name="n1"))
    await world.until(10)
    request = nodes_pb2.SetStartupDelayRequest()
    request.startup.FromSeconds(12)
    await stub(world).SetStartupDelay(request, timeout=1)
    await world.until(11.9)
    assert (await world.pod("p")).status.phase == "Pending"
    await world.until(12)
    assert (await world.pod("p")).status.phase == "Running"
