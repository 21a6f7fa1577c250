"""The clock that is passed in wherever something waits or is dated."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time. Implementations: earmark.runtime.clock (system time, virtual time)."""

    def now(self) -> datetime:
        """Return the wall-clock time as an aware datetime in UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back; only differences have a meaning."""

    async def sleep(self, seconds: float) -> None:
        """Return after this many seconds."""
