"""Clocks: the system's, and one that follows an event loop (which may run in virtual time).

The seam itself is earmark.kube.clock.Clock.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds; a negative number counts as 0."""
        await asyncio.sleep(max(0.0, seconds))


class LoopClock:
    """A clock that shows the time of an event loop, counted from an epoch.

    With earmark.runtime.virtual.VirtualLoop it is the simulation's clock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: datetime) -> None:
        """Show `epoch` (an aware datetime) at the loop's present time."""
        if epoch.tzinfo is None:
            raise ValueError("epoch: want an aware datetime")
        self._loop = loop
        self._epoch = epoch.astimezone(UTC)
        self._start = loop.time()

    def now(self) -> datetime:
        """Return epoch + what has passed on the loop, in whole microseconds."""
        return self._epoch + timedelta(microseconds=round((self._loop.time() - self._start) * 1e6))

    def monotonic(self) -> float:
        """Return the loop's time in seconds."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Return when the loop's time has moved on by this many seconds; a negative number counts as 0."""
        await asyncio.sleep(max(0.0, seconds))
