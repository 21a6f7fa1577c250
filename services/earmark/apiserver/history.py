"""The recent changes of one resource, and the watches that read them.

A watch is a position in the history, not a queue: a slow watcher costs nothing, and one that falls behind what is
remembered gets 410 as in Kubernetes. An event's text is made once and shared by all watches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from earmark.apiserver.errors import expired

DEFAULT_LENGTH = 10_000


@dataclass(slots=True)
class Stored:
    """One state of one object."""

    namespace: str
    name: str
    revision: int
    body: bytes


@dataclass(slots=True)
class Entry:
    """A change: what was before (None if created) and after it (None if removed; `gone` is the last state then)."""

    revision: int
    before: Stored | None
    after: Stored | None
    gone: Stored | None = None

    @property
    def newest(self) -> Stored:
        """The state that an event shows."""
        state = self.after if self.after is not None else self.gone
        assert state is not None
        return state


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event of a watch: its type, the object's revision and text (for BOOKMARK a revision only)."""

    type: str
    revision: int
    body: bytes


Selection = Callable[[Stored], bool]


class History:
    """The changes of one resource, oldest first."""

    def __init__(self, compacted: int, length: int = DEFAULT_LENGTH) -> None:
        """Begin after the revision `compacted`; keep the newest `length` changes."""
        self._entries: deque[Entry] = deque()
        self._length = length
        self._first = 0
        self._compacted = compacted
        # A dict, because sets have no order and watches are woken in theirs.
        self._waiting: dict[asyncio.Future[None], None] = {}

    @property
    def compacted(self) -> int:
        """The newest revision whose change is forgotten: watches may begin at it or later."""
        return self._compacted

    def append(self, entry: Entry) -> None:
        """Add a change and wake the watches."""
        self._entries.append(entry)
        if len(self._entries) > self._length:
            self.compact(keep=self._length)
        self.wake()

    def compact(self, keep: int = 0) -> None:
        """Forget all but the newest `keep` changes."""
        while len(self._entries) > keep:
            self._compacted = self._entries.popleft().revision
            self._first += 1

    def wake(self) -> None:
        """Let all watches look."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def position_after(self, revision: int) -> int:
        """Return where the changes after a revision begin; raises StatusError 410 if some are forgotten."""
        if revision < self._compacted:
            raise expired(revision, self._compacted)
        low, high = 0, len(self._entries)
        while low < high:
            middle = (low + high) // 2
            if self._entries[middle].revision <= revision:
                low = middle + 1
            else:
                high = middle
        return self._first + low

    def since(self, position: int) -> Iterator[Entry]:
        """Iterate over the changes from a position on; raises StatusError 410 if some are forgotten."""
        if position < self._first:
            raise expired(0, self._compacted)
        for index in range(position - self._first, len(self._entries)):
            yield self._entries[index]

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._first + len(self._entries)

    async def changed(self) -> None:
        """Return when the next change has been added or `wake` was called."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = None
        try:
            await future
        finally:
            self._waiting.pop(future, None)


def event_of(entry: Entry, selection: Selection | None) -> RawEvent | None:
    """Return what a watch with a selection sees of a change.

    An object that begins to be selected is ADDED, one that ends to be is DELETED.
    """
    if selection is None:
        before, after = entry.before is not None, entry.after is not None
    else:
        before = entry.before is not None and selection(entry.before)
        after = entry.after is not None and selection(entry.after)
    if not before and not after:
        return None
    kind = "MODIFIED" if before and after else "ADDED" if after else "DELETED"
    return RawEvent(kind, entry.revision, entry.newest.body)


class Watch:
    """One watch: an iterator over batches of events, each batch what is there at once."""

    def __init__(
        self,
        history: History,
        position: int,
        selection: Selection | None,
        initial: list[RawEvent],
        visible: Callable[[], int],
    ) -> None:
        self._history = history
        self._position = position
        self._selection = selection
        self._initial = initial
        self._visible = visible

    @property
    def visible_revision(self) -> int:
        """The newest revision up to which everything has been sent once `take` returned nothing: for bookmarks."""
        return self._visible()

    def take(self) -> list[RawEvent]:
        """Return the events that are there; raises StatusError 410 if the watch fell behind."""
        events, self._initial = self._initial, []
        if self._position < self._history.end:
            for entry in self._history.since(self._position):
                event = event_of(entry, self._selection)
                if event is not None:
                    events.append(event)
            self._position = self._history.end
        return events

    async def changed(self) -> None:
        """Return when there may be more."""
        if self._position >= self._history.end and not self._initial:
            await self._history.changed()

    async def batches(self) -> AsyncIterator[list[RawEvent]]:
        """Iterate over batches of events for ever."""
        while True:
            events = self.take()
            if events:
                yield events
            await self.changed()
