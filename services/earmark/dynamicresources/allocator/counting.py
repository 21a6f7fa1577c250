"""Shared counters and compatibility groups of a pool: what is left of them, what a device takes (upstream A11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.ledger import DeviceUse, PoolUse
from earmark.kube.objects import Device
from earmark.kube.quantity import parse_quantity

UNGROUPED = 1
"""The bit of a device without groups in a counter set's state; real groups have the bits above it."""

Pairs = tuple[tuple[int, int], ...]

NOBODY = -1
"""The state of a counter set without members: every device is admitted."""


@dataclass(slots=True, eq=False)
class Left:
    """What one ledger leaves of a pool: counters in nano units in the order of counter_index, a state per set."""

    amounts: tuple[int, ...]
    groups: tuple[int, ...]
    overcommitted: bool


def counter_index(pool: GatheredPool) -> dict[tuple[str, str], int]:
    """Return the position of each counter, by counter set and name."""
    found: dict[tuple[str, str], int] | None = pool.views.get("counters")
    if found is None:
        names = [(set_name, name) for set_name, counters in pool.counter_sets.items() for name in counters]
        found = pool.views["counters"] = {name: index for index, name in enumerate(names)}
    return found


def consumption(pool: GatheredPool, device: Device) -> tuple[Pairs, Pairs]:
    """Return what a device takes: (counter, nano amount) without zeros, and (counter set, mask of its groups)."""
    # By identity: devices that other nodes see may have the same name.
    cache: dict[int, tuple[Pairs, Pairs]] = pool.views.setdefault("consumption", {})
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


@dataclass(slots=True, eq=False)
class Consumers:
    """The devices of a pool that take from counters, wherever they can be used, and what there is.

    by_name: what the devices of a name take. grouped: whether any of them has compatibility groups.
    """

    published: tuple[int, ...]
    by_name: dict[str, list[tuple[Pairs, Pairs]]]
    grouped: bool


def consumers(pool: GatheredPool) -> Consumers:
    """Return the consumers of a pool, found once."""
    found: Consumers | None = pool.views.get("consumers")
    if found is None:
        published = tuple(
            parse_quantity(value).nano for counters in pool.counter_sets.values() for value in counters.values()
        )
        by_name: dict[str, list[tuple[Pairs, Pairs]]] = {}
        grouped = False
        for view in (*pool.targets, *pool.others):
            for device in view.devices:
                if device.consumes_counters:
                    taken, groups = consumption(pool, device)
                    by_name.setdefault(device.name, []).append((taken, groups))
                    grouped = grouped or any(mask != UNGROUPED for _, mask in groups)
        found = pool.views["consumers"] = Consumers(published, by_name, grouped)
    return found


def left_in(pool: GatheredPool, use: PoolUse) -> Left:
    """Return what is left: the published values less what devices that are held take (upstream A11.1).

    Each device counts once, however many hold it, and wherever it can be used. The amounts may be negative.
    """
    known = consumers(pool)
    amounts = list(known.published)
    states = [NOBODY] * len(pool.counter_sets)
    # The order of devices matters for groups that contradict each other, so it is the pool's, not the ledger's.
    for name in known.by_name if use.devices else ():
        if name in use.devices:
            for taken, groups in known.by_name[name]:
                for position, amount in taken:
                    amounts[position] -= amount
                if known.grouped:
                    for slot, mask in groups:
                        states[slot] = _joined(states[slot], mask)
    return Left(tuple(amounts), tuple(states), min(amounts, default=0) < 0)


def left_after(
    pool: GatheredPool,
    left: Left,
    before: Mapping[str, DeviceUse],
    now: Mapping[str, DeviceUse],
    changed: Iterable[str],
) -> Left | None:
    """Return what is left when the `changed` devices of a record are held differently; None: groups need a recount."""
    known = consumers(pool)
    if known.grouped:
        return None
    amounts = list(left.amounts)
    for name in dict.fromkeys(changed):
        sign = (name in before) - (name in now)
        if sign:
            for taken, _ in known.by_name.get(name, ()):
                for position, amount in taken:
                    amounts[position] += sign * amount
    return Left(tuple(amounts), left.groups, min(amounts, default=0) < 0)


def _joined(state: int, mask: int) -> int:
    """The state of a counter set after a member that is there already, whether or not it would be admitted now."""
    if state == NOBODY:
        return mask
    if UNGROUPED in (state, mask):
        return state
    return state & mask
