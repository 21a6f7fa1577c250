"""A fleet of nodes with 8 devices each, full or half full, for measurements."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec

from earmark.dynamicresources.allocator import NodeFacts
from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.overlay import OverlayMap
from earmark.dynamicresources.state import World
from earmark.kube.objects import AllocationResult, DeviceClass, PodResourceClaim, ResourceClaim, ResourceSlice

DRIVER = "gpu.example.com"
GPUS = 8


class Fleet:
    """Nodes with 8 devices each; `differ` makes every device's counters its own."""

    def __init__(self, nodes: int, *, differ: bool = False) -> None:
        chance = random.Random(1)
        self.nodes = [NodeFacts(f"node-{number:05d}") for number in range(nodes)]
        slices: list[ResourceSlice] = []
        for node in self.nodes:
            for made in self._slices(node.name, chance if differ else None):
                # Through JSON, so that texts are as little shared as on the wire.
                slices.append(msgspec.json.decode(msgspec.json.encode(made), type=ResourceSlice))
        classes = [msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": [
            {"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}}, DeviceClass)]  # fmt: skip
        self.inventory = Inventory.of(slices, classes)

    def _slices(self, name: str, chance: random.Random | None) -> list[dict[str, Any]]:
        devices = [
            {"name": f"gpu-{k}", "capacity": {"memory": {"value": "80Gi"}}, "attributes": {
                "uuid": {"string": f"GPU-{name}-{k}"}, "model": {"string": "H100"}, "index": {"int": k}}}
            for k in range(GPUS)
        ]  # fmt: skip
        base = {"driver": DRIVER, "nodeName": name}
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        if chance is None:
            return [{"metadata": {"name": name}, "spec": {**base, "pool": pool, "devices": devices}}]
        pool["resourceSliceCount"] = 2
        for device in devices:
            amounts = {counter: {"value": str(chance.randint(5, 40))} for counter in ("a", "b")}
            device["consumesCounters"] = [{"counterSet": "cs", "counters": amounts}]
        sets = [{"name": "cs", "counters": {"a": {"value": "120"}, "b": {"value": "120"}}}]
        return [
            {"metadata": {"name": name}, "spec": {**base, "pool": pool, "devices": devices}},
            {"metadata": {"name": f"{name}-c"}, "spec": {**base, "pool": pool, "sharedCounters": sets}},
        ]

    def charged(self, keep: Callable[[int, int], bool]) -> Ledger:
        """A ledger in which claim node/device holds that device."""
        ledger = Ledger()
        for number, node in enumerate(self.nodes):
            for k in range(GPUS):
                if keep(number, k):
                    ledger = ledger.charge(f"{node.name}/{k}", holding(node.name, k))
        return ledger


def holding(node: str, device: int) -> AllocationResult:
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{device}"}
    return msgspec.convert({"devices": {"results": [result]}}, AllocationResult)


def wanting(*counts: int) -> ResourceClaim:
    """A claim as in the upstream fleet program: so many H100 of at least 40Gi."""
    expression = (
        f'device.attributes["{DRIVER}"].model == "H100" && '
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
    )
    requests = [
        {"name": f"gpu-{n}", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
                                         "selectors": [{"cel": {"expression": expression}}]}}
        for n, count in enumerate(counts)
    ]  # fmt: skip
    return msgspec.convert({"metadata": {"name": "c", "namespace": "default", "uid": "u"},
                            "spec": {"devices": {"requests": requests}}}, ResourceClaim)  # fmt: skip


def occupied(fleet: Fleet) -> tuple[World, PodFacts]:
    """A world in which a pod holds each device, and the pod that wants four."""
    claims, keys, reserved, pods = {}, {}, {}, {}
    ledger = fleet.charged(lambda number, k: True)
    for node in fleet.nodes:
        for k in range(GPUS):
            uid = f"{node.name}/{k}"
            status = {"allocation": msgspec.to_builtins(holding(node.name, k)),
                      "reservedFor": [{"resource": "pods", "name": f"pod-{node.name}-{k}", "uid": f"pod-{uid}"}]}  # fmt: skip
            metadata = {"name": f"claim-{node.name}-{k}", "namespace": "default", "uid": uid, "resourceVersion": "5"}
            claim = msgspec.convert({"metadata": metadata, "spec": {}, "status": status}, ResourceClaim)
            claims[claim.key], keys[uid], reserved[f"pod-{uid}"] = claim, claim.key, (uid,)
            ref = PodRef("default", f"pod-{node.name}-{k}", f"pod-{uid}")
            pods[ref.uid] = PodFacts(ref, 0, node.name, False, False, False, (), (), 5)
    wanted = wanting(4)
    claims[wanted.key], keys[wanted.metadata.uid] = wanted, wanted.key
    entries = msgspec.convert([{"name": "gpus", "resourceClaimName": "c"}], tuple[PodResourceClaim, ...])
    pod = PodFacts(PodRef("default", "high", "high"), 10, "", False, False, False, entries, (), 6)
    world = World(
        claims=OverlayMap(claims),
        keys=OverlayMap(keys),
        reserved_by=OverlayMap(reserved),
        ledger=ledger,
        inventory=fleet.inventory,
        nodes=OverlayMap({node.name: node for node in fleet.nodes}),
        pods=OverlayMap(pods),
    )
    return world, pod
