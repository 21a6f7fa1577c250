"""A remote plugin that breaks the contract fails attempts; the scheduler goes on and nobody is placed on its word."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from earmark.framework import wire
from earmark.framework.status import Code
from earmark.runtime.clock import LoopClock
from earmark.v1 import common_pb2, scheduler_plugin_pb2
from support.embedded_world import World
from support.framework_fakes import NAME, FakePlugin, Stand
from support.framework_objects import node, pod

UNKNOWN_CODE = 99


class TooFewScores(FakePlugin):
    async def Score(self, request: Any, context: Any) -> scheduler_plugin_pb2.ScoreResponse:
        return scheduler_plugin_pb2.ScoreResponse(scores=[1])


class NoVerdicts(FakePlugin):
    async def Filter(self, request: Any, context: Any) -> scheduler_plugin_pb2.FilterResponse:
        return scheduler_plugin_pb2.FilterResponse()


class VerdictsPastTheirTable(FakePlugin):
    async def Filter(self, request: Any, context: Any) -> scheduler_plugin_pb2.FilterResponse:
        verdicts = common_pb2.NodeVerdicts(verdicts=[7] * len(request.queries))
        return scheduler_plugin_pb2.FilterResponse(verdicts=verdicts)


class HalfOfThePasses(FakePlugin):
    async def Filter(self, request: Any, context: Any) -> scheduler_plugin_pb2.FilterResponse:
        verdicts = self._verdicts(request)
        del verdicts.with_nominated[1:]
        return scheduler_plugin_pb2.FilterResponse(verdicts=verdicts)


class StatusOfTomorrow(FakePlugin):
    async def PreFilter(self, request: Any, context: Any) -> scheduler_plugin_pb2.PreFilterResponse:
        status = common_pb2.Status(code=UNKNOWN_CODE)  # type: ignore[arg-type]
        return scheduler_plugin_pb2.PreFilterResponse(status=status, cycle_id="c")


@pytest.fixture
async def stand(clock: LoopClock) -> AsyncIterator[Stand]:
    world = World(clock)
    yield Stand(world)
    await world.close()


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (TooFewScores, f"plugin {NAME}: Score: INTERNAL: 1 scores for 2 nodes"),
        (NoVerdicts, f"plugin {NAME}: Filter: INTERNAL: 0 verdicts for 2 queries"),
        (VerdictsPastTheirTable, f"plugin {NAME}: Filter: INTERNAL: verdicts that point past their tables"),
        (HalfOfThePasses, f"plugin {NAME}: Filter: INTERNAL: verdicts that point past their tables"),
        (StatusOfTomorrow, f"running PreFilter plugin {NAME}: status code {UNKNOWN_CODE} is not known"),
    ],
)
async def test_an_answer_that_breaks_the_contract_is_an_error_of_the_attempt(
    stand: Stand, plugin: type[FakePlugin], message: str
) -> None:
    good = stand.plugin
    stand.plugin = plugin()
    await stand.start()
    await stand.create(node("n1"), node("n2"), pod("a"))
    await stand.world.until(2)
    assert await stand.condition("a") == ("SchedulerError", message)
    stand.plugin = good
    stand.plugin.instance = "mended"
    stand.serve_plugin()
    await stand.world.until(30)
    assert await stand.node_of("a") == "n1"


class NoStatuses(FakePlugin):
    async def PreEnqueue(self, request: Any, context: Any) -> scheduler_plugin_pb2.PreEnqueueResponse:
        return scheduler_plugin_pb2.PreEnqueueResponse()


@pytest.mark.virtual
async def test_no_pod_enters_on_an_answer_that_is_too_short(stand: Stand) -> None:
    good = stand.plugin
    stand.plugin = NoStatuses()
    await stand.start()
    await stand.create(node("n1"), pod("a"))
    await stand.world.until(5)
    assert await stand.node_of("a") == ""
    stand.plugin = good
    stand.plugin.instance = "mended"
    stand.serve_plugin()
    await stand.world.until(10)
    assert await stand.node_of("a") == "n1"


def test_a_code_that_is_not_known_is_no_success() -> None:
    status = wire.to_status(common_pb2.Status(code=UNKNOWN_CODE), NAME)  # type: ignore[arg-type]
    assert (status.code, status.plugin) == (Code.ERROR, NAME)
