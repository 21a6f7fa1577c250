"""The execution of a nomination on the embedded API (upstream B7, B9; decisions F14, F15, F20, F42)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.kube.objects import Event, Pod
from earmark.preemption.component import build
from earmark.preemption.settings import PreemptionSettings
from earmark.runtime.clock import LoopClock
from earmark.v1 import common_pb2, preemption_pb2, preemption_pb2_grpc
from support.embedded_world import World, node, pod
from support.preemption_peers import FakeFramework, FakePlugin, serve
from support.uncertain_api import answer_late

pytestmark = pytest.mark.virtual


class Setup:
    """The service, its peers, a preemptor p and victims on n1."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.framework = FakeFramework()  # type: ignore[abstract]
        serve(world.network, self.framework, FakePlugin())  # type: ignore[abstract]

    async def start(self, **settings: Any) -> None:
        self.env = await self.world.start("preemption", build, PreemptionSettings(**settings))
        self.stub = preemption_pb2_grpc.PreemptionServiceStub(self.env.channels.to("preemption"))

    async def victims(self, *names: str) -> None:
        for name in names:
            await self.world.apply(pod(name, node_name="n1"))

    async def order(self, *names: str, generation: int = 1) -> preemption_pb2.ExecuteRequest:
        async def reference(name: str) -> common_pb2.PodReference:
            uid = (await self.world.pod(name)).metadata.uid
            return common_pb2.PodReference(namespace="default", name=name, uid=uid)

        return preemption_pb2.ExecuteRequest(
            nomination=common_pb2.Nomination(
                pod=await reference("p"),
                node_name="n1",
                generation=generation,
                priority=100,
                victims=[await reference(name) for name in names],
            )
        )

    async def execute(self, request: preemption_pb2.ExecuteRequest, timeout: float = 60) -> dict[str, str]:
        answer = await self.stub.Execute(request, timeout=timeout)
        return {
            result.pod.name: preemption_pb2.VictimOutcome.Name(result.outcome).removeprefix("VICTIM_OUTCOME_")
            for result in answer.victims
        }

    async def terminating(self, name: str) -> bool:
        return (await self.world.pod(name)).metadata.deletion_timestamp is not None

    def count_deletes(self) -> list[str]:
        """Note the pods whose deletion is asked for from now on."""
        deleted: list[str] = []
        original = self.world.api.delete

        async def delete(kind: Any, name: str, namespace: str = "", **options: Any) -> None:
            assert options.get("uid"), "deletions are for one UID only"
            deleted.append(name)
            await original(kind, name, namespace, **options)

        self.world.api.delete = delete  # type: ignore[method-assign]
        return deleted


@pytest.fixture
async def setup(clock: LoopClock) -> AsyncIterator[Setup]:
    world = World(clock)
    await world.apply(node())
    await world.apply(pod("p"))
    setup = Setup(world)
    await setup.start()
    yield setup
    await world.close()


@pytest.mark.kep("E95")
async def test_a_victim_gets_its_condition_is_deleted_and_an_event_says_for_whom(setup: Setup) -> None:
    await setup.victims("v")
    assert await setup.execute(await setup.order("v")) == {"v": "DELETED"}
    victim = await setup.world.pod("v")
    assert victim.metadata.deletion_timestamp is not None
    assert victim.metadata.deletion_grace_period_seconds == 30
    (condition,) = [item for item in victim.status.conditions if item.type == "DisruptionTarget"]
    assert (condition.status, condition.reason) == ("True", "PreemptionByScheduler")
    assert condition.message == "default-scheduler: preempting to accommodate a higher priority pod"
    assert condition.last_transition_time == setup.world.now
    (event,) = (await setup.world.api.list(Event)).items
    preemptor = await setup.world.pod("p")
    assert (event.type, event.reason, event.action) == ("Normal", "Preempted", "Preempting")
    assert event.note == f"Preempted by pod {preemptor.metadata.uid} on node n1"
    assert event.regarding.uid == victim.metadata.uid
    assert event.related is not None
    assert event.related.name == "p"
    assert setup.framework.cleared == [("n1", 100)]


