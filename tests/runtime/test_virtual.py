"""Virtual time."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from earmark.runtime.clock import LoopClock
from earmark.runtime.virtual import DEFAULT_EPOCH, VirtualDeadlockError, run_virtual


@pytest.mark.virtual
async def test_an_hour_passes_at_once_and_exactly(clock: LoopClock) -> None:
    await clock.sleep(3600)
    assert clock.now() == DEFAULT_EPOCH + timedelta(hours=1)


@pytest.mark.virtual
async def test_timers_fire_in_the_order_of_their_time_then_of_their_making(clock: LoopClock) -> None:
    seen: list[str] = []

    async def wait(seconds: float, name: str) -> None:
        await clock.sleep(seconds)
        seen.append(name)

    await asyncio.gather(wait(0.3, "c"), wait(0.2, "b1"), wait(0.2, "b2"), wait(0.1, "a"))
    assert seen == ["a", "b1", "b2", "c"]


@pytest.mark.virtual
async def test_sums_of_decimal_fractions_meet_at_one_instant(clock: LoopClock) -> None:
    for _ in range(10):
        await clock.sleep(0.1)
    assert clock.now() == DEFAULT_EPOCH + timedelta(seconds=1)
    assert asyncio.get_running_loop().time() == 1.0


def test_a_wait_that_cannot_end_is_named() -> None:
    async def main(clock: LoopClock) -> None:
        await asyncio.get_running_loop().create_task(asyncio.Event().wait(), name="forgotten")

    with pytest.raises(VirtualDeadlockError, match="forgotten"):
        run_virtual(main)


def test_two_runs_see_the_same_times() -> None:
    async def main(clock: LoopClock) -> list[float]:
        seen = []
        for step in (0.1, 1 / 3, 86400.5):
            await clock.sleep(step)
            seen.append(clock.monotonic())
        return seen

    assert run_virtual(main) == run_virtual(main)


@pytest.mark.virtual
async def test_wait_for_times_out_in_virtual_time(clock: LoopClock) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 30)
    assert clock.now() == DEFAULT_EPOCH + timedelta(seconds=30)


@pytest.mark.virtual
async def test_threads_are_refused() -> None:
    with pytest.raises(RuntimeError, match="no threads"):
        await asyncio.to_thread(print)
