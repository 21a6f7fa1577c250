"""The seam to a Kubernetes API: what earmark asks of it, whichever adapter carries the request.

Adapters: earmark.kube.http (HTTPS, embedded or real API server) and earmark.apiserver.local (the embedded API in the
same process, for simulation and tests). Writes are patches, because our structs know only a part of each object.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from earmark.kube import objects

T = TypeVar("T", bound=objects.Object)


class PatchType(enum.Enum):
    """Content type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    # Lists are merged by their key (conditions by type, reservedFor by uid). Kinds that are built in only.
    STRATEGIC = "application/strategic-merge-patch+json"


class EventType(enum.Enum):
    """Kind of a watch event."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    """One event of a watch. The object of a bookmark has only a resourceVersion."""

    type: EventType
    object: T


@dataclass(frozen=True, slots=True)
class ListResult(Generic[T]):
    """Objects as of one resourceVersion, from which a watch can go on."""

    items: tuple[T, ...]
    resource_version: str


class ApiError(Exception):
    """The API refused a request.

    Attributes: `status` is the HTTP status; `reason` and `message` come from the Status object that was returned;
    `causes` are (field, message) pairs.
    """

    def __init__(self, status: int, reason: str, message: str, causes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes

    @property
    def not_found(self) -> bool:
        """The object does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """A resourceVersion or a precondition did not hold (or the object exists already)."""
        return self.status == 409

    @property
    def gone(self) -> bool:
        """The resourceVersion of a watch is too old: list again."""
        return self.status == 410

    @property
    def uncertain(self) -> bool:
        """The server failed, for example in waiting for its store: a write may have been carried out all the same."""
        return self.status >= 500


class ApiUnavailable(Exception):
    """The API could not be reached or broke off; the outcome of a write is unknown. Retry after a while."""


class KubeApi(Protocol):
    """A Kubernetes API. Every method may raise ApiError and ApiUnavailable."""

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """Return one object."""

    async def list(
        self, kind: type[T], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult[T]:
        """Return all objects of a kind; of all namespaces if `namespace` is empty."""

    def watch(
        self,
        kind: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Iterate over events after `resource_version`.

        Ends when the server closes the stream; raises ApiError with `gone` if the version is too old.
        """

    async def create(self, value: T) -> T:
        """Create an object (namespace from its metadata; metadata.generate_name is honoured)."""

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
        """Change an object. Put metadata.resourceVersion and metadata.uid into the patch to make it conditional."""

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node."""

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
        """Delete an object; `uid` and `resource_version` are preconditions."""
