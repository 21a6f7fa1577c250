"""A limit on how often a client calls, as client-go's: a bucket of `burst` tokens that fills by `qps` a second."""

from __future__ import annotations

import asyncio


class Throttle:
    """Lets calls pass in their order. A qps of 0 lets everything pass at once."""

    def __init__(self, qps: float, burst: int) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._next = 0.0

    async def pass_(self) -> None:
        """Return when the next call may be made."""
        if self._qps <= 0:
            return
        now = asyncio.get_running_loop().time()
        # The moment from which a full bucket would have been used up by the calls so far.
        self._next = max(self._next, now - self._burst / self._qps) + 1 / self._qps
        if self._next > now:
            await asyncio.sleep(self._next - now)