async def test_other_conditions_of_a_victim_stay(setup: Setup) -> None:
    await setup.victims("v")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await setup.world.api.patch(Pod, "v", "default", {"status": {"conditions": [ready]}}, subresource="status")
    await setup.execute(await setup.order("v"))
    assert {item.type for item in (await setup.world.pod("v")).status.conditions} == {"Ready", "DisruptionTarget"}


async def test_a_repeated_order_changes_nothing_and_answers_the_same(setup: Setup) -> None:
    await setup.victims("a", "b")
    request = await setup.order("a", "b")
    deleted = setup.count_deletes()
    first, second = await asyncio.gather(setup.execute(request), setup.execute(request))
    assert first == second == await setup.execute(request) == {"a": "DELETED", "b": "DELETED"}
    assert deleted == ["a", "b"]


@pytest.mark.kep("E74")
async def test_a_victim_that_terminates_already_is_not_deleted_again(setup: Setup) -> None:
    await setup.victims("v")
    await setup.execute(await setup.order("v"))
    deleted = setup.count_deletes()
    assert await setup.execute(await setup.order("v", generation=2)) == {"v": "ALREADY_TERMINATING"}
    assert deleted == []


@pytest.mark.kep("F20", "D32")
async def test_lower_nominations_are_cleared_also_if_all_victims_terminate_already(setup: Setup) -> None:
    await setup.victims("v")
    await setup.world.api.delete(Pod, "v", "default")
    await setup.execute(await setup.order("v"))
    assert setup.framework.cleared == [("n1", 100)]
    assert not any(item.type == "DisruptionTarget" for item in (await setup.world.pod("v")).status.conditions)


