"""Which devices of an integer problem are interchangeable, and what of a search state still matters.

Two devices are of one class if swapping them maps solutions to solutions; strictly so if nothing in a state can tell
them apart either.
"""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Task

_PRIVATE = "private"


def visible(choice: Choice) -> int:
    """Return the devices that the choice can look at."""
    if choice.listed is None:
        return choice.mask | choice.mines
    return sum(1 << device for device in choice.listed)


def device_classes(task: Task) -> tuple[list[int], list[int]]:
    """Return the class of each device, and its strict class."""
    choices = [choice for wish in task.wishes for choice in wish.choices]
    masks = [visible(choice) for choice in choices]
    mines = [choice.mines for choice in choices]
    blocked = [choice.blocked | choice.late << task.devices for choice in choices]
    columns = _columns(choices)
    private = [_private_values(column, task.devices) for column in columns]
    loose: dict[object, int] = {}
    strict: dict[object, int] = {}
    loose_of, strict_of = [], []
    with_shares = [choice for choice in choices if choice.shares]
    for device in range(task.devices):
        base = (
            tuple(mask >> device & 1 for mask in masks),
            tuple(mask >> device & 1 for mask in mines) if any(mines) else (),
            tuple(mask >> device & 1 for mask in blocked) if any(blocked) else (),
            task.counters.get(device),
            task.groups.get(device),
            (task.room.get(device), task.room_names.get(device),
             tuple(choice.shares.get(device) for choice in with_shares))
            if task.shareable >> device & 1 else None,
        )  # fmt: skip
        values = tuple((column.tests[device], column.adds[device], column.missing >> device & 1) for column in columns)
        softened = tuple(_PRIVATE if device in own else value for own, value in zip(private, values, strict=True))
        loose_of.append(loose.setdefault((base, softened), len(loose)))
        strict_of.append(strict.setdefault((base, values), len(strict)))
    return loose_of, strict_of


def _columns(choices: Sequence[Choice]) -> list[ConstraintUse]:
    """The different value columns; uses of one constraint mostly share theirs."""
    found: dict[tuple[int, int], ConstraintUse] = {}
    for choice in choices:
        for use in choice.constraints:
            found.setdefault((id(use.tests), id(use.adds)), use)
    return list(found.values())


def _private_values(column: ConstraintUse, devices: int) -> frozenset[int]:
    """The devices whose value no other device has in part."""
    once = twice = 0
    for device in range(devices):
        value = column.adds[device]
        twice |= once & value
        once |= value
    return frozenset(
        device
        for device in range(devices)
        if column.adds[device]
        and column.tests[device] == column.adds[device]
        and column.adds[device].bit_count() == 1
        and not column.adds[device] & twice
    )


def equal_neighbours(task: Task) -> list[bool]:
    """Return which wishes equal the one before, so that swapping their devices is no new solution."""
    result = [False] * len(task.wishes)
    for index in range(1, len(task.wishes)):
        one, other = task.wishes[index - 1], task.wishes[index]
        if one.claim != other.claim or len(one.choices) != 1 or len(other.choices) != 1:
            continue
        left, right = one.choices[0], other.choices[0]
        result[index] = (
            left.num == right.num == 1
            and left.listed is None
            and right.listed is None
            and not left.admin
            and not right.admin
            and left.mask == right.mask
            and left.shares == right.shares
            and [(use.slot, id(use.tests), id(use.adds)) for use in left.constraints]
            == [(use.slot, id(use.tests), id(use.adds)) for use in right.constraints]
        )
    return result
