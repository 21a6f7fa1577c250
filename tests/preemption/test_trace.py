"""What the preemption service adds to the trace of a settling window."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.preemption.component import build
from earmark.preemption.settings import PreemptionSettings
from earmark.runtime.clock import LoopClock
from earmark.runtime.settling_trace import settling_trace
from earmark.v1 import common_pb2, preemption_pb2, preemption_pb2_grpc
from support.embedded_world import World, node, pod
from support.preemption_peers import FakeFramework, FakePlugin, preemption_input, serve

pytestmark = pytest.mark.virtual


class Setup:
    def __init__(self, world: World) -> None:
        self.world = world
        self.framework = FakeFramework()  # type: ignore[abstract]
        serve(world.network, self.framework, FakePlugin())  # type: ignore[abstract]

    def in_window(self, name: str, uid: str, generation: int) -> list[Any]:
        trace, root = settling_trace(uid, generation)
        return [
            span
            for span in self.world.sink.spans
            if span.name == name
            and span.context.trace_id == trace
            and span.parent is not None
            and span.parent.span_id == root
        ]


@pytest.fixture
async def setup(clock: LoopClock) -> AsyncIterator[Setup]:
    world = World(clock)
    await world.apply(node())
    yield Setup(world)
    await world.close()


async def start(world: World) -> preemption_pb2_grpc.PreemptionServiceAsyncStub:
    env = await world.start("preemption", build, PreemptionSettings())
    return preemption_pb2_grpc.PreemptionServiceStub(env.channels.to("preemption"))


async def test_the_dry_run_that_chose_belongs_to_the_window(setup: Setup) -> None:
    stub = await start(setup.world)
    setup.framework.input = preemption_input(("n1", (("a", 5), ("b", 1))), ("n2", (("c", 3),)))
    await stub.Preempt(preemption_pb2.PreemptRequest(input=setup.framework.input, generation=7), timeout=5)
    (span,) = setup.in_window("preemption.dry_run", "uid-p", 7)
    assert span.attributes["earmark.candidates"] == 2
    assert span.attributes["earmark.rounds"] == 3
    assert list(span.attributes["earmark.victims"]) == ["default/b"]
    assert len(span.links) == 1


async def test_the_execution_belongs_to_the_window_once_with_an_event_a_victim(setup: Setup) -> None:
    stub = await start(setup.world)
    for name in ("p", "a", "b"):
        await setup.world.apply(pod(name, node_name="" if name == "p" else "n1"))
    references = {
        name: common_pb2.PodReference(namespace="default", name=name, uid=(await setup.world.pod(name)).metadata.uid)
        for name in ("p", "a", "b")
    }
    setup.world.registry.faults.fail(RequestMatch("delete", "Pod", "b"), times=1, status=403)
    nomination = common_pb2.Nomination(
        pod=references["p"], node_name="n1", generation=3, victims=[references["a"], references["b"]]
    )
    for _ in range(2):
        await stub.Execute(preemption_pb2.ExecuteRequest(nomination=nomination), timeout=5)
    (span,) = setup.in_window("preemption.execute", references["p"].uid, 3)
    assert [(event.name, event.attributes["k8s.pod.name"]) for event in span.events] == [
        ("victim.deleted", "a"),
        ("victim.failed", "b"),
    ]
    assert not span.status.is_ok
