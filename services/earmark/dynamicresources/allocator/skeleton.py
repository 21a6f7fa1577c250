"""The part of a problem that no ledger changes: what each request could take on a node (first half of compile).

Equal nodes share a skeleton, so nothing here keeps names of devices; errors say which device they mean by its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from earmark.dynamicresources.allocator.counting import Pairs
from earmark.dynamicresources.allocator.errors import FATAL, AllocationError
from earmark.dynamicresources.allocator.integers import ConstraintUse
from earmark.dynamicresources.allocator.requests import Alternative
from earmark.dynamicresources.allocator.rows import Numbering
from earmark.kube.quantity import Quantity


@dataclass(slots=True, eq=False)
class StaticChoice:
    """An alternative without regard to what is in use.

    selected: devices that selectors, amounts and node accept. mines: devices whose selection is an error. refused:
    selected ones that taints and the like exclude. listed: for All. consumed: what a device's share would be.
    """

    number: int
    alternative: Alternative
    num: int
    selected: int
    mines: int
    refused: int
    listed: tuple[int, ...] | None
    uses: tuple[ConstraintUse, ...]
    consumed: dict[int, dict[str, Quantity]]
    amounts: dict[int, tuple[tuple[str, int], ...]]
    """The same in nano units, in the order of the device's capacities."""
    shares: dict[int, tuple[int, ...]]
    late: int
    """Devices that have not as much even when nothing is in use."""
    mask: int
    """What can be picked when nothing is in use (not for All)."""


@dataclass(slots=True, eq=False)
class StaticWish:
    """A request: its claim and choices."""

    claim: int
    choices: tuple[StaticChoice, ...]
    prioritized: bool


@dataclass(slots=True, eq=False)
class DeviceError:
    """An error that names a device: `before` its name, `after` it."""

    before: str
    after: str
    short: bool = False

    def raised(self, numbering: Numbering, device: int) -> AllocationError:
        """Return the error for the device of this number."""
        row, position = numbering.locate(device)
        name = row.view.devices[position].name if self.short else row.device_id(position)
        return AllocationError(FATAL, f"{self.before}{name}{self.after}")


@dataclass(slots=True, eq=False)
class Skeleton:
    """All requests of all claims over the devices of a node."""

    total: int
    firsts: list[int]
    invalid_pools: bool
    wishes: list[StaticWish] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    starts: list[tuple[int, ...]] = field(default_factory=list)
    shareable: int = 0
    room: dict[int, tuple[int, ...]] = field(default_factory=dict)
    room_names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    room_numbers: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The same names as numbers."""
    capacities: dict[int, dict[str, int]] = field(default_factory=dict)
    """Per device that has any: its capacities in nano units."""
    consumption: dict[int, tuple[int, Pairs, Pairs]] = field(default_factory=dict)
    """Per device that consumes counters: its pool, counters and groups."""
    mine_errors: dict[tuple[int, int], DeviceError] = field(default_factory=dict)
    derive_errors: dict[tuple[int, int, int], DeviceError] = field(default_factory=dict)
    many_terms: int = 0
    """Devices whose node selector has several terms, which is an error once they are picked (upstream A6.7)."""
    error: AllocationError | None = None
    device_error: tuple[DeviceError, int] | None = None

    def refusal(self, number: int) -> DeviceError:
        """Return the error for a device that a constraint refuses in mode All (upstream A4.8)."""
        for wish in self.wishes:
            for choice in wish.choices:
                if choice.number == number:
                    place = choice.alternative.place
                    text = " because a claim constraint would not be satisfied"
                    return DeviceError(f"{place}: cannot add device ", text)
        raise IndexError(number)

    def raise_error(self, numbering: Numbering) -> None:
        """Raise what upstream refuses before it searches (upstream A3)."""
        if self.device_error is not None:
            error, device = self.device_error
            raise error.raised(numbering, device)
        if self.error is not None:
            raise self.error.again()
