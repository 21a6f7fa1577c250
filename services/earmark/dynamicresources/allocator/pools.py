"""Which pools a node sees, and whether they can be used: generations, completeness, validity (upstream A2)."""

from __future__ import annotations

from typing import Any

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.nodes import NodeFacts, node_matches
from earmark.dynamicresources.inventory import Inventory, PoolSlices
from earmark.dynamicresources.lazy import lazy
from earmark.dynamicresources.ledger import PoolId
from earmark.dynamicresources.sliceview import SliceView


class GatheredPool:
    """A pool as one node sees it.

    incomplete or invalid pools have no devices. targets: the slices with devices for the node, in candidate order;
    others: those of the same generation that count for shared counters only.
    """

    def __init__(self, pool: PoolId, targets: tuple[SliceView, ...] = (), others: tuple[SliceView, ...] = (),
                 counter_sets: dict[str, dict[str, str]] | None = None, *,
                 incomplete: bool = False, invalid: bool = False) -> None:  # fmt: skip
        self.id = pool
        self.targets = targets
        self.others = others
        self.counter_sets = counter_sets or {}
        self.incomplete = incomplete
        self.invalid = invalid
        # Whether the slices that the node sees decide all of this.
        self.self_contained = False
        # Values that are computed from the pool alone, by what they are.
        self.views: dict[Any, Any] = {}

    @lazy
    def positions(self) -> dict[str, int]:
        """Place of each device by name, over all targets."""
        names = (device.name for view in self.targets for device in view.devices)
        return {name: position for position, name in enumerate(names)}

    @lazy
    def count(self) -> int:
        """How many devices the targets have."""
        return sum(len(view.devices) for view in self.targets)

    @lazy
    def order(self) -> tuple[bool, str, str]:
        """Pools with binding conditions come last, else by driver and name (upstream A2.11)."""
        return (any(view.has_binding_conditions for view in self.targets), *self.id)


def gather_pools(inventory: Inventory, node: NodeFacts, features: frozenset[str]) -> list[GatheredPool]:
    """Return the pools that the node sees, in candidate order.

    Raises AllocationError (fatal) for a node selector that cannot be read.
    """
    partitionable = gates.PARTITIONABLE_DEVICES in features
    groups = gates.COMPATIBILITY_GROUPS in features
    relevant: dict[PoolId, list[SliceView]] = {}
    for view in inventory.local_slices(node.name):
        if _counted(view, partitionable, groups):
            relevant.setdefault(view.pool, []).append(view)
    for view in inventory.shared_slices():
        if _counted(view, partitionable, groups) and _relevant(view, node):
            relevant.setdefault(view.pool, []).append(view)
    pools = []
    for pool, views in relevant.items():
        record = inventory.pool(pool)
        assert record is not None
        key = (partitionable, groups, *views)
        found = record.views.get(key, record)
        if found is record:
            found = record.views[key] = _build(record, views, partitionable, groups)
        if found is not None:
            pools.append(found)
    if len(pools) > 1:
        pools.sort(key=lambda gathered: gathered.order)
    return pools


def _counted(view: SliceView, partitionable: bool, groups: bool) -> bool:
    spec = view.slice.spec
    if not partitionable and (spec.per_device_node_selection is not None or spec.shared_counters):
        return False
    return groups or not view.uses_groups


def _relevant(view: SliceView, node: NodeFacts) -> bool:
    """Whether a slice without nodeName concerns the node (upstream A2.3)."""
    spec = view.slice.spec
    if spec.all_nodes or spec.node_selector is not None:
        return node_matches(node, None, bool(spec.all_nodes), spec.node_selector, f"slice {view.name}")
    if view.per_device:
        return any(
            node_matches(node, device.node_name, bool(device.all_nodes), device.node_selector,
                         f"device {device.name} in slice {view.name}")
            for device in view.devices
        )  # fmt: skip
    return False


def _build(record: PoolSlices, views: list[SliceView], partitionable: bool, groups: bool) -> GatheredPool | None:
    """Judge a pool by the slices that the node sees; None if it is obsolete (upstream A2.6 to A2.10)."""
    newest = max(view.generation for view in views)
    seen = [view for view in views if view.generation == newest]
    # Slices that disagree are compared with the first one: node-local ones come first, then by name.
    wanted = seen[0].slice.spec.pool.resource_slice_count
    others: list[SliceView] = []
    if len(seen) != wanted:
        if any(view.generation > newest for view in record.slices):
            return None
        generation = [view for view in record.slices if view.generation == newest and (groups or not view.uses_groups)]
        if len(generation) != wanted:
            return GatheredPool(record.id, incomplete=True)
        others = [view for view in generation if view not in seen]
    seen.sort(key=lambda view: view.name)
    targets = tuple(view for view in seen if not (partitionable and view.is_counter_slice))
    pool = _judged(record.id, targets, seen, others, partitionable)
    pool.self_contained = len(seen) == wanted
    return pool


def _judged(
    pool: PoolId, targets: tuple[SliceView, ...], seen: list[SliceView], others: list[SliceView], partitionable: bool
) -> GatheredPool:
    """A complete pool, valid or not."""
    invalid = GatheredPool(pool, invalid=True)
    names = [device.name for view in targets for device in view.devices]
    if len(set(names)) != len(names):
        return invalid
    if not partitionable:
        return GatheredPool(pool, targets)
    counter_sets: dict[str, dict[str, str]] = {}
    for view in (*seen, *others):
        for counter_set in view.slice.spec.shared_counters:
            if counter_set.name in counter_sets:
                return invalid
            counter_sets[counter_set.name] = {name: counter.value for name, counter in counter_set.counters.items()}
    elsewhere = tuple(view for view in others if not view.is_counter_slice)
    for view in (*targets, *elsewhere):
        for device in view.devices:
            for use in device.consumes_counters:
                counters = counter_sets.get(use.counter_set)
                if counters is None or any(name not in counters for name in use.counters):
                    return invalid
    return GatheredPool(pool, targets, elsewhere, counter_sets)
