"""What there is: ResourceSlices with taint rules merged in, and DeviceClasses, one immutable value per revision.

Who holds what is the ledger's; which devices a claim gets is the allocator's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from earmark.dynamicresources.ledger import PoolId
from earmark.dynamicresources.overlay import OverlayMap
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import Device, DeviceClass, DeviceTaintRule, ResourceSlice


class PoolSlices:
    """All slices of one pool, in the whole cluster and of every generation, by name."""

    __slots__ = ("id", "slices", "views")

    def __init__(self, pool: PoolId, slices: tuple[SliceView, ...]) -> None:
        self.id = pool
        self.slices = slices
        # Values that the allocator computes from the pool, by what they are.
        self.views: dict[Any, Any] = {}


class NodeSlices:
    """The slices with the nodeName of one node, by name. pools: how many pools they belong to."""

    __slots__ = ("pools", "slices", "views")

    def __init__(self, slices: tuple[SliceView, ...]) -> None:
        self.slices = slices
        self.pools = len({view.pool for view in slices})
        # Values that the allocator computes from these slices, by what they are.
        self.views: dict[Any, Any] = {}


class Inventory:
    """Slices, classes and taint rules. A change makes a new inventory and copies only what it touches."""

    __slots__ = ("_classes", "_local", "_pools", "_rules", "_shared", "_shared_order", "_slices", "views")

    def __init__(self) -> None:
        self._slices: OverlayMap[str, SliceView] = OverlayMap()
        self._pools: OverlayMap[PoolId, PoolSlices] = OverlayMap()
        self._local: OverlayMap[str, NodeSlices] = OverlayMap()
        self._shared: OverlayMap[str, SliceView] = OverlayMap()
        self._shared_order: tuple[SliceView, ...] | None = None
        self._classes: OverlayMap[str, DeviceClass] = OverlayMap()
        self._rules: OverlayMap[str, DeviceTaintRule] = OverlayMap()
        # Values that are computed from the whole inventory, by what they are.
        self.views: dict[Any, Any] = {}

    @classmethod
    def of(
        cls,
        slices: Iterable[ResourceSlice] = (),
        classes: Iterable[DeviceClass] = (),
        rules: Iterable[DeviceTaintRule] = (),
    ) -> Inventory:
        """Make an inventory of many objects at once; of equal names the last one counts."""
        views = {slice_.metadata.name: SliceView(slice_) for slice_ in slices}
        return cls._of(views, classes, rules)

    @classmethod
    def in_order(cls, slices: Iterable[ResourceSlice], classes: Iterable[DeviceClass]) -> Inventory:
        """Make an inventory of recorded input, where the order of contradicting slices counts and names may repeat."""
        views = {f"{rank} {slice_.metadata.name}": SliceView(slice_, (), rank) for rank, slice_ in enumerate(slices)}
        return cls._of(views, classes, ())

    @classmethod
    def _of(
        cls, views: dict[str, SliceView], classes: Iterable[DeviceClass], rules: Iterable[DeviceTaintRule]
    ) -> Inventory:
        new = cls()
        by_rule = {rule.metadata.name: rule for rule in rules}
        new._rules = OverlayMap(by_rule)
        ordered = _in_order(by_rule.values())
        if ordered:
            views = {name: view.with_rules(ordered) for name, view in views.items()}
        pools: dict[PoolId, list[SliceView]] = {}
        local: dict[str, list[SliceView]] = {}
        shared: dict[str, SliceView] = {}
        for name in sorted(views, key=lambda name: views[name].order):
            view = views[name]
            pools.setdefault(view.pool, []).append(view)
            if view.node_name:
                local.setdefault(view.node_name, []).append(view)
            else:
                shared[name] = view
        new._slices = OverlayMap(views)
        new._pools = OverlayMap({pool: PoolSlices(pool, tuple(members)) for pool, members in pools.items()})
        new._local = OverlayMap({node: NodeSlices(tuple(members)) for node, members in local.items()})
        new._shared = OverlayMap(shared)
        new._classes = OverlayMap({class_.metadata.name: class_ for class_ in classes})
        return new

    # --- changes -----------------------------------------------------------------------------------------------------

    def with_slice(self, slice_: ResourceSlice) -> Inventory:
        """Return the inventory with the slice added, or replaced if there is one of its name."""
        old = self._slices.get(slice_.metadata.name)
        if old is not None and old.slice is slice_:
            return self
        return self._replaced([(old, SliceView(slice_, _in_order(self._rules.values())))])

    def without_slice(self, name: str) -> Inventory:
        """Return the inventory without the slice."""
        old = self._slices.get(name)
        return self if old is None else self._replaced([(old, None)])

    def with_class(self, class_: DeviceClass) -> Inventory:
        """Return the inventory with the class added or replaced."""
        new = self._copy()
        new._classes = self._classes.with_item(class_.metadata.name, class_)
        return new

    def without_class(self, name: str) -> Inventory:
        """Return the inventory without the class."""
        new = self._copy()
        new._classes = self._classes.without(name)
        return new

    def with_rule(self, rule: DeviceTaintRule) -> Inventory:
        """Return the inventory with the taint rule added or replaced (upstream A9.5)."""
        return self._with_rules(self._rules.with_item(rule.metadata.name, rule))

    def without_rule(self, name: str) -> Inventory:
        """Return the inventory without the taint rule."""
        return self._with_rules(self._rules.without(name))

    def _with_rules(self, rules: OverlayMap[str, DeviceTaintRule]) -> Inventory:
        ordered = _in_order(rules.values())
        changes: list[tuple[SliceView | None, SliceView | None]] = []
        for old in self._slices.values():
            view = old.with_rules(ordered)
            if view is not old:
                changes.append((old, view))
        new = self._replaced(changes)
        new._rules = rules
        return new

    def _replaced(self, changes: Iterable[tuple[SliceView | None, SliceView | None]]) -> Inventory:
        new = self._copy()
        for old, view in changes:
            if old is not None:
                new._slices = new._slices.without(old.name)
                new._set_pool(old.pool, _without(new._members(old.pool), old))
                if old.node_name:
                    new._set_local(old.node_name, _without(new.local_slices(old.node_name), old))
                else:
                    new._shared, new._shared_order = new._shared.without(old.name), None
            if view is not None:
                new._slices = new._slices.with_item(view.name, view)
                new._set_pool(view.pool, _with(new._members(view.pool), view))
                if view.node_name:
                    new._set_local(view.node_name, _with(new.local_slices(view.node_name), view))
                else:
                    new._shared, new._shared_order = new._shared.with_item(view.name, view), None
        return new

    def _members(self, pool: PoolId) -> tuple[SliceView, ...]:
        record = self._pools.get(pool)
        return record.slices if record is not None else ()

    def _set_pool(self, pool: PoolId, members: tuple[SliceView, ...]) -> None:
        self._pools = self._pools.with_item(pool, PoolSlices(pool, members)) if members else self._pools.without(pool)

    def _set_local(self, node: str, members: tuple[SliceView, ...]) -> None:
        self._local = self._local.with_item(node, NodeSlices(members)) if members else self._local.without(node)

    def _copy(self) -> Inventory:
        new = Inventory.__new__(Inventory)
        new._slices, new._pools, new._local = self._slices, self._pools, self._local
        new._shared, new._shared_order = self._shared, self._shared_order
        new._classes, new._rules, new.views = self._classes, self._rules, {}
        return new

    # --- looking -----------------------------------------------------------------------------------------------------

    def slices(self) -> Iterator[SliceView]:
        """Iterate over all slices."""
        return self._slices.values()

    def slice_named(self, name: str) -> SliceView | None:
        """Return a slice."""
        return self._slices.get(name)

    def local_slices(self, node: str) -> tuple[SliceView, ...]:
        """Return the slices whose nodeName is the node, by name."""
        local = self._local.get(node)
        return local.slices if local is not None else ()

    def local(self, node: str) -> NodeSlices | None:
        """Return the record of a node's own slices, None if it has none."""
        return self._local.get(node)

    def shared_slices(self) -> tuple[SliceView, ...]:
        """Return the slices without a nodeName, by name."""
        if self._shared_order is None:
            self._shared_order = tuple(sorted(self._shared.values(), key=lambda view: view.order))
        return self._shared_order

    def pool(self, pool: PoolId) -> PoolSlices | None:
        """Return all slices of a pool."""
        return self._pools.get(pool)

    def device_class(self, name: str) -> DeviceClass | None:
        """Return a class."""
        return self._classes.get(name)

    def classes(self) -> Iterator[DeviceClass]:
        """Iterate over all classes."""
        return self._classes.values()

    def rules(self) -> Iterator[DeviceTaintRule]:
        """Iterate over all taint rules."""
        return self._rules.values()

    def find(self, driver: str, pool: str, device: str) -> tuple[SliceView, Device] | None:
        """Return a device of the pool's newest generation, with its slice."""
        members = self._members((driver, pool))
        newest = max((view.generation for view in members), default=0)
        for view in members:
            if view.generation == newest:
                position = view.index.get(device)
                if position is not None:
                    return view, view.devices[position]
        return None

    def exists(self, driver: str, pool: str, device: str) -> bool:
        """Whether the device is in the pool's newest generation."""
        return self.find(driver, pool, device) is not None

    def node_of(self, driver: str, pool: str, device: str) -> str | None:
        """Return the node that the device is tied to by an explicit nodeName, its own or its slice's (E26-E28).

        None for devices that are selected by nodeSelector or allNodes and for devices that do not exist (F37: without
        the slice, locality cannot be proved).
        """
        found = self.find(driver, pool, device)
        if found is None:
            return None
        view, member = found
        node, _, _ = view.node_fields(member)
        return node or None


def _in_order(rules: Iterable[DeviceTaintRule]) -> tuple[DeviceTaintRule, ...]:
    return tuple(sorted(rules, key=lambda rule: rule.metadata.name))


def _with(members: tuple[SliceView, ...], view: SliceView) -> tuple[SliceView, ...]:
    return tuple(sorted((*members, view), key=lambda member: member.order))


def _without(members: tuple[SliceView, ...], view: SliceView) -> tuple[SliceView, ...]:
    return tuple(member for member in members if member is not view)
