"""A registry on a memory store for tests: a clock that is set by hand, UIDs that count."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import DeleteOptions, Registry, WriteOptions
from earmark.apiserver.storage import MemoryStore, Store
from earmark.kube.api import PatchType
from earmark.kube.resources import BY_KIND

Data = dict[str, Any]


def as_data(body: bytes) -> Data:
    """Return an object's text as data."""
    data: Data = msgspec.json.decode(body)
    return data


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    async def sleep(self, seconds: float) -> None:
        self.move(seconds)


class Cluster:
    """The registry with short ways to call it; what goes in is copied, what comes out is data."""

    def __init__(self, store: Store | None = None, history_length: int = 1000, **options: Any) -> None:
        self.clock = HandClock()
        self._uids = 0
        options = {"new_uid": self._uid, "history_length": history_length, **options}
        self.registry = Registry(store or MemoryStore(), self.clock, **options)

    def _uid(self) -> str:
        self._uids += 1
        return f"00000000-0000-4000-8000-{self._uids:012d}"

    def create(self, data: Data, namespace: str = "default", **options: Any) -> Data:
        resource = BY_KIND[data["kind"]]
        home = namespace if resource.namespaced else ""
        written = self.registry.create(resource, home, copy.deepcopy(data), WriteOptions(**options))
        return as_data(written.body)

    def get(self, kind: str, name: str, namespace: str = "default") -> Data:
        resource = BY_KIND[kind]
        return as_data(self.registry.get(resource, namespace if resource.namespaced else "", name).body)

    def exists(self, kind: str, name: str, namespace: str = "default") -> bool:
        home = namespace if BY_KIND[kind].namespaced else ""
        return self.registry.lookup(kind, home, name) is not None

    def update(self, data: Data, subresource: str = "", **options: Any) -> Data:
        meta = data["metadata"]
        written = self.registry.update(
            BY_KIND[data["kind"]], meta.get("namespace", ""), meta["name"], copy.deepcopy(data),
            subresource=subresource, options=WriteOptions(**options),
        )  # fmt: skip
        return as_data(written.body)

    def patch(
        self, kind: str, name: str, patch: Any, subresource: str = "", patch_type: PatchType = PatchType.MERGE,
        namespace: str = "default", **options: Any,
    ) -> Data:  # fmt: skip
        resource = BY_KIND[kind]
        written = self.registry.patch(
            resource, namespace if resource.namespaced else "", name, copy.deepcopy(patch), patch_type,
            subresource=subresource, options=WriteOptions(**options),
        )  # fmt: skip
        return as_data(written.body)

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> bool:
        """Delete, and return whether the object is gone."""
        resource = BY_KIND[kind]
        home = namespace if resource.namespaced else ""
        return self.registry.delete(resource, home, name, DeleteOptions(**options)).removed

    def bind(self, name: str, node: str, uid: str = "") -> None:
        binding = {"metadata": {"name": name, "uid": uid}, "target": {"kind": "Node", "name": node}}
        self.registry.bind("default", name, binding)


def causes(error: StatusError) -> list[tuple[str, str]]:
    """Return the causes of a refusal as (field, kind of error)."""
    return [(cause.field, cause.type.removeprefix("FieldValue")) for cause in error.causes]


def pod(name: str, **spec: Any) -> Data:
    """Return a small pod."""
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def claim(name: str, **exactly: Any) -> Data:
    """Return a claim with one request."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}]}},
    }


def allocation(device: str = "gpu-0", node: str = "n1") -> Data:
    """Return an allocation of one device on one node."""
    return {
        "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": device}]},
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
        },
    }


def consumer(name: str) -> Data:
    """Return an entry of reservedFor."""
    return {"resource": "pods", "name": name, "uid": f"uid-{name}"}


def resource_slice(name: str = "s1", **spec: Any) -> Data:
    """Return a slice with one device."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
            **spec,
        },
    }
