"""The unary AddPod and RemovePod are exact opposites, and the same as FilterForks with sets."""

from __future__ import annotations

import random
from typing import Any

import pytest

from earmark.v1 import common_pb2, scheduler_plugin_pb2
from support.contract_plugin import SUCCESS, UNSCHEDULABLE, Scheduler
from support.contract_stack import Stack


@pytest.fixture
async def full(stack: Stack) -> Scheduler:
    """Node n1 has two devices: pod a has one, pods b and c share the other; q is nominated for b's and c's."""
    await stack.cluster("gpu-0", "gpu-1")
    await stack.pod("a")
    await stack.pod("b")
    await stack.pod("c", claim="b-gpu")
    await stack.pod("q", "high")
    await stack.pod("p", "high")
    scheduler = Scheduler(stack)
    await scheduler.start()
    for name in ("a", "b", "c"):
        await scheduler.place(name)
    await scheduler.nominate("q", "b", "c")
    return scheduler


class Fork:
    """Unary calls on one node's fork of one cycle."""

    def __init__(self, scheduler: Scheduler, cycle_id: str, node: str = "n1") -> None:
        self._scheduler = scheduler
        self._fields: dict[str, Any] = {"session": scheduler.session, "cycle_id": cycle_id, "node_name": node}
        self.cycle_id = cycle_id

    async def add(self, pod: str) -> None:
        request = scheduler_plugin_pb2.AddPodRequest(**self._fields, pod=await self._scheduler.ref(pod))
        assert (await self._scheduler.plugin.AddPod(request, timeout=5)).status.code == SUCCESS

    async def remove(self, pod: str) -> None:
        request = scheduler_plugin_pb2.RemovePodRequest(**self._fields, pod=await self._scheduler.ref(pod))
        assert (await self._scheduler.plugin.RemovePod(request, timeout=5)).status.code == SUCCESS

    async def verdict(self) -> common_pb2.NodeVerdicts:
        return await self._scheduler.forks(self.cycle_id)


def code(verdicts: common_pb2.NodeVerdicts) -> int:
    (index,) = verdicts.verdicts
    return int(verdicts.statuses[index].code)


@pytest.mark.kep("E14", "E15", "E16")
async def test_removing_and_adding_again_leaves_no_trace(full: Scheduler) -> None:
    fork = Fork(full, await full.pre_filter("p"))
    untouched = await fork.verdict()
    assert code(untouched) == UNSCHEDULABLE
    await fork.remove("a")
    assert code(await fork.verdict()) == SUCCESS
    await fork.add("a")
    assert await fork.verdict() == untouched
    # A shared claim is free only without both.
    await fork.remove("b")
    assert code(await fork.verdict()) == UNSCHEDULABLE
    await fork.remove("c")
    assert code(await fork.verdict()) == SUCCESS
    # ... and not for a pod below the one that is nominated for it.
    await fork.add("q")
    held = await fork.verdict()
    assert code(held) == UNSCHEDULABLE
    assert list(held.with_nominated) == [True]
    await fork.remove("q")
    assert code(await fork.verdict()) == SUCCESS
    await fork.add("c")
    await fork.add("b")
    assert await fork.verdict() == untouched


@pytest.mark.kep("E17", "E18")
@pytest.mark.parametrize("seed", range(4))
async def test_unary_calls_and_sets_answer_alike(full: Scheduler, seed: int) -> None:
    choose = random.Random(seed)
    uids = {name: (await full.ref(name)).uid for name in "abcq"}
    fork = Fork(full, await full.pre_filter("p"))
    untouched = await fork.verdict()
    removed: dict[str, None] = {}
    nominated: dict[str, None] = {}
    seen = set()
    for _ in range(40):
        name = choose.choice("abcq")
        mine = nominated if name == "q" else removed
        # What is there is taken back by the opposite call; what is not there comes by the call of its kind.
        undo = name in mine
        await (fork.add if (name == "q") != undo else fork.remove)(name)
        if undo:
            del mine[name]
        else:
            mine[name] = None
        if choose.random() < 0.3 and not undo:
            # Once more changes nothing.
            await (fork.add if name == "q" else fork.remove)(name)
        answer = await fork.verdict()
        if removed or nominated:
            sets = await full.forks(fork.cycle_id, [uids[n] for n in removed], [uids[n] for n in nominated])
            assert answer == sets, (list(removed), list(nominated))
        else:
            assert answer == untouched
        seen.add(code(answer))
    assert seen == {SUCCESS, UNSCHEDULABLE}


async def test_forks_of_other_nodes_and_cycles_are_apart(full: Scheduler) -> None:
    mine = Fork(full, await full.pre_filter("p"))
    sandbox = await full.sandbox()
    other_cycle = Fork(sandbox, await sandbox.pre_filter("p"))
    await Fork(full, mine.cycle_id, "n2").remove("a")
    assert code(await mine.verdict()) == UNSCHEDULABLE
    await mine.remove("a")
    assert code(await mine.verdict()) == SUCCESS
    assert code(await other_cycle.verdict()) == UNSCHEDULABLE


async def test_a_fork_is_not_what_filter_and_reserve_see(full: Scheduler) -> None:
    fork = Fork(full, await full.pre_filter("p"))
    await fork.remove("a")
    assert await full.filter(fork.cycle_id) == UNSCHEDULABLE
    request = scheduler_plugin_pb2.ReserveRequest(session=full.session, cycle_id=fork.cycle_id, node_name="n1")
    assert (await full.plugin.Reserve(request, timeout=5)).status.code != SUCCESS
    assert full.component.core.world.reservations == {}


async def test_a_round_over_many_nodes_answers_each_query_by_itself(full: Scheduler) -> None:
    cycle_id = await full.pre_filter("p")
    uids = [(await full.ref(name)).uid for name in "abcq"]
    queries = [
        common_pb2.NodeQuery(node=0),
        common_pb2.NodeQuery(node=0, removed=[0]),
        common_pb2.NodeQuery(node=0, removed=[1]),
        common_pb2.NodeQuery(node=0, removed=[2, 1]),
        common_pb2.NodeQuery(node=0, removed=[1, 2], nominated=[3]),
        common_pb2.NodeQuery(node=1, removed=[0]),
    ]
    request = scheduler_plugin_pb2.FilterForksRequest(
        session=full.session, cycle_id=cycle_id, nodes=["n1", "nowhere"], pod_uids=uids, queries=queries
    )
    verdicts = (await full.plugin.FilterForks(request, timeout=5)).verdicts
    codes = [verdicts.statuses[index].code for index in verdicts.verdicts]
    assert codes == [UNSCHEDULABLE, SUCCESS, UNSCHEDULABLE, SUCCESS, UNSCHEDULABLE, UNSCHEDULABLE]
    # Each status is sent once.
    assert len(verdicts.statuses) == 3
