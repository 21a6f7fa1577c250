"""The work queue: once at a time, again after changes, later after failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from earmark.kube.workqueue import Retry, WorkQueue
from earmark.runtime.clock import LoopClock
from earmark.runtime.tasks import ComponentTasks

pytestmark = pytest.mark.virtual


class Work:
    """Notes when each key is worked on; fails `failures` times; takes `seconds`."""

    def __init__(self, clock: LoopClock, failures: int = 0, seconds: float = 0.0) -> None:
        self.clock = clock
        self.failures = failures
        self.seconds = seconds
        self.done: list[tuple[float, str]] = []
        self.running = 0
        self.most = 0

    async def __call__(self, key: str) -> None:
        self.running += 1
        self.most = max(self.most, self.running)
        self.done.append((round(self.clock.monotonic(), 3), key))
        await self.clock.sleep(self.seconds)
        self.running -= 1
        if self.failures:
            self.failures -= 1
            raise Retry("not yet")


@pytest.fixture
async def tasks() -> AsyncIterator[ComponentTasks]:
    tasks = ComponentTasks("test")
    yield tasks
    await tasks.cancel_all()


async def test_keys_added_twice_are_worked_on_once(clock: LoopClock, tasks: ComponentTasks) -> None:
    work = Work(clock)
    queue = WorkQueue(clock, work, "q")
    for key in ("b", "a", "b"):
        queue.add(key)
    queue.start(tasks, 2)
    await asyncio.sleep(1)
    assert [key for _, key in work.done] == ["b", "a"]
    assert len(queue) == 0


async def test_a_key_is_never_worked_on_twice_at_a_time_but_again_if_it_changed(
    clock: LoopClock, tasks: ComponentTasks
) -> None:
    work = Work(clock, seconds=5)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 3)
    queue.add("a")
    await asyncio.sleep(1)
    queue.add("a")
    queue.add("a")
    await asyncio.sleep(20)
    assert work.done == [(0.0, "a"), (5.0, "a")]
    assert work.most == 1


async def test_failures_wait_twice_as_long_each_time_and_success_forgets_them(
    clock: LoopClock, tasks: ComponentTasks
) -> None:
    work = Work(clock, failures=3)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 1)
    queue.add("a")
    await asyncio.sleep(10)
    assert [at for at, _ in work.done] == [0.0, 0.005, 0.015, 0.035]
    work.failures = 1
    queue.add("a")
    await asyncio.sleep(10)
    assert [at for at, _ in work.done[4:]] == [10.0, 10.005]


async def test_the_earliest_of_several_times_counts_and_an_add_replaces_them(
    clock: LoopClock, tasks: ComponentTasks
) -> None:
    work = Work(clock)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 1)
    queue.add_after("a", 5)
    queue.add_after("a", 9)
    queue.add_after("a", 3)
    queue.add_after("b", 8)
    await asyncio.sleep(4)
    queue.add("b")
    await asyncio.sleep(20)
    assert work.done == [(3.0, "a"), (4.0, "b")]


async def test_a_paused_queue_does_everything_after_resume(clock: LoopClock, tasks: ComponentTasks) -> None:
    work = Work(clock)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 2)
    queue.pause()
    queue.add("a")
    queue.add_after("b", 2)
    await asyncio.sleep(60)
    assert work.done == []
    assert len(queue) == 2
    queue.resume()
    await asyncio.sleep(0.001)
    assert work.done == [(60.0, "a"), (60.0, "b")]


async def test_many_failing_keys_share_ten_retries_a_second_after_the_burst(
    clock: LoopClock, tasks: ComponentTasks
) -> None:
    work = Work(clock, failures=150)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 1)
    for number in range(150):
        queue.add(f"{number:03}")
    await asyncio.sleep(60)
    assert work.done[-1][0] == pytest.approx(5.0, abs=0.2)


async def test_fractions_of_seconds_come_to_an_end(clock: LoopClock, tasks: ComponentTasks) -> None:
    work = Work(clock)
    queue = WorkQueue(clock, work, "q")
    queue.start(tasks, 1)
    for number in range(50):
        await asyncio.sleep(0.1)
        queue.add_after(f"{number:03}", 0.7 / 3)
    queue.add_after("tiny", 1e-12)
    await asyncio.sleep(5)
    assert len(work.done) == 51
