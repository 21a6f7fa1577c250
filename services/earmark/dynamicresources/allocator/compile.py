"""The part of a problem that ledgers change, and with it the integer problem (second half of compile)."""

from __future__ import annotations

from earmark.dynamicresources.allocator.integers import Choice, Task, Wish
from earmark.dynamicresources.allocator.rows import bits
from earmark.dynamicresources.allocator.skeleton import Skeleton, StaticChoice
from earmark.dynamicresources.allocator.usage import Merged


def compile_task(skeleton: Skeleton, merged: Merged, *, with_groups: bool) -> Task:
    """Return the integer problem of a skeleton under ledgers.

    with_groups: the gate for compatibility groups.
    """
    counters, groups, available, group_start, overdrawn = _charges(skeleton, merged, with_groups)
    room, names = dict(skeleton.room), _numbered_names(skeleton)
    taken = merged.taken
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
        room_names=names,
        counters=counters,
        available=available,
        groups=groups,
        group_start=group_start,
    )


def _numbered_names(skeleton: Skeleton) -> dict[int, tuple[int, ...]]:
    numbers: dict[str, int] = {}
    return {
        device: tuple(numbers.setdefault(name, len(numbers)) for name in names)
        for device, names in skeleton.room_names.items()
    }


def _choice(skeleton: Skeleton, static: StaticChoice, exclusive: int, overdrawn: int,
            taken: dict[int, dict[str, int]]) -> Choice:  # fmt: skip
    admin = static.alternative.admin
    refused = static.refused | overdrawn
    late = 0
    shares: dict[int, tuple[int, ...]] = {}
    for device, amounts in static.consumed.items():
        used = taken.get(device, {})
        capacities = skeleton.capacities[device]
        for name, amount in amounts.items():
            if amount.nano + used.get(name, 0) > capacities[name]:
                late |= 1 << device
                break
    if skeleton.shareable:
        for device in bits(static.selected & skeleton.shareable):
            consumed = static.consumed.get(device, {})
            shares[device] = tuple(consumed[name].nano for name in skeleton.room_names[device])
    if static.listed is not None:
        blocked = refused if admin else refused | exclusive
        return Choice(static.number, static.num, admin, 0, 0, static.listed, blocked, static.uses, shares, late)
    mask = static.selected & ~refused & ~late
    for use in static.uses:
        mask &= ~(use.missing & ~use.mines)
    mines = static.mines
    if not admin:
        mask &= ~exclusive
        mines &= ~exclusive
    return Choice(static.number, static.num, admin, mask, mines, None, 0, static.uses, shares)


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
