"""Every contract test runs twice: over the in-process channel in virtual time, and over a Unix socket."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from earmark.runtime.clock import LoopClock
from support.contract_plugin import Scheduler
from support.contract_stack import Stack


@pytest.fixture(params=[pytest.param("inprocess", marks=pytest.mark.virtual), "socket"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which channel."""
    return str(request.param)


@pytest.fixture
async def stack(kind: str, clock: LoopClock) -> AsyncIterator[Stack]:
    """An API without objects, and no service yet."""
    made = Stack(clock, kind)
    yield made
    await made.close()


@pytest.fixture
async def services(stack: Stack) -> Stack:
    """All services, on a node with one device."""
    await stack.cluster("gpu-0")
    await stack.start_all()
    return stack


@pytest.fixture
async def scheduler(stack: Stack) -> Scheduler:
    """The plugin alone with a scheduler's session: node n1 has gpu-0, pods v (low), p and q (high) are not placed."""
    await stack.cluster("gpu-0")
    await stack.pod("v")
    await stack.pod("p", "high")
    await stack.pod("q", "high")
    made = Scheduler(stack)
    await made.start()
    return made
