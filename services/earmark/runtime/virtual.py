"""An event loop with virtual time: when nothing is ready it jumps to its next timer, and nothing ever waits.

There is no real I/O in it: no sockets, no pipes, no threads. With components that take time and randomness from their
environment, a run is a function of its inputs. Tests use it by the marker `virtual` (tests/conftest.py), the simulation
by `run_virtual`.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import UTC, datetime
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from earmark.runtime.clock import LoopClock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# The moment at which a virtual run begins where nobody says otherwise.
DEFAULT_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

# Timers are kept to the nanosecond, so that sums of decimal fractions meet at the same instant.
_DIGITS = 9

# Iterations without time moving on after which a run counts as one that goes in circles.
_MAX_ITERATIONS_AT_ONE_INSTANT = 2_000_000


class VirtualDeadlockError(RuntimeError):
    """Everything waits, and no timer is left that could end the waiting."""


class VirtualLivelockError(RuntimeError):
    """Tasks wake each other for ever without virtual time moving on."""


class _VirtualSelector:
    """What BaseEventLoop asks for I/O events; it moves the time instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._iterations = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise VirtualDeadlockError(self._describe("nothing is left to happen, and these tasks wait"))
        if timeout > 0:
            self._iterations = 0
            self._loop.advance(timeout)
            return []
        self._iterations += 1
        if self._iterations > _MAX_ITERATIONS_AT_ONE_INSTANT:
            raise VirtualLivelockError(self._describe(f"no end of work at {self._loop.time()} s; tasks"))
        return []

    def _describe(self, what: str) -> str:
        tasks = sorted(asyncio.all_tasks(self._loop), key=lambda task: task.get_name())
        lines = []
        for task in tasks:
            frames = task.get_stack(limit=1)
            where = f"{frames[0].f_code.co_qualname}:{frames[0].f_lineno}" if frames else "not started"
            lines.append(f"{task.get_name()} ({where})")
        return f"virtual time {self._loop.time()} s: {what}: {', '.join(lines) or 'none'}"

    def close(self) -> None:
        """Nothing to release."""


class _OrderedTimer(asyncio.TimerHandle):
    """A timer that comes after the timers of the same instant that were made before it."""

    # A slot of TimerHandle that only BaseEventLoop uses.
    _scheduled: bool

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: VirtualLoop,
        context: Context | None,
        number: int,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self._order = (when, number)

    def __lt__(self, other: asyncio.TimerHandle) -> bool:
        if isinstance(other, _OrderedTimer):
            return self._order < other._order
        return super().__lt__(other)


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop whose time begins at 0 and jumps from timer to timer."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual_time = 0.0
        self._timers_made = 0
        # The heap that BaseEventLoop works on.
        self._scheduled: list[_OrderedTimer] = []
        self._selector = _VirtualSelector(self)
        # BaseEventLoop treats timers within its resolution as due.
        self._clock_resolution = 10.0**-_DIGITS

    def time(self) -> float:
        """Return virtual seconds since the loop was made."""
        return self._virtual_time

    def advance(self, seconds: float) -> None:
        """Move the time on. Called by the loop itself."""
        self._virtual_time = round(self._virtual_time + seconds, _DIGITS)

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back when the time is `when`, to the nanosecond; of one instant, in the order of the calls."""
        self._timers_made += 1
        due = round(when, _DIGITS)
        if due <= self._virtual_time < when:
            # Who waits for less than a nanosecond waits for one: else a loop that waits for the rest of a deadline,
            # which sums of fractions put a hair behind the instant, would never get there.
            due = round(self._virtual_time + 10.0**-_DIGITS, _DIGITS)
        timer = _OrderedTimer(due, callback, args, self, context, self._timers_made)
        heapq.heappush(self._scheduled, timer)
        # As BaseEventLoop.call_at does: a cancelled timer is counted, to be swept from the heap.
        timer._scheduled = True
        return timer

    def run_in_executor(self, executor: object, func: Callable[..., object], *args: object) -> NoReturn:
        """Refuse: a thread would bring real time in."""
        raise RuntimeError(f"no threads in virtual time: {getattr(func, '__qualname__', func)}")

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no I/O events."""

    def _write_to_self(self) -> None:
        """Nothing to wake: the loop never blocks."""


def virtual_clock(epoch: datetime = DEFAULT_EPOCH) -> LoopClock:
    """Return a clock of the running loop."""
    return LoopClock(asyncio.get_running_loop(), epoch)


def run_virtual(main: Callable[[LoopClock], Coroutine[Any, Any, T]], epoch: datetime = DEFAULT_EPOCH) -> T:
    """Run `main(clock)` in a fresh virtual loop until it returns, and return its result.

    Raises VirtualDeadlockError when main waits for something that can never happen.
    """

    async def run() -> T:
        return await main(LoopClock(asyncio.get_running_loop(), epoch))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(run())
