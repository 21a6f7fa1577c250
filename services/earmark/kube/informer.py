"""A cache of one kind's objects that follows the API by list and watch.

The cache applies an event first and then tells its handlers, synchronously and in the API's order, so that a handler
always sees the state that its event led to. Nothing here decides anything about the objects.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, EventType, KubeApi, WatchEvent
from earmark.kube.clock import Clock
from earmark.kube.spawner import Spawner

T = TypeVar("T", bound=objects.Object)

FIRST_BACKOFF_SECONDS = 0.1
LONGEST_BACKOFF_SECONDS = 5.0
# A server that closes every watch at once must not be asked in a tight loop.
PAUSE_AFTER_EMPTY_WATCH_SECONDS = 0.05

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InformerEvent(Generic[T]):
    """A change of the cache.

    ADDED has only `new`, MODIFIED has both, DELETED only `old`: the last state that is known (the object as it was when
    it was removed if the watch told of it, else the cached one).
    """

    type: EventType
    old: T | None
    new: T | None

    @property
    def object(self) -> T:
        """The newest state that the event knows."""
        value = self.new if self.new is not None else self.old
        assert value is not None
        return value


Handler = Callable[[InformerEvent[T]], None]


class Informer(Generic[T]):
    """Lists, watches, lists again where the watch's version is too old, and waits while the API is away."""

    def __init__(
        self,
        api: KubeApi,
        kind: type[T],
        clock: Clock,
        *,
        namespace: str = "",
        field_selector: str = "",
        name: str = "",
    ) -> None:
        """Follow the objects of `kind` in `namespace` (all if empty); `name` is what logs and the task are called."""
        self._api = api
        self._kind = kind
        self._clock = clock
        self._namespace = namespace
        self._field_selector = field_selector
        self._name = name or f"informer {kind.__name__}"
        self._objects: dict[tuple[str, str], T] = {}
        self._sorted: tuple[T, ...] | None = ()
        self._handlers: list[Handler[T]] = []
        self._synced = asyncio.Event()
        self._version = ""
        # Whether the latest watch has brought anything.
        self._progressed = False

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def synced(self) -> bool:
        """Whether the first list has been delivered."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Return once the first list has been delivered."""
        await self._synced.wait()

    @property
    def resource_version(self) -> int:
        """The newest resourceVersion seen (lists, events and bookmarks); 0 before the first list."""
        return int(self._version) if self._version.isdigit() else 0

    def get(self, namespace: str, name: str) -> T | None:
        """Return one object; `namespace` is "" for cluster-scoped kinds."""
        return self._objects.get((namespace, name))

    def items(self) -> tuple[T, ...]:
        """Return all objects, sorted by namespace and name."""
        if self._sorted is None:
            self._sorted = tuple(self._objects[key] for key in sorted(self._objects))
        return self._sorted

    def __len__(self) -> int:
        return len(self._objects)

    def add_handler(self, handler: Handler[T]) -> None:
        """Call `handler` for every change from now on, and at once (as ADDED) for each object that is there already.

        A handler that raises ends the informer's task, and with it the component: a cache whose readers missed an event
        must not be used on.
        """
        self._handlers.append(handler)
        for value in self.items():
            handler(InformerEvent(EventType.ADDED, None, value))

    # --- following ---------------------------------------------------------------------------------------------------

    def start(self, tasks: Spawner) -> None:
        """Begin to follow the API in a background task."""
        tasks.spawn(self.run(), self._name)

    async def run(self) -> None:
        """Follow the API until cancelled."""
        backoff = FIRST_BACKOFF_SECONDS
        while True:
            self._progressed = listed = False
            try:
                if not self._version:
                    await self._list()
                    self._synced.set()
                    listed = True
                await self._watch()
                wait = 0.0 if self._progressed else PAUSE_AFTER_EMPTY_WATCH_SECONDS
            except (ApiError, ApiUnavailable) as error:
                if self._progressed:
                    # What ended a watch that worked is a new trouble, not more of an earlier one.
                    backoff = FIRST_BACKOFF_SECONDS
                wait = backoff
                if isinstance(error, ApiError) and error.gone and self._version:
                    self._version = ""
                    # A version that is too old as soon as it is listed would be listed for ever without a pause.
                    wait = backoff if listed else 0.0
                if wait:
                    what = "the API refused" if isinstance(error, ApiError) else "the API is away"
                    _log.warning("%s: %s: %s; next try in %.1f s", self._name, what, error, wait)
                    backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)
            else:
                if self._progressed:
                    backoff = FIRST_BACKOFF_SECONDS
            if wait:
                await self._clock.sleep(wait)

    async def _list(self) -> None:
        result = await self._api.list(self._kind, self._namespace, field_selector=self._field_selector)
        self._version = result.resource_version
        listed = {value.key: value for value in result.items}
        for key in sorted(self._objects):
            # An object with another UID is another object: its predecessor went while the watch was away.
            found = listed.get(key)
            if found is None or found.metadata.uid != self._objects[key].metadata.uid:
                self._remove(self._objects[key])
        for key in sorted(listed):
            self._put(listed[key])

    async def _watch(self) -> None:
        """Apply the events of one watch."""
        stream = self._api.watch(
            self._kind, self._namespace, resource_version=self._version, field_selector=self._field_selector
        )
        try:
            async for event in stream:
                self._progressed = True
                self._apply(event)
        finally:
            await _close(stream)

    def _apply(self, event: WatchEvent[T]) -> None:
        if event.object.metadata.resource_version:
            self._version = event.object.metadata.resource_version
        if event.type is EventType.DELETED:
            self._remove(event.object)
        elif event.type is not EventType.BOOKMARK:
            self._put(event.object)

    def _put(self, value: T) -> None:
        old = self._objects.get(value.key)
        if old is None:
            self._sorted = None
            self._objects[value.key] = value
            self._tell(InformerEvent(EventType.ADDED, None, value))
        elif old.metadata.resource_version != value.metadata.resource_version:
            self._sorted = None
            self._objects[value.key] = value
            self._tell(InformerEvent(EventType.MODIFIED, old, value))

    def _remove(self, last: T) -> None:
        if self._objects.pop(last.key, None) is not None:
            self._sorted = None
            self._tell(InformerEvent(EventType.DELETED, last, None))

    def _tell(self, event: InformerEvent[T]) -> None:
        for handler in tuple(self._handlers):
            handler(event)


async def _close(stream: AsyncIterator[WatchEvent[T]]) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
