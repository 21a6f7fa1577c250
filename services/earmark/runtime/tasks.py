"""Background tasks of one component: they end with it, and one that fails ends it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_log = logging.getLogger(__name__)


class ComponentTasks:
    """Implements earmark.runtime.component.Tasks."""

    def __init__(self, component: str, on_failure: Callable[[str, BaseException], None] | None = None) -> None:
        """Keep the tasks of `component`.

        `on_failure(task_name, error)` is called once for each task that an exception left; without it the error is
        only logged.
        """
        self._component = component
        self._on_failure = on_failure
        # A dict for its order: tasks are cancelled in the order in which they were made.
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closed = False

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background, under a name for logs.

        Raises RuntimeError after cancel_all.
        """
        if self._closed:
            coroutine.close()
            raise RuntimeError(f"{self._component}: no new task {name!r}: the component has ended")
        task = asyncio.get_running_loop().create_task(coroutine, name=f"{self._component}/{name}")
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        _log.error("%s: task failed", task.get_name(), exc_info=error)
        if self._on_failure is not None and not self._closed:
            self._on_failure(task.get_name(), error)

    def names(self) -> tuple[str, ...]:
        """Return the names of the tasks that run, oldest first."""
        return tuple(task.get_name() for task in self._tasks)

    async def cancel_all(self) -> None:
        """Cancel what runs and return when all of it has ended. Nothing can be spawned afterwards."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            # Results are collected, errors were seen by _done.
            await asyncio.gather(*tasks, return_exceptions=True)

    def kill(self) -> None:
        """Cancel what runs, at once and without waiting, as the end of a process does."""
        self._closed = True
        for task in list(self._tasks):
            task.cancel()
