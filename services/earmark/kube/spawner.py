"""What the informers need of a task group, so that kube does not depend on the runtime package."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Spawner(Protocol):
    """Runs background tasks (earmark.runtime.component.Tasks is one)."""

    def spawn(self, coroutine: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run a coroutine in the background."""
