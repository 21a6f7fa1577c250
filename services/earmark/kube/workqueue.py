"""A queue of keys to work on, each at most once at a time, with retries that wait longer and longer.

Like client-go's rate-limited queue: a key that is added while it is worked on is worked on again afterwards; failures
back off by key, 5 ms to 1000 s, and together may not retry more than 10 times a second after a burst of 100.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.clock import Clock
from earmark.kube.spawner import Spawner

FIRST_BACKOFF_SECONDS = 0.005
LONGEST_BACKOFF_SECONDS = 1000.0
RETRIES_PER_SECOND = 10.0
RETRY_BURST = 100.0
SHORTEST_WAIT_SECONDS = 1e-6


K = TypeVar("K", bound=Hashable)

_log = logging.getLogger(__name__)


class Retry(Exception):
    """The work on a key failed and is to be tried again; the text says why."""


class WorkQueue(Generic[K]):
    """Keys that are due, keys that will be, and the workers that take them."""

    def __init__(self, clock: Clock, work: Callable[[K], Awaitable[None]], name: str) -> None:
        """Call `work(key)` for each key. Retry, ApiError and ApiUnavailable from it mean: again, later."""
        self._clock = clock
        self._work = work
        self._name = name
        self._ready: deque[K] = deque()
        # Keys that wait in _ready, keys that are worked on, and of the latter those that were added again.
        self._waiting: set[K] = set()
        self._active: set[K] = set()
        self._again: set[K] = set()
        # Per key the earliest moment for which it is scheduled (monotonic seconds); the heap may have stale entries.
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushed = 0
        self._failures: dict[K, int] = {}
        self._tokens = RETRY_BURST
        self._tokens_at = clock.monotonic()
        self._paused = False
        self._changed = asyncio.Event()
        self._rescheduled = asyncio.Event()

    def start(self, tasks: Spawner, workers: int) -> None:
        """Start this many workers and the timer."""
        tasks.spawn(self._timer(), f"{self._name} timer")
        for number in range(workers):
            tasks.spawn(self._worker(), f"{self._name} worker {number}")

    def add(self, key: K) -> None:
        """Have the key worked on as soon as possible, in place of a time for which it is scheduled."""
        self._due.pop(key, None)
        if key in self._active:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._changed.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Have the key worked on after this time, or earlier if it is due earlier already."""
        if seconds <= 0:
            self.add(key)
            return
        when = self._clock.monotonic() + max(seconds, SHORTEST_WAIT_SECONDS)
        if self._due.get(key, when + 1) <= when:
            return
        self._due[key] = when
        self._pushed += 1
        heapq.heappush(self._heap, (when, self._pushed, key))
        self._rescheduled.set()

    def pause(self) -> None:
        """Let keys wait; what is being worked on is finished."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False
        self._changed.set()

    @property
    def paused(self) -> bool:
        """Whether keys wait."""
        return self._paused

    def __len__(self) -> int:
        """Keys that are waiting or scheduled."""
        return len(self._waiting) + len(self._due) + len(self._again)

    # --- workers -----------------------------------------------------------------------------------------------------

    async def _worker(self) -> None:
        while True:
            while self._paused or not self._ready:
                self._changed.clear()
                await self._changed.wait()
            key = self._ready.popleft()
            self._waiting.discard(key)
            self._active.add(key)
            try:
                await self._attempt(key)
            finally:
                self._active.discard(key)
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    async def _attempt(self, key: K) -> None:
        try:
            await self._work(key)
        except (Retry, ApiError, ApiUnavailable) as error:
            delay = self._retry_delay(key)
            _log.info("%s: %s: %s; again in %.3f s", self._name, key, error, delay)
            self.add_after(key, delay)
        else:
            self._failures.pop(key, None)

    def _retry_delay(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        backoff = min(FIRST_BACKOFF_SECONDS * 2.0 ** min(failures, 60), LONGEST_BACKOFF_SECONDS)
        now = self._clock.monotonic()
        self._tokens = min(RETRY_BURST, self._tokens + (now - self._tokens_at) * RETRIES_PER_SECOND) - 1
        self._tokens_at = now
        return max(backoff, -self._tokens / RETRIES_PER_SECOND)

    async def _timer(self) -> None:
        while True:
            now = self._clock.monotonic()
            # Sums of fractions miss an instant by less than this; a clock may not move on by so little.
            while self._heap and self._heap[0][0] <= now + SHORTEST_WAIT_SECONDS / 2:
                when, _, key = heapq.heappop(self._heap)
                if self._due.get(key) == when:
                    self.add(key)
            self._rescheduled.clear()
            if not self._heap:
                await self._rescheduled.wait()
                continue
            await self._sleep_until_rescheduled(self._heap[0][0] - now)

    async def _sleep_until_rescheduled(self, seconds: float) -> None:
        """Sleep, but no longer than until an earlier key may have come in."""
        sleep = asyncio.ensure_future(self._clock.sleep(seconds))
        changed = asyncio.ensure_future(self._rescheduled.wait())
        try:
            await asyncio.wait((sleep, changed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleep.cancel()
            changed.cancel()
