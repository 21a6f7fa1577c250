"""When two nodes pose the same problem: signatures of what a problem can see of slices and pools.

Equal signatures mean equal answers, device number by device number; names and attributes that nothing reads are not in
them. Content is interned to small integers once per slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from earmark.dynamicresources.allocator.nodes import NodeFacts, node_matches
from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import Device, DeviceAttribute, NodeSelector

_NODE_OPERATIONS = "DRAOptionalNodeOperations"


class ReadSet:
    """What a problem reads of devices; equal ones are one object, so that it can be a key."""

    __slots__ = ("interner", "names", "taints")

    def __init__(self, interner: Interner, names: tuple[str, ...] | None, taints: bool) -> None:
        self.interner = interner
        self.names = names
        self.taints = taints


class Interner:
    """Small integers for equal content."""

    def __init__(self) -> None:
        self._ids: dict[object, int] = {}
        self._sets: dict[object, ReadSet] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def number(self, content: object) -> int:
        """Return the number of a hashable value, the same one for equal values."""
        return self._ids.setdefault(content, len(self._ids))

    def read_set(self, names: Iterable[str] | None, taints: bool) -> ReadSet:
        """Return the set for these attribute names (None: all) and whether taints matter."""
        key = None if names is None else tuple(sorted(set(names)))
        found = self._sets.get((key, taints))
        if found is None:
            found = self._sets[key, taints] = ReadSet(self, key, taints)
        return found


def devices_of(view: SliceView, reads: ReadSet) -> tuple[int, ...]:
    """Return a number per device of the slice: equal for devices that the problem cannot tell apart."""
    found: tuple[int, ...] | None = view.views.get(reads)
    if found is None:
        fixed = _fixed(view, reads.interner)
        attributes = [device.attributes for device in view.devices]
        columns: list[Sequence[object]] = [fixed]
        if reads.names is None:
            columns.append([tuple(sorted(values.items(), key=_name)) for values in attributes])
        else:
            for name in reads.names:
                columns.append([values.get(name) for values in attributes])
                domain, _, bare = name.partition("/")
                if domain == view.driver:
                    columns.append([values.get(bare) for values in attributes])
        number = reads.interner.number
        found = view.views[reads] = tuple([number(content) for content in zip(*columns, strict=True)])
    return found


def _name(item: tuple[str, DeviceAttribute]) -> str:
    return item[0]


def _fixed(view: SliceView, interner: Interner) -> tuple[int, ...]:
    """The content that every problem may see, without taints."""
    found: tuple[int, ...] | None = view.views.get(interner)
    if found is None:
        spec = view.slice.spec
        shared = (view.driver, bool(spec.skip_node_operations), view.per_device, _terms(spec.node_selector))
        number = interner.number
        found = tuple([number((shared, _content(device))) for device in view.devices])
        view.views[interner] = found
    return found


def _content(device: Device) -> object:
    # A version that cannot be read, or an attribute without a value, makes every evaluation an error (A5.8).
    odd = [item for item in device.attributes.items() if item[1].string is None and _may_be_malformed(item[1])]
    capacity = tuple(device.capacity.items())
    if not (odd or device.consumes_counters or device.binding_conditions or device.allow_multiple_allocations
            or device.node_selector):  # fmt: skip
        return capacity
    return (
        capacity,
        tuple(odd),
        tuple(
            (use.counter_set, tuple((name, counter.value) for name, counter in use.counters.items()),
             use.compatibility_groups)
            for use in device.consumes_counters
        ),
        bool(device.binding_conditions),
        bool(device.allow_multiple_allocations),
        _terms(device.node_selector),
    )  # fmt: skip


def _terms(selector: NodeSelector | None) -> int:
    """The number of terms where it matters: more than one is an error (upstream A6.7)."""
    terms = len(selector.node_selector_terms) if selector is not None else 0
    return terms if terms > 1 else 0


def _may_be_malformed(attribute: DeviceAttribute) -> bool:
    return (
        attribute.int_ is None
        and attribute.bool_ is None
        and attribute.ints is None
        and attribute.strings is None
        and attribute.bools is None
    )


def pool_signature(pool: GatheredPool, reads: ReadSet) -> int:
    """Return the number of what a problem sees of a pool, use and taints aside."""
    found: int | None = pool.views.get(reads)
    if found is None:
        counters = tuple((name, tuple(counters)) for name, counters in pool.counter_sets.items())
        content = tuple(devices_of(view, reads) for view in pool.targets)
        found = pool.views[reads] = reads.interner.number((counters, content))
    return found


def node_signature(pools: Sequence[GatheredPool], node: NodeFacts, reads: ReadSet) -> tuple[object, ...]:
    """Return what a problem sees of a node, use aside: its pools in order, and what depends on the node itself."""
    parts: list[object] = []
    for pool in pools:
        if pool.incomplete or pool.invalid:
            # Which pool it is can be seen in the text of an error only, and texts are not shared.
            parts.append(pool.incomplete)
            continue
        parts.append(pool_signature(pool, reads))
        for view in pool.targets:
            if reads.taints and view.tainted:
                parts.append(view.taints)
            if view.per_device:
                parts.append(
                    tuple(
                        node_matches(node, device.node_name, bool(device.all_nodes), device.node_selector, view.name)
                        for device in view.devices
                    )
                )
            if view.slice.spec.skip_node_operations:
                parts.append(_NODE_OPERATIONS in node.declared_features)
    return tuple(parts)
