"""What one watcher of settling windows has still to be sent: the newest state of each window that changed.

A watcher that is slow, or hangs, misses states in between; what is kept for it does not grow.
"""

from __future__ import annotations

import asyncio

from earmark.dynamicresources.settlement import Window, WindowKey


class SettlementWatch:
    """Windows on their way to one watcher."""

    def __init__(self, kept: int) -> None:
        """Keep at most `kept` windows; the one that has waited longest goes first."""
        self._kept = kept
        self._windows: dict[WindowKey, Window] = {}
        self._changed = asyncio.Event()

    def put(self, window: Window) -> None:
        """Take a window's new state, in place of one that was not sent yet."""
        self._windows[window.key] = window
        if len(self._windows) > self._kept:
            del self._windows[next(iter(self._windows))]
        self._changed.set()

    async def get(self) -> Window:
        """Return the next window, when there is one."""
        while not self._windows:
            self._changed.clear()
            await self._changed.wait()
        return self._windows.pop(next(iter(self._windows)))

    def __len__(self) -> int:
        return len(self._windows)
