"""An instant is settled only when all that is due at it has happened."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from earmark.simulation.loop import SimulationClock, SimulationLoop
from earmark.simulation.player import EPOCH


def run(main: Callable[[SimulationLoop], Coroutine[Any, Any, None]]) -> None:
    async def inside() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulationLoop)
        await main(loop)

    with asyncio.Runner(loop_factory=SimulationLoop) as runner:
        runner.run(inside())


def test_settled_waits_for_what_others_do_at_the_same_instant() -> None:
    seen: list[str] = []

    async def later() -> None:
        await asyncio.sleep(5)
        for _ in range(10):
            await asyncio.sleep(0)
        seen.append("due at 5")
        await asyncio.sleep(1)
        seen.append("due at 6")

    async def main(loop: SimulationLoop) -> None:
        loop.create_task(later())
        await asyncio.sleep(5)
        await loop.settled()
        assert loop.time() == 5
        assert seen == ["due at 5"]

    run(main)


def test_settled_returns_where_no_timer_is_left() -> None:
    async def main(loop: SimulationLoop) -> None:
        await loop.settled()
        assert loop.time() == 0

    run(main)


def test_the_end_of_every_instant_is_told() -> None:
    moments: list[float] = []

    async def main(loop: SimulationLoop) -> None:
        loop.on_settled(lambda: moments.append(loop.time()))
        await asyncio.sleep(1)
        await asyncio.sleep(2)
        loop.on_settled(None)
        await asyncio.sleep(3)

    run(main)
    assert moments == [0, 1]


def test_the_clock_knows_who_sleeps_until_when() -> None:
    async def main(loop: SimulationLoop) -> None:
        clock = SimulationClock(loop, EPOCH)
        loop.create_task(clock.sleep(7), name="x/flush")
        await asyncio.sleep(1)
        assert clock.sleepers() == [("x/flush", 7.0)]
        await asyncio.sleep(7)
        assert clock.sleepers() == []

    run(main)


def test_a_wait_for_the_rest_of_a_deadline_always_ends() -> None:
    async def main(loop: SimulationLoop) -> None:
        await asyncio.sleep(600.2)
        deadline = loop.time() + 0.2
        rounds = 0
        while (left := deadline - loop.time()) > 0:
            rounds += 1
            assert rounds < 10
            await asyncio.sleep(left)

    run(main)
