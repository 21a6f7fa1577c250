"""The part of a problem that ledgers change, and with it the integer problem (second half of compile)."""

from __future__ import annotations

from earmark.dynamicresources.allocator.integers import Choice, Task, Wish
from earmark.dynamicresources.allocator.skeleton import Skeleton, StaticChoice
from earmark.dynamicresources.allocator.usage import Merged


def compile_task(skeleton: Skeleton, merged: Merged, *, with_groups: bool) -> Task:
    """Return the integer problem of a skeleton under ledgers.

    with_groups: the gate for compatibility groups.
    """
    counters, groups, available, group_start, overdrawn = _charges(skeleton, merged, with_groups)
    room = skeleton.room
    taken = merged.taken
    if taken:
        room = dict(room)
    for device, amounts in taken.items():
        if device in room:
            pairs = zip(skeleton.room_names[device], room[device], strict=True)
            room[device] = tuple(value - amounts.get(name, 0) for name, value in pairs)
    exclusive = merged.exclusive
    wishes = tuple(
        Wish(wish.claim, tuple(_choice(skeleton, choice, exclusive, overdrawn, taken) for choice in wish.choices),
             wish.prioritized)
        for wish in skeleton.wishes
    )  # fmt: skip
    return Task(
        devices=skeleton.total,
        wishes=wishes,
        slots=tuple(skeleton.slots),
        starts=tuple(skeleton.starts),
        shareable=skeleton.shareable,
        room=room,
        room_names=skeleton.room_numbers,
        counters=counters,
        available=available,
        groups=groups,
        group_start=group_start,
    )


def _choice(skeleton: Skeleton, static: StaticChoice, exclusive: int, overdrawn: int,
            taken: dict[int, dict[str, int]]) -> Choice:  # fmt: skip
    admin = static.alternative.admin
    late = static.late
    for device, used in taken.items():
        capacities = skeleton.capacities.get(device, {})
        for name, amount in static.amounts.get(device, ()):
            if amount + used.get(name, 0) > capacities[name]:
                late |= 1 << device
                break
    if static.listed is not None:
        blocked = static.refused | overdrawn | (0 if admin else exclusive)
        return Choice(static.number, static.num, admin, 0, 0, static.listed, blocked, static.uses, static.shares, late)
    out = late | overdrawn | (0 if admin else exclusive)
    mines = static.mines if admin else static.mines & ~exclusive
    return Choice(static.number, static.num, admin, static.mask & ~out, mines, None, 0, static.uses, static.shares)


_Charges = dict[int, tuple[tuple[int, int], ...]]


def _charges(
    skeleton: Skeleton, merged: Merged, with_groups: bool
) -> tuple[_Charges, _Charges, tuple[int, ...], tuple[int, ...], int]:
    """Return charges per device, what there is, and the devices that an overcommitted counter refuses (A11.3).

    There is one dimension per ledger, pool and counter, so that each ledger is checked by itself (F5). A shareable
    device of which a ledger holds a share is charged there already (A11.2).
    """
    counters: _Charges = {}
    groups: _Charges = {}
    overdrawn = 0
    if not skeleton.consumption:
        return counters, groups, (), (), 0
    available: list[int] = []
    states: list[int] = []
    for ledger, pools in enumerate(merged.states):
        charged = merged.charged(ledger) & skeleton.shareable
        offsets = []
        for state in pools:
            offsets.append((len(available), len(states)))
            if state.left is not None:
                available.extend(state.left.amounts)
                states.extend(state.left.groups)
        for device, (pool, amounts, masks) in skeleton.consumption.items():
            if charged >> device & 1:
                continue
            left = pools[pool].left
            if left is not None and left.overcommitted:
                overdrawn |= 1 << device
                continue
            offset, slot = offsets[pool]
            if amounts:
                charges = tuple((offset + counter, amount) for counter, amount in amounts)
                counters[device] = counters.get(device, ()) + charges
            if with_groups and masks:
                charges = tuple((slot + index, mask) for index, mask in masks)
                groups[device] = groups.get(device, ()) + charges
    return counters, groups, tuple(available), tuple(states) if with_groups else (), overdrawn
