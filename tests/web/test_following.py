"""The page follows a whole stack of services: slices, claims, pods, windows and the queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import yaml

from earmark.client import EarmarkClient
from earmark.framework import component as framework
from earmark.kube.api import ApiUnavailable
from earmark.runtime.clock import LoopClock
from earmark.runtime.tasks import ComponentTasks
from earmark.web.actions import ClientActions, Refused
from earmark.web.board import Board
from earmark.web.cells import State
from earmark.web.feed import Feed
from earmark.web.following import Following
from support.client_stack import client_of, example_stack
from support.contract_stack import FRAMEWORK, Stack

pytestmark = pytest.mark.virtual

DEVICE = "gpu.example.com/gpu-a/gpu-0"


class Followed:
    """A stack, and a feed that follows it."""

    def __init__(self, stack: Stack, client: EarmarkClient, feed: Feed, repository: Path) -> None:
        self.stack = stack
        self.client = client
        self.feed = feed
        self.examples = repository / "examples/gpu-cluster"

    def actions(self) -> ClientActions:
        async def explain(client: EarmarkClient, namespace: str, name: str) -> list[str]:
            return [(await client.explain(namespace, name)).where]

        return ClientActions(self.client, self.stack.world.api, self.feed.board, explain)

    def cell(self, device: str = DEVICE) -> tuple[State, str]:
        names = [name for row in self.feed.board.rows() for name in row.devices]
        found = self.feed.board.cells()[names.index(device)]
        return found.state, found.text

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(2000):
            if holds():
                return
            await asyncio.sleep(0.05)
        pytest.fail(f"it never held; {self.cell()}")

    async def apply(self, name: str) -> None:
        for manifest in yaml.safe_load_all((self.examples / name).read_text(encoding="utf-8")):
            await self.stack.world.apply(manifest)


@pytest.fixture
async def followed(clock: LoopClock, repository: Path) -> AsyncIterator[Followed]:
    async with example_stack(repository / "examples/gpu-cluster", "cluster", "running.yaml") as stack:
        feed = Feed(Board(), clock)
        tasks = ComponentTasks("web")
        async with client_of(stack) as client:
            Following(feed, stack.world.api, client, clock).start(tasks)
            made = Followed(stack, client, feed, repository)
            await made.until(lambda: feed.board.counts()["A"] == 2)
            try:
                yield made
            finally:
                await tasks.cancel_all()


async def test_a_preemption_goes_over_the_map_from_allocated_to_allocated(followed: Followed) -> None:
    assert followed.cell() == (State.ALLOCATED, followed.cell()[1])
    assert "default/training" in followed.cell()[1]
    await followed.apply("urgent.yaml")
    await followed.until(lambda: followed.cell()[0] is State.RECLAIMED)
    assert "earmarked for default/incident" in followed.cell()[1]
    await followed.until(lambda: "allocated to default/incident" in followed.cell()[1])
    assert [item.open for item in followed.feed.board.windows._windows.values()] == [False]


async def test_the_queue_is_followed(followed: Followed) -> None:
    await followed.apply("latecomer.yaml")

    def waits() -> bool:
        return b'"name":"latecomer"' in followed.feed.snapshot()

    await followed.until(waits)


async def test_what_if_looks_up_the_priority_class_and_changes_nothing(followed: Followed) -> None:
    before = followed.feed.snapshot()
    answer = await followed.actions().whatif((followed.examples / "urgent.yaml").read_text(encoding="utf-8"))
    assert answer["summary"] == "It would preempt 1 pod on node gpu-a."
    assert answer["chosen"]["victims"] == [{"name": "default/training", "devices": [DEVICE]}]  # type: ignore[index]
    await asyncio.sleep(5)
    # Apart from the time of day.
    assert followed.feed.snapshot().partition(b'"layout"')[2] == before.partition(b'"layout"')[2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Pod\nmetadata: {}\nspec: {priorityClassName: nobody}", "nobody"),
        ("kind: Pod\nmetadata: {}\nspec: {containers: 5}", "containers"),
        ("kind: Node", "want Pod"),
    ],
)
async def test_what_is_wrong_with_a_manifest_is_said(followed: Followed, text: str, said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        await followed.actions().whatif(text)
    assert caught.value.status == 400


async def test_a_service_that_is_away_is_a_problem_that_goes_away(followed: Followed) -> None:
    await followed.stack.kill("framework")
    await followed.until(lambda: b'"problems":["framework' in followed.feed.snapshot())
    await followed.stack.start("framework", framework.build, FRAMEWORK)
    await followed.until(lambda: b'"problems":[]' in followed.feed.snapshot())


async def test_an_api_that_is_away_is_a_problem_that_goes_away(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*arguments: object, **more: object) -> None:
        raise ApiUnavailable("connection refused")

    with monkeypatch.context() as patch:
        patch.setattr(followed.stack.world.api, "list", away)
        await followed.until(lambda: b"the Kubernetes API does not answer: connection" in followed.feed.snapshot())
    await followed.until(lambda: b'"problems":[]' in followed.feed.snapshot())
