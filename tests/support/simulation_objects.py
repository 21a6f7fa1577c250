"""Small Kubernetes objects for tests of the simulation's pure parts."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from earmark.kube import objects
from earmark.simulation.cluster import Cluster


def pod(name: str, **fields: Any) -> objects.Pod:
    """Return a pod from JSON fields: `spec`, `status`, `metadata`."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", **fields.pop("metadata", {})}
    return msgspec.convert({"metadata": metadata, **fields}, objects.Pod)


def claim(
    name: str, results: Iterable[Mapping[str, Any]] = (), reserved_for: Iterable[str] = ()
) -> objects.ResourceClaim:
    """Return a claim that is allocated if there are results, each {device, ...} of pool n1."""
    allocation = [{"driver": "gpu.example.com", "pool": "n1", "request": "r", **result} for result in results]
    status: dict[str, Any] = {
        "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"} for user in reserved_for]
    }
    if allocation:
        status["allocation"] = {"devices": {"results": allocation}}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "status": status},
        objects.ResourceClaim,
    )


def device_slice(devices: Iterable[Mapping[str, Any]] = (), *, name: str = "s", **spec: Any) -> objects.ResourceSlice:
    """Return a slice of pool n1."""
    pool = {"name": "n1", "generation": spec.pop("generation", 1), "resourceSliceCount": 1}
    data = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n1", "devices": list(devices), **spec}
    return msgspec.convert({"metadata": {"name": name}, "spec": data}, objects.ResourceSlice)


def cluster(*values: objects.Object) -> Cluster:
    """Return a cluster of these objects."""
    mirror = Cluster()
    for value in values:
        mirror.put(value)
    return mirror
