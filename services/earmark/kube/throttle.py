"""A limit on how often a client calls, as client-go's: a bucket of `burst` tokens that fills by `qps` a second."""

from __future__ import annotations

import asyncio


class Throttle:
    """Lets calls pass in their order. A qps of 0 lets everything pass at once."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._due = 0.0

    async def pass_(self) -> None:
        """Return when the next call may be made."""
        if self._qps <= 0:
            return
        now = asyncio.get_running_loop().time()
        # Calls are due one after the other, 1/qps apart; a call may come as much early as the burst allows.
        due = max(self._due, now)
        self._due = due + 1 / self._qps
        wait = due - (self._burst - 1) / self._qps - now
        if wait > 0:
            await asyncio.sleep(wait)
