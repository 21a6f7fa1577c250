"""Short ways to write slices, claims and allocations for tests of ledger, inventory and allocator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from earmark.dynamicresources.allocator import Allocator, NodeFacts
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube import objects

DRIVER = "gpu.example.com"
N1, N2 = NodeFacts("n1"), NodeFacts("n2")


def device(name: str, **fields: Any) -> dict[str, Any]:
    """A device in the API's form."""
    return {"name": name, **fields}


def slice_of(
    name: str, devices: Iterable[str | dict[str, Any]] = (), *, pool: str = "", count: int = 1, generation: int = 1,
    driver: str = DRIVER, **spec: Any,
) -> objects.ResourceSlice:  # fmt: skip
    """A slice; its pool has its name unless said otherwise, and it belongs to node n1 unless `spec` selects nodes."""
    if not {"nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"} & spec.keys():
        spec["nodeName"] = "n1"
    members = [member if isinstance(member, dict) else device(member) for member in devices]
    data = {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": count},
            "devices": members,
            **spec,
        },
    }
    return msgspec.convert(data, objects.ResourceSlice)


def class_of(name: str = "gpu", **spec: Any) -> objects.DeviceClass:
    """A class that accepts every device."""
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, objects.DeviceClass)


def exactly(name: str = "r", count: int = 1, **fields: Any) -> dict[str, Any]:
    """A request for `count` devices; count -1 is mode All."""
    mode = {"allocationMode": "All"} if count < 0 else {"allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": {"deviceClassName": "gpu", **mode, **fields}}


def claim_of(*requests: dict[str, Any], name: str = "c", **devices: Any) -> objects.ResourceClaim:
    """A claim with these requests, by default one for one device."""
    data = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": list(requests) or [exactly()], **devices}},
    }
    return msgspec.convert(data, objects.ResourceClaim)


def result_of(
    device_name: str, pool: str = "s", *, request: str = "r", **fields: Any
) -> objects.DeviceRequestAllocationResult:
    """One allocated device."""
    return objects.DeviceRequestAllocationResult(
        request=request, driver=DRIVER, pool=pool, device=device_name, **fields
    )


def allocation_of(*results: str | objects.DeviceRequestAllocationResult) -> objects.AllocationResult:
    """An allocation of these devices, of pool "s" where only a name is given."""
    rows = tuple(result if not isinstance(result, str) else result_of(result) for result in results)
    return objects.AllocationResult(devices=objects.DeviceAllocationResult(results=rows))


def inventory_of(*slices: objects.ResourceSlice, classes: Sequence[objects.DeviceClass] = ()) -> Inventory:
    """An inventory with the class "gpu"."""
    return Inventory.of(slices, classes or [class_of()])


def allocate(
    inventory: Inventory, claims: objects.ResourceClaim | Sequence[objects.ResourceClaim], *ledgers: Ledger,
    node: NodeFacts = N1, only: Sequence[objects.AllocationResult] | None = None, features: frozenset[str] | None = None,
) -> tuple[objects.AllocationResult, ...] | None:  # fmt: skip
    """Allocate with counted share IDs and endless time."""
    shares = (f"share-{number}" for number in range(1_000_000))
    allocator = Allocator(inventory) if features is None else Allocator(inventory, features)
    problem = allocator.prepare([claims] if isinstance(claims, objects.ResourceClaim) else claims)
    return problem.allocate(
        node, ledgers or (Ledger(),), expired=lambda: False, share_id=lambda: next(shares), only=only
    )


def names(results: Sequence[objects.AllocationResult] | None) -> list[str] | None:
    """The devices of all results, in order; None if the claims do not fit."""
    if results is None:
        return None
    return [result.device for allocation in results for result in allocation.devices.results]
