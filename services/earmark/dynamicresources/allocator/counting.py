"""Shared counters and compatibility groups of a pool: what is left in each ledger (upstream A11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.ledger import DeviceUse, PoolUse
from earmark.kube.objects import Device
from earmark.kube.quantity import parse_quantity

UNGROUPED = 1
"""The bit of a device without groups in a counter set's state; real groups have the bits above it."""

Charge = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


@dataclass(slots=True, eq=False)
class _Left:
    """What one ledger leaves of a pool: counters in nano units in the order of the pool's counters, group states."""

    amounts: tuple[int, ...]
    overcommitted: bool
    groups: tuple[int, ...]


@dataclass(slots=True, eq=False)
class PoolCounters:
    """The counters of a pool, once per ledger: dimension = ledger * counters + counter (F5: never merged)."""

    pool: GatheredPool
    left: tuple[_Left, ...]
    available: tuple[int, ...]
    group_start: tuple[int, ...]
    with_groups: bool

    def charge(self, device: Device, uses: Sequence[DeviceUse | None], shareable: bool) -> Charge | None:
        """Return (dimension, amount) pairs and (slot, mask) pairs of picking the device; None if it is refused.

        A shareable device of which a ledger holds a share is charged already there (upstream A11.2). A counter that is
        overcommitted refuses every device that would be charged (upstream A11.3).
        """
        dims: list[tuple[int, int]] = []
        masks: list[tuple[int, int]] = []
        amounts, groups = _consumption(self.pool, device)
        for ledger, (left, use) in enumerate(zip(self.left, uses, strict=True)):
            if shareable and use is not None and (use.shares or use.aggregated):
                continue
            if left.overcommitted:
                return None
            dims.extend((ledger * len(left.amounts) + counter, amount) for counter, amount in amounts)
            if self.with_groups:
                masks.extend((ledger * len(left.groups) + index, mask) for index, mask in groups)
        return tuple(dims), tuple(masks)


def pool_counters(pool: GatheredPool, uses: Sequence[PoolUse], features: frozenset[str]) -> PoolCounters:
    """Return what is left of a pool's counters in each ledger."""
    if not pool.counter_sets or gates.PARTITIONABLE_DEVICES not in features:
        return PoolCounters(pool, (_NOTHING,) * len(uses), (), (), False)
    with_groups = gates.COMPATIBILITY_GROUPS in features
    left = tuple(_left(pool, use) for use in uses)
    return PoolCounters(
        pool,
        left,
        tuple(amount for one in left for amount in one.amounts),
        tuple(state for one in left for state in one.groups) if with_groups else (),
        with_groups,
    )


_NOTHING = _Left((), False, ())


def _left(pool: GatheredPool, use: PoolUse) -> _Left:
    # The empty record is shared by all pools, so what is derived from it is kept with the pool.
    views, key = (use.views, ("left", pool)) if use.devices else (pool.views, ("left", None))
    found: _Left | None = views.get(key)
    if found is None:
        found = views[key] = _count(pool, use)
    return found


def counter_index(pool: GatheredPool) -> dict[tuple[str, str], int]:
    """Return the position of each counter, by counter set and name."""
    found: dict[tuple[str, str], int] | None = pool.views.get("counters")
    if found is None:
        names = [(set_name, name) for set_name, counters in pool.counter_sets.items() for name in counters]
        found = pool.views["counters"] = {name: index for index, name in enumerate(names)}
    return found


def _consumption(pool: GatheredPool, device: Device) -> Charge:
    """Return what the device takes: (counter, nano amount) and (group slot, mask), without zero amounts."""
    # By identity: devices that other nodes see may have the same name.
    cache: dict[int, Charge] = pool.views.setdefault("consumption", {})
    found = cache.get(id(device))
    if found is not None:
        return found
    index = counter_index(pool)
    sets = list(pool.counter_sets)
    bits: dict[str, int] = pool.views.setdefault("group bits", {})
    amounts: dict[int, int] = {}
    groups: list[tuple[int, int]] = []
    for use in device.consumes_counters:
        for name, counter in use.counters.items():
            position = index[use.counter_set, name]
            amounts[position] = amounts.get(position, 0) + parse_quantity(counter.value).nano
        mask = 0
        for group in use.compatibility_groups:
            mask |= 1 << bits.setdefault(group, len(bits) + 1)
        groups.append((sets.index(use.counter_set), mask or UNGROUPED))
    result = tuple((position, amount) for position, amount in amounts.items() if amount), tuple(groups)
    cache[id(device)] = result
    return result


def _count(pool: GatheredPool, use: PoolUse) -> _Left:
    index = counter_index(pool)
    sets = list(pool.counter_sets)
    amounts = [0] * len(index)
    for (set_name, name), position in index.items():
        amounts[position] = parse_quantity(pool.counter_sets[set_name][name]).nano
    states = [-1] * len(sets)
    for view in (*pool.targets, *pool.others):
        for device in view.devices:
            if device.name not in use.devices or not device.consumes_counters:
                continue
            taken, groups = _consumption(pool, device)
            for position, amount in taken:
                amounts[position] -= amount
            for slot, mask in groups:
                states[slot] = _joined(states[slot], mask)
    return _Left(tuple(amounts), any(amount < 0 for amount in amounts), tuple(states))


def _joined(state: int, mask: int) -> int:
    """The state of a counter set after a member that is there already, whether or not it would be admitted now."""
    if state == -1:
        return mask
    if UNGROUPED in (state, mask):
        return state
    return state & mask
