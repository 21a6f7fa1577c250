"""A thread with an event loop, for callers without one. The sandbox is kept alive in it while the caller thinks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines in a loop of another thread and waits for them. Close it when done."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Start a thread, unless a `loop` is given that runs in another one."""
        self._thread: threading.Thread | None = None
        if loop is None:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=loop.run_forever, name="earmark client", daemon=True)
            self._thread.start()
        self._loop = loop

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine returns. Interrupted (Ctrl-C), it cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an async iterator, item by item; leaving the loop ends it."""
        try:
            while True:
                try:
                    yield self.call(_next(items))
                except StopAsyncIteration:
                    return
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                self.call(close())

    def close(self) -> None:
        """End the thread."""
        if self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._thread = None


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
