"""Which kind of object lives under which path of the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from earmark.kube import objects


@dataclass(frozen=True, slots=True)
class Resource:
    """A served kind: its group ("" for core), version, plural name and struct."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    struct: type[objects.Object]
    subresources: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The manifest's apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base_path(self) -> str:
        """The path of the group and version, without a trailing slash."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


RESOURCES: tuple[Resource, ...] = (
    Resource("", "v1", "namespaces", "Namespace", False, objects.Namespace, ("status",), ("ns",)),
    Resource("", "v1", "nodes", "Node", False, objects.Node, ("status",), ("no",)),
    Resource("", "v1", "pods", "Pod", True, objects.Pod, ("status", "binding", "eviction"), ("po",)),
    Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False, objects.PriorityClass, (), ("pc",)),
    Resource("events.k8s.io", "v1", "events", "Event", True, objects.Event, (), ("ev",)),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, objects.PodDisruptionBudget,
             ("status",), ("pdb",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True, objects.Lease),
    Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False, objects.DeviceClass),
    Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False, objects.ResourceSlice),
    Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True, objects.ResourceClaim, ("status",)),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True,
             objects.ResourceClaimTemplate),
    Resource("resource.k8s.io", "v1", "devicetaintrules", "DeviceTaintRule", False, objects.DeviceTaintRule),
)  # fmt: skip

BY_KIND: dict[str, Resource] = {resource.kind: resource for resource in RESOURCES}
BY_STRUCT: dict[type[Any], Resource] = {resource.struct: resource for resource in RESOURCES}


def to_manifest(value: objects.Object) -> dict[str, Any]:
    """Return the object as plain JSON data with apiVersion and kind."""
    resource = BY_STRUCT[type(value)]
    data: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind}
    data.update(msgspec.to_builtins(value))
    return data
