"""A ResourceSlice as the allocator sees it, with what is computed from it once and kept until it changes.

Nothing here depends on a claim, a node or a ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from earmark.dynamicresources.lazy import lazy
from earmark.kube.objects import Device, DeviceTaint, DeviceTaintRule, NodeSelector, ResourceSlice

_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class SliceView:
    """One slice, taint rules applied. Immutable but for values that are computed when they are first asked for."""

    def __init__(self, slice_: ResourceSlice, rules: Iterable[DeviceTaintRule] = (), rank: int = 0) -> None:
        """Make a view.

        rank: place among slices that contradict each other, before the name; 0 in a cluster, the place in the input
        where that has an order to be followed.
        """
        spec = slice_.spec
        self.order = (rank, slice_.metadata.name)
        self.slice = slice_
        self.name = slice_.metadata.name
        self.driver = spec.driver
        self.pool = (spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.devices = spec.devices
        self._rules = tuple(rule for rule in rules if _may_match(rule, spec.driver, spec.pool.name))
        # Values that the allocator computes from the slice itself, taint rules aside, by what they are.
        self.views: dict[Any, Any] = {}

    def with_rules(self, rules: Iterable[DeviceTaintRule]) -> SliceView:
        """Return the view under other taint rules; itself if they make no difference."""
        new = SliceView(self.slice, rules, self.order[0])
        if new._rules == self._rules:
            return self
        new.views = self.views
        return new

    @lazy
    def index(self) -> dict[str, int]:
        """Position of each device by name; of equal names the last one, which only invalid pools have."""
        return {device.name: position for position, device in enumerate(self.devices)}

    @lazy
    def tainted(self) -> bool:
        """Whether any device has a taint that keeps claims away."""
        return any(self.taints)

    @lazy
    def taints(self) -> tuple[tuple[DeviceTaint, ...], ...]:
        """Per device the taints that keep claims away: its own, then those of the rules (upstream A9.1, A9.5)."""
        if not self._rules and not any(device.taints for device in self.devices):
            return ((),) * len(self.devices)
        return tuple(
            tuple(
                taint
                for taint in (
                    *device.taints,
                    *(rule.spec.taint for rule in self._rules if _matches_device(rule, device.name)),
                )
                if taint.effect in _BLOCKING_EFFECTS
            )
            for device in self.devices
        )

    @property
    def node_name(self) -> str:
        """spec.nodeName, "" if it is not set."""
        return self.slice.spec.node_name or ""

    @property
    def per_device(self) -> bool:
        """Whether each device says itself on which nodes it can be used."""
        return bool(self.slice.spec.per_device_node_selection)

    @lazy
    def is_counter_slice(self) -> bool:
        """Whether it publishes shared counters; its devices are ignored then (upstream A2.9)."""
        return bool(self.slice.spec.shared_counters)

    @lazy
    def uses_groups(self) -> bool:
        """Whether a device has compatibility groups (upstream A2.4)."""
        return any(use.compatibility_groups for device in self.devices for use in device.consumes_counters)

    @lazy
    def has_binding_conditions(self) -> bool:
        """Whether a device has the field bindingConditions, be it empty (upstream A2.11)."""
        return any(device.binding_conditions is not None for device in self.devices)

    def node_fields(self, device: Device) -> tuple[str | None, bool, NodeSelector | None]:
        """Return nodeName, allNodes and nodeSelector that hold for a device: its own or the slice's."""
        where: Device | Any = device if self.per_device else self.slice.spec
        return where.node_name, bool(where.all_nodes), where.node_selector

    def __repr__(self) -> str:
        return f"SliceView({self.name!r})"


def _may_match(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    selector = rule.spec.device_selector
    if selector is None:
        return False
    return selector.driver in (None, driver) and selector.pool in (None, pool)


def _matches_device(rule: DeviceTaintRule, device: str) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.device in (None, device)
