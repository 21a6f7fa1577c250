"""The cluster as its API tells it: a mirror of the objects that checks look at, and how files name them.

Nothing here decides; the mirror follows every event of the API at once, also those that services see later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from earmark.kube import objects

DEFAULT_NAMESPACE = "default"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

Key = tuple[str, str]
T = TypeVar("T")


def display(namespace: str, name: str) -> str:
    """Return how reports call an object: its name, with the namespace where that is not "default"."""
    return name if namespace in ("", DEFAULT_NAMESPACE) else f"{namespace}/{name}"


def device_name(result: objects.DeviceRequestAllocationResult) -> str:
    """Return DRIVER/POOL/DEVICE."""
    return f"{result.driver}/{result.pool}/{result.device}"


def short_device_name(name: str) -> str:
    """Return POOL/DEVICE of DRIVER/POOL/DEVICE."""
    return name.partition("/")[2]


@dataclass(slots=True)
class Cluster:
    """The objects that exist, by kind's struct, namespace and name."""

    by_kind: dict[type[objects.Object], dict[Key, Any]] = field(default_factory=dict)

    def put(self, value: objects.Object) -> None:
        """Take in an object that was created or changed."""
        self.by_kind.setdefault(type(value), {})[value.key] = value

    def remove(self, value: objects.Object) -> None:
        """Forget an object that is gone."""
        self.by_kind.get(type(value), {}).pop(value.key, None)

    @property
    def pods(self) -> dict[Key, objects.Pod]:
        """Pods by namespace and name."""
        return self.by_kind.setdefault(objects.Pod, {})

    @property
    def claims(self) -> dict[Key, objects.ResourceClaim]:
        """Claims by namespace and name."""
        return self.by_kind.setdefault(objects.ResourceClaim, {})

    @property
    def slices(self) -> dict[Key, objects.ResourceSlice]:
        """Slices by ("", name)."""
        return self.by_kind.setdefault(objects.ResourceSlice, {})

    @property
    def events(self) -> dict[Key, objects.Event]:
        """Events by namespace and name."""
        return self.by_kind.setdefault(objects.Event, {})

    def pod(self, name: str) -> objects.Pod | None:
        """Return the pod that a file calls `name`: NAME or NAMESPACE/NAME."""
        return _named(self.pods, name)

    def claim(self, name: str) -> objects.ResourceClaim | None:
        """Return the claim that a file calls `name`: CLAIM, POD/ENTRY, NAMESPACE/CLAIM or NAMESPACE/POD/ENTRY."""
        owner, slash, entry = name.rpartition("/")
        if slash:
            pod = self.pod(owner)
            if pod is not None:
                for entry_name, claim in self.claims_of(pod):
                    if entry_name == entry:
                        return claim
            for claim in self.claims.values():
                if claim.metadata.annotations.get(POD_CLAIM_NAME) == entry and any(
                    reference.kind == "Pod"
                    and owner in (reference.name, f"{claim.metadata.namespace}/{reference.name}")
                    for reference in claim.metadata.owner_references
                ):
                    return claim
        return _named(self.claims, name)

    def claims_of(self, pod: objects.Pod) -> Iterator[tuple[str, objects.ResourceClaim | None]]:
        """Iterate over the pod's entries that need a claim, with the claim (None: not there)."""
        made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims:
            name = entry.resource_claim_name or made.get(entry.name)
            if name is None and entry.name in made:
                continue
            yield entry.name, self.claims.get((pod.metadata.namespace, name)) if name else None
        extended = pod.status.extended_resource_claim_status
        if extended is not None:
            yield "", self.claims.get((pod.metadata.namespace, extended.resource_claim_name))

    def devices_of(self, pod: objects.Pod) -> list[str]:
        """Return DRIVER/POOL/DEVICE of all devices that are allocated to the pod's claims, sorted."""
        return sorted(
            device_name(result)
            for _, claim in self.claims_of(pod)
            if claim is not None
            for result in allocated(claim)
        )  # fmt: skip


def allocated(claim: objects.ResourceClaim) -> tuple[objects.DeviceRequestAllocationResult, ...]:
    """Return the devices that are allocated to a claim."""
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results


def _named(table: dict[Key, T], name: str) -> T | None:
    namespace, slash, rest = name.rpartition("/")
    if slash:
        return table.get((namespace, rest))
    found = table.get((DEFAULT_NAMESPACE, name)) or table.get(("", name))
    if found is not None:
        return found
    elsewhere = [value for key, value in table.items() if key[1] == name]
    return elsewhere[0] if len(elsewhere) == 1 else None
