"""An API in front of another one, that changes nothing: the base of those that do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

from earmark.kube import objects
from earmark.kube.api import KubeApi, ListResult, PatchType, WatchEvent

T = TypeVar("T", bound=objects.Object)


class PassThroughApi:
    """A KubeApi that hands everything on."""

    def __init__(self, inner: KubeApi) -> None:
        self._inner = inner

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """Return one object."""
        return await self._inner.get(kind, name, namespace)

    async def list(
        self, kind: type[T], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult[T]:
        """Return all objects of a kind."""
        return await self._inner.list(
            kind, namespace, label_selector=label_selector, field_selector=field_selector
        )  # fmt: skip

    def watch(
        self,
        kind: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Iterate over events."""
        return self._inner.watch(
            kind,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    async def create(self, value: T) -> T:
        """Create an object."""
        return await self._inner.create(value)

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
        return await self._inner.patch(kind, name, namespace, patch, subresource=subresource, patch_type=patch_type)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """Bind a pod to a node."""
        await self._inner.bind(namespace, name, uid, node_name)

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
        await self._inner.delete(
            kind,
            name,
            namespace,
            uid=uid,
            resource_version=resource_version,
            grace_period_seconds=grace_period_seconds,
        )
