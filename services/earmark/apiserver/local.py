"""The embedded API in the same process: for the simulation and for tests, with the faults of the registry.

Objects cross as text, as they would over HTTPS, so that nobody shares anything with anybody.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import DeleteOptions, Registry, WriteOptions
from earmark.kube import objects
from earmark.kube.api import ApiError, EventType, ListResult, PatchType, WatchEvent
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_STRUCT, Resource, to_manifest

T = TypeVar("T", bound=objects.Object)
R = TypeVar("R")

_encode = msgspec.json.Encoder().encode


def api_error(error: StatusError) -> ApiError:
    """Return a refusal as clients of the seam see it."""
    causes = tuple((cause.field, cause.message) for cause in error.causes)
    return ApiError(error.code, error.reason, error.message, causes)


class LocalApi:
    """KubeApi and RawApi on a registry in the same process."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._decoders: dict[type[objects.Object], msgspec.json.Decoder[Any]] = {}

    @property
    def registry(self) -> Registry:
        """The registry behind this API."""
        return self._registry

    def _decode(self, kind: type[T], body: bytes) -> T:
        decoder = self._decoders.get(kind)
        if decoder is None:
            decoder = msgspec.json.Decoder(kind)
            self._decoders[kind] = decoder
        value: T = decoder.decode(body)
        return value

    async def _call(
        self,
        verb: str,
        resource: Resource,
        name: str,
        subresource: str,
        action: Callable[[], R],
        revision: Callable[[R], int],
    ) -> R:
        """Let faults act, do it, and wait until it is durable."""
        try:
            await self._registry.faults.before(self._clock, verb, resource.kind, name, subresource)
            result = action()
        except StatusError as error:
            raise api_error(error) from error
        await _settled(self._registry.durable(revision(result)))
        self._registry.faults.after(verb, resource.kind, name, subresource)
        return result

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        """See KubeApi."""
        resource = BY_STRUCT[kind]
        stored = await self._call(
            "get", resource, name, "", lambda: self._registry.get(resource, _home(resource, namespace), name),
            lambda stored: stored.revision,
        )  # fmt: skip
        return self._decode(kind, stored.body)

    async def list(
        self, kind: type[T], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult[T]:
        """See KubeApi."""
        resource = BY_STRUCT[kind]
        page = await self._call(
            "list", resource, "", "",
            lambda: self._registry.list(
                resource, namespace, label_selector=label_selector, field_selector=field_selector
            ),
            lambda page: page.revision,
        )  # fmt: skip
        return ListResult(tuple(self._decode(kind, body) for body in page.items), str(page.revision))

    async def watch(
        self,
        kind: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """See KubeApi."""
        resource = BY_STRUCT[kind]
        watch = await self._call(
            "watch", resource, "", "",
            lambda: self._registry.watch(
                resource, namespace, resource_version=resource_version,
                label_selector=label_selector, field_selector=field_selector,
            ),
            lambda watch: 0,
        )  # fmt: skip
        while True:
            try:
                events = watch.take()
            except StatusError as error:
                raise api_error(error) from error
            for event in events:
                yield WatchEvent(EventType(event.type), self._decode(kind, event.body))
            await watch.changed()

    async def create(self, value: T) -> T:
        """See KubeApi."""
        body = await self.create_raw(BY_STRUCT[type(value)], value.metadata.namespace, to_manifest(value))
        return self._decode(type(value), body)

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
        """See KubeApi."""
        resource = BY_STRUCT[kind]
        data = msgspec.json.decode(_encode(patch))
        written = await self._call(
            "patch", resource, name, subresource,
            lambda: self._registry.patch(
                resource, _home(resource, namespace), name, data, patch_type, subresource=subresource
            ),
            lambda written: written.revision,
        )  # fmt: skip
        return self._decode(kind, written.body)

    async def bind(self, namespace: str, name: str, uid: str, node_name: str) -> None:
        """See KubeApi."""
        binding = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": node_name}}
        await self._call(
            "create", BY_STRUCT[objects.Pod], name, "binding",
            lambda: self._registry.bind(namespace, name, binding), lambda written: written.revision,
        )  # fmt: skip

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
        """See KubeApi."""
        resource = BY_STRUCT[kind]
        options = DeleteOptions(uid=uid, resource_version=resource_version, grace_seconds=grace_period_seconds)
        await self._call(
            "delete", resource, name, "",
            lambda: self._registry.delete(resource, _home(resource, namespace), name, options),
            lambda deleted: deleted.revision,
        )  # fmt: skip

    # --- RawApi ------------------------------------------------------------------------------------------------------

    async def create_raw(self, resource: Resource, namespace: str, data: dict[str, Any]) -> bytes:
        """See RawApi."""
        copied = msgspec.json.decode(_encode(data))
        name = str((data.get("metadata") or {}).get("name", ""))
        written = await self._call(
            "create", resource, name, "",
            lambda: self._registry.create(resource, _home(resource, namespace), copied, WriteOptions(strict=True)),
            lambda written: written.revision,
        )  # fmt: skip
        return written.body

    async def get_raw(self, resource: Resource, namespace: str, name: str) -> bytes:
        """See RawApi."""
        stored = await self._call(
            "get", resource, name, "", lambda: self._registry.get(resource, _home(resource, namespace), name),
            lambda stored: stored.revision,
        )  # fmt: skip
        return stored.body

    async def update_raw(
        self, resource: Resource, namespace: str, name: str, data: dict[str, Any], subresource: str = ""
    ) -> bytes:
        """See RawApi."""
        copied = msgspec.json.decode(_encode(data))
        written = await self._call(
            "update", resource, name, subresource,
            lambda: self._registry.update(
                resource, _home(resource, namespace), name, copied, subresource=subresource,
                options=WriteOptions(strict=True),
            ),
            lambda written: written.revision,
        )  # fmt: skip
        return written.body


def _home(resource: Resource, namespace: str) -> str:
    return (namespace or "default") if resource.namespaced else ""


async def _settled(durable: Awaitable[None]) -> None:
    await durable
