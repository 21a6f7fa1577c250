"""Who asked the API for what, and what became of it: the source of the event log, of evictions and of the mirror.

A store sees every change at the moment at which it takes effect, in the task of the request that made it; that is how a
change is known to be a component's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from earmark.apiserver.storage import Change, MemoryStore, Record
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi, PatchType
from earmark.kube.resources import BY_KIND, BY_STRUCT
from earmark.simulation.passthrough import PassThroughApi
from earmark.simulation.restored import Restored

T = TypeVar("T", bound=objects.Object)


@dataclass(frozen=True, slots=True)
class Request:
    """A write to the API."""

    client: str
    verb: str
    kind: str
    namespace: str
    name: str
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """A change of one object: before and after (None: not there), and the request that made it (None: the API)."""

    before: objects.Object | None
    after: objects.Object | None
    request: Request | None


@dataclass(slots=True)
class _Open:
    request: Request
    changed: bool = field(default=False)


_current: ContextVar[_Open | None] = ContextVar("earmark_simulation_request", default=None)


class ObservedStore(MemoryStore):
    """Keeps nothing, and tells of every change at once."""

    def __init__(self, on_effect: Callable[[Effect], None], restored: Restored | None = None) -> None:
        """Begin with what is restored, which is told of like every change."""
        super().__init__()
        self._on_effect = on_effect
        self._restored = restored or Restored()
        self._objects: dict[tuple[str, str, str], objects.Object] = {}

    def load(self) -> tuple[int, Iterable[Record]]:
        """Return what is restored."""
        for record in self._restored.records:
            value: objects.Object = msgspec.json.decode(record.body, type=BY_KIND[record.kind].struct)
            self._objects[record.kind, record.namespace, record.name] = value
            self._on_effect(Effect(None, value, None))
        return self._restored.revision, self._restored.records

    def append(self, change: Change) -> None:
        """Take a change and tell of it; watches see it afterwards."""
        key = (change.kind, change.namespace, change.name)
        before = self._objects.pop(key, None)
        after: objects.Object | None = None
        if change.body is not None:
            after = msgspec.json.decode(change.body, type=BY_KIND[change.kind].struct)
            self._objects[key] = after
        opened = _current.get()
        if opened is not None:
            opened.changed = True
        super().append(change)
        self._on_effect(Effect(before, after, opened.request if opened is not None else None))


@contextmanager
def request(made: Request) -> Iterator[_Open]:
    """Let what the block changes be this request's."""
    opened = _Open(made)
    token = _current.set(opened)
    try:
        yield opened
    finally:
        _current.reset(token)


class Listener:
    """Told of requests when they have been answered."""

    def accepted(self, made: Request) -> None:
        """The API did it."""

    def refused(self, made: Request, status: int, message: str) -> None:
        """The API refused it; nothing has changed."""


class ObservedApi(PassThroughApi):
    """A KubeApi that tells who writes what. Reads pass through."""

    def __init__(self, inner: KubeApi, client: str, listener: Listener) -> None:
        super().__init__(inner)
        self._client = client
        self._listener = listener
        self._cut = False

    def cut(self) -> None:
        """Let nothing through any more: the client's process has died, whatever its tasks still try."""
        self._cut = True

    @contextmanager
    def _writing(self, verb: str, kind: type[Any], namespace: str, name: str, subresource: str = "") -> Iterator[None]:
        if self._cut:
            raise ApiUnavailable(f"{self._client} has ended")
        made = Request(self._client, verb, BY_STRUCT[kind].kind, namespace, name, subresource)
        with request(made) as opened:
            try:
                yield
            except ApiError as error:
                self._listener.refused(made, error.status, error.message)
                raise
            except ApiUnavailable as error:
                # The answer was lost; whether the write was made shows in its effect.
                if opened.changed:
                    self._listener.accepted(made)
                else:
                    self._listener.refused(made, 0, str(error))
                raise
            self._listener.accepted(made)

    async def create(self, value: T) -> T:
        """Create an object."""
        with self._writing("create", type(value), *value.key):
            return await super().create(value)

    async def patch(
        self,
        kind: type[T],
        name: str,
        namespace: str,
        patch: dict[str, Any] | Sequence[dict[str, Any]],
        *,
        subresource: str = "",
        patch_type: PatchType = PatchType.MERGE,
    ) -> T:
        """Change an object."""
        with self._writing("patch", kind, namespace, name, subresource):
            return await super().patch(
                kind, name, namespace, patch, subresource=subresource, patch_type=patch_type
            )  # fmt: skip

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node."""
        with self._writing("create", objects.Pod, namespace, name, "binding"):
            await super().bind(namespace, name, uid, node_name)

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        grace_period_seconds: int | None = None,
    ) -> None:
        """Delete an object."""
        with self._writing("delete", kind, namespace, name):
            await super().delete(
                kind,
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                grace_period_seconds=grace_period_seconds,
            )
