"""The integer problem between compile and solve: no strings, no Kubernetes objects.

Devices are numbered in candidate order (upstream A2.12); every set of devices is one int used as a bit mask.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_ONLY = 1
"""Bit of a matchAttribute state that only the start state (-1) has: values that nothing later can match test it."""


@dataclass(slots=True, eq=False)
class ConstraintUse:
    """A constraint as one alternative meets it.

    match: the state is an AND of masks, -1 at first; a device is accepted if `tests` meets it. Else distinct: the state
    is an OR, 0 at first; a device is accepted if `tests` does not meet it. `adds` is what the device changes the state
    by. missing: devices that are always refused; mines: devices whose value cannot be calculated.
    """

    slot: int
    match: bool
    tests: list[int]
    adds: list[int]
    missing: int
    mines: int


@dataclass(slots=True, eq=False)
class Choice:
    """One alternative of a request.

    mask: devices that can be picked. mines: devices at which the search ends with an error. listed: for All, every
    device in order; blocked: those of them that cannot be picked. shares: per shareable device what a share consumes.
    """

    number: int
    num: int
    admin: bool
    mask: int
    mines: int
    listed: tuple[int, ...] | None
    blocked: int
    constraints: tuple[ConstraintUse, ...]
    shares: dict[int, tuple[int, ...]]
    late: int = 0
    """Of mode All: devices without room, which is found only after the constraints."""


@dataclass(slots=True, eq=False)
class Wish:
    """One request: its choices in order. last_of_claim: how many claims end after it."""

    claim: int
    choices: tuple[Choice, ...]
    prioritized: bool


@dataclass(slots=True, eq=False)
class Task:
    """A problem: pick devices for all wishes, the first solution in depth-first order counts.

    shareable: devices that can be picked more than once. room: per shareable device what is left of its capacities;
    room_names: which capacities those are, as numbers.
    counters: per device (dimension, amount); available: per dimension; groups: per device (slot, mask), group_start:
    per slot. slots: number of constraint states per claim.
    """

    devices: int
    wishes: tuple[Wish, ...]
    slots: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    shareable: int
    room: dict[int, tuple[int, ...]]
    room_names: dict[int, tuple[int, ...]]
    counters: dict[int, tuple[tuple[int, int], ...]]
    available: tuple[int, ...]
    groups: dict[int, tuple[tuple[int, int], ...]]
    group_start: tuple[int, ...]


class Landmine(Exception):
    """The search reached a device at which upstream stops with an error.

    reason: "selector" (or capacity), "refused" (a constraint in mode All), "derived" (an attribute of a constraint).
    """

    def __init__(self, reason: str, choice: int, device: int, constraint: int = -1) -> None:
        super().__init__(reason, choice, device, constraint)
        self.reason = reason
        self.choice = choice
        self.device = device
        self.constraint = constraint


class Expired(Exception):
    """The search took longer than it may."""


Solution = tuple[tuple[int, ...], ...]
"""Per wish the picked devices, preceded by the position of the choice."""
