"""What a preemptor tries while it waits stands in the trace of its settling window."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from earmark.kube import objects
from earmark.runtime.clock import LoopClock
from earmark.runtime.settling_trace import settling_trace
from earmark.v1 import common_pb2, framework_pb2, framework_pb2_grpc, preemption_pb2
from support.embedded_world import World
from support.framework_fakes import Stand
from support.framework_objects import manifest, node, pod

pytestmark = pytest.mark.virtual


@pytest.fixture
async def stand(clock: LoopClock) -> AsyncIterator[Stand]:
    world = World(clock)
    yield Stand(world)
    await world.close()


async def in_window(stand: Stand) -> list[Any]:
    meta = (await stand.world.pod("p")).metadata
    trace, root = settling_trace(meta.uid, 41)
    return [
        span for span in stand.world.sink.spans if span.context.trace_id == trace and span.parent.span_id == root
    ]  # fmt: skip


async def test_each_attempt_of_a_nominated_pod_is_told_with_its_result(stand: Stand) -> None:
    await stand.start()
    await stand.create(node("n1", cpu="1"), pod("v", cpu="1", node="n1"))
    await stand.world.until(1)
    victim = (await stand.world.pod("v")).metadata
    stand.preemption.node = "n1"
    stand.preemption.victims = [common_pb2.PodReference(namespace="default", name="v", uid=victim.uid)]
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9, "apiVersion": "scheduling.k8s.io/v1"}
    await stand.world.apply(high)
    wanted = manifest(pod("p", cpu="1"))
    wanted["spec"]["priorityClassName"] = "high"
    await stand.world.apply(wanted)
    await stand.world.until(2)
    assert await in_window(stand) == [], "the attempt that opens the window is not in it"
    stand.preemption.node = ""
    reference = common_pb2.PodReference(namespace="default", name="p")
    framework = framework_pb2_grpc.FrameworkServiceStub(stand.running.core.env.channels.to("framework"))
    # What preemption answers while victims settle.
    stand.preemption.mode = preemption_pb2.NOMINATING_MODE_NOOP
    await framework.ActivatePods(framework_pb2.ActivatePodsRequest(pods=[reference]), timeout=1)
    await stand.world.until(3)
    await stand.world.api.delete(objects.Pod, "v", "default", grace_period_seconds=0)
    await stand.world.until(20)
    assert await stand.node_of("p") == "n1"
    spans = await in_window(stand)
    assert [span.name for span in spans] == ["scheduling.attempt"] * 2
    assert [span.attributes["earmark.outcome"] for span in spans] == ["unschedulable", "scheduled"]
    assert "Insufficient cpu" in spans[0].attributes["earmark.reason"]
    assert [span.attributes["k8s.node.name"] for span in spans] == ["n1", "n1"]
    assert all(len(span.links) == 1 for span in spans)
