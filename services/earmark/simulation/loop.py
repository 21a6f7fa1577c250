"""The event loop of a simulation: virtual time that stops at every instant until all work of it is done.

An instant is settled when nothing is ready to run and the next timer is later. Only then are expectations and most
invariants looked at, and only then does the time move on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from earmark.runtime.clock import LoopClock
from earmark.runtime.virtual import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

# Beyond every timer that a scenario can have.
_FAR_SECONDS = 1e9


class SimulationLoop(VirtualLoop):
    """A virtual loop that says when an instant is settled."""

    def __init__(self) -> None:
        super().__init__()
        self._waiters: list[asyncio.Future[None]] = []
        self._idle: Callable[[], None] | None = None

    def on_settled(self, callback: Callable[[], None] | None) -> None:
        """Call back at the end of every instant, before the time moves on; it must not schedule work."""
        self._idle = callback

    def advance(self, seconds: float) -> None:
        """Wake those who wait for the instant to be settled; move the time on if nobody does."""
        if self._idle is not None:
            self._idle()
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
            return
        super().advance(seconds)

    async def settled(self) -> None:
        """Return when everything that is due now has happened."""
        waiter: asyncio.Future[None] = self.create_future()
        self._waiters.append(waiter)
        # Where nobody has a timer the loop would wait for ever instead of coming to the end of the instant.
        guard = self.call_later(_FAR_SECONDS, lambda: None)
        try:
            await waiter
        finally:
            guard.cancel()


class SimulationClock(LoopClock):
    """The clock of one component; it knows what the component's tasks wait for."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime) -> None:
        super().__init__(loop, epoch)
        self._sleepers: dict[object, tuple[str, float]] = {}

    async def sleep(self, seconds: float) -> None:
        """Return when the loop's time has moved on by this many seconds."""
        with self._noted(seconds):
            await super().sleep(seconds)

    @contextmanager
    def _noted(self, seconds: float) -> Iterator[None]:
        task = asyncio.current_task()
        token = object()
        self._sleepers[token] = (task.get_name() if task is not None else "", self.monotonic() + seconds)
        try:
            yield
        finally:
            del self._sleepers[token]

    def sleepers(self) -> list[tuple[str, float]]:
        """Return who sleeps until when: task names and the loop's time, in the order in which they fell asleep."""
        return list(self._sleepers.values())
