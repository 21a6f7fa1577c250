"""Background tasks, and bounded retries."""

from __future__ import annotations

import asyncio
import itertools

import grpc
import pytest

from earmark.kube.api import ApiError, ApiUnavailable
from earmark.runtime.clock import LoopClock
from earmark.runtime.exchange import Outcome
from earmark.runtime.ids import SeededIds
from earmark.runtime.inprocess import rpc_error
from earmark.runtime.retry import retrying, transient
from earmark.runtime.tasks import ComponentTasks


@pytest.mark.virtual
async def test_a_task_that_fails_is_reported_once() -> None:
    failures: list[str] = []
    tasks = ComponentTasks("framework", lambda name, error: failures.append(f"{name}: {error}"))

    async def fail() -> None:
        raise RuntimeError("worn out")

    tasks.spawn(fail(), "queue")
    await asyncio.sleep(1)
    assert failures == ["framework/queue: worn out"]
    assert tasks.names() == ()


@pytest.mark.virtual
async def test_cancel_all_waits_for_clean_up_and_reports_nothing() -> None:
    failures: list[str] = []
    cleaned: list[str] = []
    tasks = ComponentTasks("framework", lambda name, error: failures.append(name))

    async def work(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            cleaned.append(name)

    tasks.spawn(work("a"), "a")
    tasks.spawn(work("b"), "b")
    await asyncio.sleep(0)
    await tasks.cancel_all()
    assert (cleaned, failures) == (["a", "b"], [])
    with pytest.raises(RuntimeError, match="has ended"):
        tasks.spawn(work("c"), "c")


@pytest.mark.virtual
async def test_a_call_is_repeated_with_growing_waits_until_it_succeeds(clock: LoopClock) -> None:
    times: list[float] = []

    async def call() -> str:
        times.append(clock.monotonic())
        if len(times) < 4:
            raise ApiUnavailable("away")
        return "done"

    assert await retrying(call, clock=clock, ids=SeededIds(1), first_wait=1.0) == "done"
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert all(span / 2 <= wait <= span for wait, span in zip(waits, (1, 2, 4), strict=True))


@pytest.mark.virtual
async def test_the_last_error_is_raised_after_the_last_attempt(clock: LoopClock) -> None:
    attempts: list[int] = []

    async def call() -> None:
        attempts.append(1)
        raise ApiUnavailable("away")

    with pytest.raises(ApiUnavailable, match="away"):
        await retrying(call, clock=clock, ids=SeededIds(1), attempts=3)
    assert len(attempts) == 3


def test_only_what_may_succeed_when_repeated_is_transient() -> None:
    assert transient(rpc_error(Outcome(grpc.StatusCode.UNAVAILABLE)))
    assert transient(rpc_error(Outcome(grpc.StatusCode.ABORTED)))
    assert transient(ApiError(409, "Conflict", "changed"))
    assert not transient(rpc_error(Outcome(grpc.StatusCode.INVALID_ARGUMENT)))
    assert not transient(rpc_error(Outcome(grpc.StatusCode.DEADLINE_EXCEEDED)))
    assert not transient(ApiError(422, "Invalid", "no"))
    assert not transient(RuntimeError("bug"))
