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


def device_classes(task: Task) -> tuple[list[int], list[int], list[int]]:
    """Return the class of each device, its strict class, and its class but for constraint values."""
    choices = [choice for wish in task.wishes for choice in wish.choices]
    masks = [visible(choice) for choice in choices]
    mines = [choice.mines for choice in choices]
    blocked = [choice.blocked | choice.late << task.devices for choice in choices]
    columns = _columns(choices)
    private = [_private_values(column, task.devices) for column in columns]
    loose: dict[object, int] = {}
    strict: dict[object, int] = {}
    bare: dict[object, int] = {}
    loose_of, strict_of, bare_of = [], [], []
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
        bare_of.append(bare.setdefault(base, len(bare)))
        loose_of.append(loose.setdefault((base, softened), len(loose)))
        strict_of.append(strict.setdefault((base, values), len(strict)))
    return loose_of, strict_of, bare_of


def value_blocks(task: Task, bare: list[int]) -> list[list[int]] | None:
    """Return the devices by value, each value's by bare class, if all constraints divide the devices in one way.

    Then two values are interchangeable as long as no constraint state names one. None if there is no such division.
    """
    columns = _columns([choice for wish in task.wishes for choice in wish.choices])
    if not columns or task.shareable:
        return None
    first = columns[0]
    partition = _partition(first, task.devices)
    if partition is None or any(_partition(column, task.devices) != partition for column in columns[1:]):
        return None
    blocks: dict[int, dict[int, int]] = {}
    for device in range(task.devices):
        masks = blocks.setdefault(partition[device], {})
        masks[bare[device]] = masks.get(bare[device], 0) | 1 << device
    return [[masks[kind] for kind in sorted(masks)] for masks in blocks.values()]


def _partition(column: ConstraintUse, devices: int) -> list[int] | None:
    """The number of each device's value, in order of first use; None for lists of values and values that are odd."""
    if ordered_values(column) or column.missing or column.mines:
        return None
    numbers: dict[int, int] = {}
    found = []
    for device in range(devices):
        value = column.adds[device]
        if value.bit_count() != 1:
            return None
        found.append(numbers.setdefault(value, len(numbers)))
    return found


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


def ordered_values(use: ConstraintUse) -> bool:
    """Whether the constraint's answer depends on the order in which devices come."""
    return use.tests is not use.adds and use.tests != use.adds


def equal_neighbours(task: Task) -> list[bool]:
    """Return which wishes equal the one before, so that swapping their devices is no new solution.

    Values that a constraint accepts only from the first device make the order matter.
    """
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
            and not any(ordered_values(use) for use in left.constraints)
            and [(use.slot, id(use.tests), id(use.adds)) for use in left.constraints]
            == [(use.slot, id(use.tests), id(use.adds)) for use in right.constraints]
        )
    return result
