"""Where the registry's objects are kept: the interface, and the store that keeps nothing.

The registry holds all objects in memory and gives the store every change, in the order of revisions. A store says up to
which revision changes are durable; nothing newer is acknowledged or shown to watchers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Record:
    """An object as stored; `kind` is the registry's name of the resource, body the JSON text."""

    kind: str
    namespace: str
    name: str
    revision: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Change:
    """A write: the new state of one object, or its removal (body None), at a revision."""

    kind: str
    namespace: str
    name: str
    revision: int
    body: bytes | None


class StoreError(Exception):
    """A store cannot be used: it belongs to another process, has an unknown version, is damaged or full."""


class Store(Protocol):
    """Keeps changes."""

    def load(self) -> tuple[int, Iterable[Record]]:
        """Return the last revision and all objects; called once, first."""

    def append(self, change: Change) -> None:
        """Take a change; revisions only rise. Returns at once, whether it is durable or not."""

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Call `listener` with the newest durable revision whenever it has risen."""

    async def durable(self, revision: int) -> None:
        """Return once everything up to the revision is durable; raises StoreError if that cannot be."""


class MemoryStore:
    """Everything is durable at once, until the process ends."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[int], None]] = []

    def load(self) -> tuple[int, Iterable[Record]]:
        """Return an empty store."""
        return 0, ()

    def append(self, change: Change) -> None:
        """Report the change as durable."""
        for listener in self._listeners:
            listener(change.revision)

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Register a listener."""
        self._listeners.append(listener)

    async def durable(self, revision: int) -> None:
        """Return at once."""