@pytest.mark.kep("F42")
async def test_a_pod_that_has_taken_the_victims_name_is_spared(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    await setup.world.api.delete(Pod, "v", "default", grace_period_seconds=0)
    await setup.victims("v")
    assert await setup.execute(request) == {"v": "GONE"}
    assert not await setup.terminating("v")
    assert setup.framework.cleared == [("n1", 100)]


@pytest.mark.kep("F42")
async def test_a_pod_that_takes_the_name_in_the_last_moment_is_spared(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    setup.framework.preempt_seconds = 3
    running = asyncio.ensure_future(setup.execute(request))
    await setup.world.until(1)
    await setup.world.api.delete(Pod, "v", "default", grace_period_seconds=0)
    await setup.victims("v")
    assert await running == {"v": "GONE"}
    assert not await setup.terminating("v")
    assert not any(item.type == "DisruptionTarget" for item in (await setup.world.pod("v")).status.conditions)


async def test_a_victim_that_is_gone_is_no_error(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    await setup.world.api.delete(Pod, "v", "default", grace_period_seconds=0)
    assert await setup.execute(request) == {"v": "GONE"}
    assert (await setup.world.api.list(Event)).items == ()


async def test_a_pod_in_permit_or_pre_bind_is_preempted_without_a_deletion(setup: Setup) -> None:
    await setup.victims("v")
    setup.framework.in_memory.add("v")
    assert await setup.execute(await setup.order("v")) == {"v": "PREEMPTED_IN_MEMORY"}
    assert not await setup.terminating("v")
    (event,) = (await setup.world.api.list(Event)).items
    assert event.note.endswith(" on node n1 (in kube-scheduler memory).")


@pytest.mark.kep("E49", "F14", "F15")
async def test_after_a_refusal_the_last_victim_is_not_touched_and_nothing_is_cleared(setup: Setup) -> None:
    await setup.victims("a", "b", "c")
    setup.world.registry.faults.fail(RequestMatch("delete", "Pod", "b"), times=1, status=403)
    answer = await setup.stub.Execute(await setup.order("a", "b", "c"), timeout=60)
    assert [preemption_pb2.VictimOutcome.Name(result.outcome) for result in answer.victims] == [
        "VICTIM_OUTCOME_DELETED",
        "VICTIM_OUTCOME_FAILED",
        "VICTIM_OUTCOME_NOT_ATTEMPTED",
    ]
    assert "403" in answer.victims[1].error
    assert await setup.terminating("a")
    assert not await setup.terminating("c")
    assert setup.framework.cleared == []
    assert (
        setup.env.metrics.get_sample_value("scheduler_preemption_goroutines_execution_total", {"result": "error"}) == 1
    )


async def test_a_refused_condition_leaves_the_victim_undeleted(setup: Setup) -> None:
    await setup.victims("v")
    setup.world.registry.faults.fail(RequestMatch("patch", "Pod", "v", "status"), times=1, status=403)
    assert await setup.execute(await setup.order("v")) == {"v": "FAILED"}
    assert not await setup.terminating("v")


@pytest.mark.parametrize("status", [409, 429, 503])
async def test_conflicts_and_a_busy_api_are_tried_again(setup: Setup, status: int) -> None:
    await setup.victims("v")
    setup.world.registry.faults.fail(RequestMatch("delete", "Pod", "v"), times=3, status=status)
    assert await setup.execute(await setup.order("v")) == {"v": "DELETED"}


@pytest.mark.parametrize("done", [True, False])
async def test_a_lost_answer_is_looked_into_and_nothing_is_deleted_twice(setup: Setup, done: bool) -> None:
    await setup.victims("v")
    setup.world.registry.faults.lose(RequestMatch("delete", "Pod", "v"), times=1, done=done)
    deleted = setup.count_deletes()
    assert await setup.execute(await setup.order("v")) == {"v": "DELETED"}
    assert deleted == (["v"] if done else ["v", "v"])


async def test_a_victim_that_was_deleted_though_the_server_failed_is_no_failure(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    left = answer_late(monkeypatch, setup.world.api, "delete")
    assert await setup.execute(request) == {"v": "DELETED"}
    assert left == [0]


async def test_an_api_that_stays_away_is_a_failure_after_a_bounded_time(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    setup.world.registry.faults.lose(RequestMatch("delete", "Pod", "v"), times=100, done=False)
    assert await setup.execute(request) == {"v": "FAILED"}
    assert setup.world.seconds < 10


async def test_nobody_is_evicted_for_a_preemptor_that_is_gone(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    await setup.world.api.delete(Pod, "p", "default")
    assert await setup.execute(request) == {"v": "NOT_ATTEMPTED"}
    assert not await setup.terminating("v")


async def test_without_a_framework_nobody_is_evicted(setup: Setup) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    setup.world.network.remove("framework")
    assert await setup.execute(request) == {"v": "FAILED"}
    assert not await setup.terminating("v")


async def test_victims_that_were_not_begun_when_the_caller_went_are_left_alone_until_it_is_back(setup: Setup) -> None:
    await setup.victims("a", "b")
    request = await setup.order("a", "b")
    setup.framework.preempt_seconds = 3
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.execute(request, timeout=1)
    assert raised.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await setup.world.until(30)
    assert not await setup.terminating("a")
    assert not await setup.terminating("b")
    assert await setup.execute(request) == {"a": "DELETED", "b": "DELETED"}


@pytest.mark.parametrize("field", ["node_name", "generation", "pod", "victims"])
async def test_a_bad_order_is_refused_by_its_field(setup: Setup, field: str) -> None:
    await setup.victims("v")
    request = await setup.order("v")
    if field == "victims":
        request.nomination.victims[0].uid = ""
    else:
        request.nomination.ClearField(field)  # type: ignore[arg-type]
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.execute(request)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(raised.value.details()).startswith(f"nomination.{field}")
