"""From claims, pools and ledgers to the integer problem (design: compile, solve, decode)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.attributes import AttributeColumns
from earmark.dynamicresources.allocator.capacity import CapacityError, consumed_capacity
from earmark.dynamicresources.allocator.counting import PoolCounters, pool_counters
from earmark.dynamicresources.allocator.errors import FATAL, AllocationError
from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Task, Wish
from earmark.dynamicresources.allocator.nodes import NodeFacts, node_matches
from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.allocator.requests import MAX_RESULTS, Alternative, Claim
from earmark.dynamicresources.allocator.selecting import Judge, verdicts
from earmark.dynamicresources.ledger import DeviceUse, Ledger, PoolUse
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.quantity import Quantity, QuantityError, parse_quantity
from earmark.kube.selectors import tolerates

_NODE_OPERATIONS = "DRAOptionalNodeOperations"


@dataclass(slots=True, eq=False)
class Row:
    """The devices of one slice in the numbering: first..first+count-1."""

    view: SliceView
    pool: GatheredPool
    first: int
    count: int
    uses: tuple[PoolUse, ...]


@dataclass(slots=True, eq=False)
class Compiled:
    """The integer problem and what decode needs to read its answer."""

    task: Task
    rows: list[Row]
    alternatives: list[Alternative]
    invalid_pools: bool
    node: NodeFacts
    mine_texts: dict[tuple[int, int], str]
    consumed: dict[tuple[int, int], dict[str, Quantity]]
    derive_texts: dict[tuple[int, int, int], str]

    def locate(self, device: int) -> tuple[Row, int]:
        """Return the slice of a device and its position there."""
        for row in self.rows:
            if device < row.first + row.count:
                return row, device - row.first
        raise IndexError(device)


class Compiler:
    """Makes the integer problem of some claims on one node."""

    def __init__(self, claims: tuple[Claim, ...], features: frozenset[str], variant: str, judge: Judge,
                 node: NodeFacts, pools: Sequence[GatheredPool], ledgers: Sequence[Ledger]) -> None:  # fmt: skip
        self.claims = claims
        self.features = features
        self.variant = variant
        self.judge = judge
        self.node = node
        self.pools = pools
        self.ledgers = ledgers
        self.consumable = gates.CONSUMABLE_CAPACITY in features
        self.fractional = gates.FRACTIONAL_CAPACITY_RANGE in features
        self.rows: list[Row] = []
        self.total = 0
        self.exclusive = 0
        self.shareable = 0
        self.refused = 0
        self.unselectable = 0
        self.off_node = 0
        self.room: dict[int, tuple[int, ...]] = {}
        self.room_names: dict[int, tuple[int, ...]] = {}
        self.capacity_names: dict[str, int] = {}
        self.aggregated: dict[int, dict[str, int]] = {}
        self.counters: dict[int, tuple[tuple[int, int], ...]] = {}
        self.available: list[int] = []
        self.groups: dict[int, tuple[tuple[int, int], ...]] = {}
        self.group_start: list[int] = []
        self.alternatives: list[Alternative] = []
        self.mine_texts: dict[tuple[int, int], str] = {}
        self.consumed: dict[tuple[int, int], dict[str, Quantity]] = {}
        self.derive_texts: dict[tuple[int, int, int], str] = {}

    def compile(self) -> Compiled:
        """Make the problem. Raises AllocationError for what upstream refuses before it searches (upstream A3)."""
        self._number_devices()
        wishes: list[Wish] = []
        slots: list[int] = []
        starts: list[tuple[int, ...]] = []
        for number, claim in enumerate(self.claims):
            columns = [
                AttributeColumns(constraint, self.features, self.judge, self.rows, self.total)
                for constraint in claim.constraints
            ]
            needed = 0
            for request in claim.requests:
                choices = tuple(self._choice(claim, alternative, columns) for alternative in request.alternatives)
                if request.error is not None:
                    raise request.error.again()
                least = min(choice.num for choice in choices)
                if least > MAX_RESULTS - needed:
                    raise AllocationError(
                        FATAL,
                        f"claim {claim.name}, request {request.name}: adding {least} devices exceeds the claim limit "
                        f"of {MAX_RESULTS}, with {needed} already accounted for",
                    )
                needed += least
                wishes.append(Wish(number, choices, request.prioritized))
            if claim.error is not None:
                raise claim.error.again()
            slots.append(len(columns))
            starts.append(tuple(-1 if column.match else 0 for column in columns))
        task = Task(
            devices=self.total,
            wishes=tuple(wishes),
            slots=tuple(slots),
            starts=tuple(starts),
            shareable=self.shareable,
            room=self.room,
            room_names=self.room_names,
            counters=self.counters,
            available=tuple(self.available),
            groups=self.groups,
            group_start=tuple(self.group_start),
        )
        invalid = any(pool.invalid for pool in self.pools)
        return Compiled(
            task, self.rows, self.alternatives, invalid, self.node, self.mine_texts, self.consumed, self.derive_texts
        )

    # --- devices -----------------------------------------------------------------------------------------------------

    def _number_devices(self) -> None:
        for pool in self.pools:
            if pool.incomplete or pool.invalid:
                continue
            uses = tuple(ledger.pool(pool.id) for ledger in self.ledgers)
            counters = pool_counters(pool, uses, self.features)
            offset = len(self.available)
            slot = len(self.group_start)
            self.available.extend(counters.available)
            self.group_start.extend(counters.group_start)
            for view in pool.targets:
                row = Row(view, pool, self.total, len(view.devices), uses)
                self.rows.append(row)
                self.total += row.count
                self._read_slice(row, counters, offset, slot)

    def _read_slice(self, row: Row, counters: PoolCounters, offset: int, slot: int) -> None:
        view, features = row.view, self.features
        refuse_slice = self._skips_refused(view)
        binding = gates.DEVICE_BINDING_AND_STATUS in features
        partitionable = gates.PARTITIONABLE_DEVICES in features
        for position, device in enumerate(view.devices):
            number = row.first + position
            bit = 1 << number
            uses = [use.devices.get(device.name) for use in row.uses]
            if any(use is not None and use.exclusive for use in uses):
                self.exclusive |= bit
            shareable = self.consumable and bool(device.allow_multiple_allocations)
            if shareable:
                self.shareable |= bit
            if refuse_slice:
                self.refused |= bit
            if device.binding_conditions and not binding:
                self.unselectable |= bit
            if view.per_device and not node_matches(
                self.node, device.node_name, bool(device.all_nodes), device.node_selector,
                f"device {device.name} in slice {view.name}",
            ):  # fmt: skip
                self.off_node |= bit
            if device.consumes_counters:
                if not partitionable:
                    self.refused |= bit
                else:
                    charge = counters.charge(device, uses, shareable)
                    if charge is None:
                        self.refused |= bit
                    else:
                        dims, masks = charge
                        if dims:
                            self.counters[number] = tuple((offset + dim, amount) for dim, amount in dims)
                        if masks:
                            self.groups[number] = tuple((slot + index, mask) for index, mask in masks)
            if self.consumable and (shareable or any(uses)):
                self._read_room(number, device.capacity, uses, shareable)

    def _read_room(
        self, number: int, capacities: dict[str, Any], uses: list[DeviceUse | None], shareable: bool
    ) -> None:
        taken: dict[str, int] = {}
        for use in uses:
            if use is not None:
                for name, (amount, _) in use.consumed.items():
                    taken[name] = max(taken.get(name, amount), amount)
        if taken:
            self.aggregated[number] = taken
        if shareable:
            names = self.capacity_names
            self.room_names[number] = tuple(names.setdefault(name, len(names)) for name in capacities)
            self.room[number] = tuple(
                _nano(capacity.value) - taken.get(name, 0) for name, capacity in capacities.items()
            )

    def _skips_refused(self, view: SliceView) -> bool:
        """Whether the slice wants operations skipped that the node cannot skip (upstream A4.14, A0.5)."""
        if not view.slice.spec.skip_node_operations or self.variant != gates.EXPERIMENTAL:
            return False
        return (
            gates.OPTIONAL_NODE_OPERATIONS not in self.features or _NODE_OPERATIONS not in self.node.declared_features
        )

    # --- requests ----------------------------------------------------------------------------------------------------

    def _choice(self, claim: Claim, alternative: Alternative, columns: list[AttributeColumns]) -> Choice:
        number = len(self.alternatives)
        self.alternatives.append(alternative)
        if alternative.all_devices:
            selected, _ = self._select_all(number, alternative)
            mines = 0
        else:
            selected, mines = self._select(number, alternative, self._in_use(alternative))
        refused = self.refused | self._untolerated(alternative, selected)
        shares: dict[int, tuple[int, ...]] = {}
        roomless = self._check_capacity(number, alternative, selected, shares) if self.consumable else 0
        uses = tuple(columns[position].use(position, alternative, selected) for position in alternative.constraints)
        for use in uses:
            if use.mines:
                expression = alternative.derived[columns[use.slot].name]
                for device in _bits(use.mines):
                    text = columns[use.slot].errors[expression, device]
                    self.derive_texts[number, use.slot, device] = text
        if alternative.all_devices:
            listed = tuple(_bits(selected))
            blocked = refused | (0 if alternative.admin else self.exclusive)
            return Choice(number, len(listed), alternative.admin, 0, 0, listed, blocked, uses, shares, roomless)
        mask = selected & ~refused & ~roomless
        for use in uses:
            mask &= ~(use.missing & ~use.mines)
        return Choice(number, alternative.count, alternative.admin, mask, mines, None, 0, uses, shares)

    def _in_use(self, alternative: Alternative) -> int:
        return 0 if alternative.admin else self.exclusive

    def _select(self, number: int, alternative: Alternative, in_use: int) -> tuple[int, int]:
        """Return the devices that can be selected and those whose selection is an error (upstream A5, A10)."""
        selected = ((1 << self.total) - 1) & ~in_use & ~self.unselectable
        mines = 0
        for expression, place in alternative.expressions:
            passed = 0
            for row in self.rows:
                wanted = selected >> row.first & ((1 << row.count) - 1)
                if not wanted:
                    continue
                found = verdicts(row.view, expression, wanted, self.judge)
                passed |= (found.accepted & wanted) << row.first
                for position, text in found.errors.items():
                    if wanted >> position & 1:
                        mines |= 1 << row.first + position
                        self.mine_texts[number, row.first + position] = _selector_error(place, row, position, text)
            selected = passed
        selected &= ~self.off_node
        if self.consumable:
            selected, broken = self._consume(number, alternative, selected, alternative.place)
            mines |= broken
        return selected, mines

    def _consume(self, number: int, alternative: Alternative, selected: int, place: str) -> tuple[int, int]:
        """Calculate what each device would consume; drop those that the request's amounts exclude."""
        mines = 0
        for row in self.rows:
            for position in _bits(selected >> row.first & ((1 << row.count) - 1)):
                device = row.view.devices[position]
                if not device.capacity and not alternative.capacity:
                    continue
                key = row.first + position
                try:
                    amounts = consumed_capacity(alternative.capacity, device.capacity, self.fractional)
                except (CapacityError, QuantityError) as error:
                    mines |= 1 << key
                    selected &= ~(1 << key)
                    name = f"{row.view.driver}/{row.view.pool[1]}/{device.name}"
                    if alternative.all_devices:
                        name = device.name
                    self.mine_texts[number, key] = f"{place}: checking capacity for device {name}: {error}"
                    continue
                if amounts is None:
                    selected &= ~(1 << key)
                    continue
                self.consumed[number, key] = amounts
        return selected, mines

    def _select_all(self, number: int, alternative: Alternative) -> tuple[int, int]:
        """Return the devices of mode All; errors are raised in candidate order (upstream A4.5, A4.6)."""
        selected, mines = self._select(number, alternative, 0)
        rows = {id(row.pool): row for row in reversed(self.rows)}
        for pool in self.pools:
            if pool.incomplete or pool.invalid:
                self._raise_first(number, mines, rows, pool)
                state = "being updated" if pool.incomplete else "invalid"
                name = f"{pool.id[0]}/{pool.id[1]}"
                raise AllocationError(
                    FATAL, f"{alternative.place}: asks for all devices, but resource pool {name} is currently {state}"
                )
        if mines:
            raise AllocationError(FATAL, self.mine_texts[number, next(_bits(mines))])
        for device in _bits(selected):
            amounts = self.consumed.get((number, device))
            if amounts:
                row, position = self._locate(device)
                capacities = row.view.devices[position].capacity
                if any(amount > parse_quantity(capacities[name].value) for name, amount in amounts.items()):
                    selected &= ~(1 << device)
        return selected, 0

    def _raise_first(self, number: int, mines: int, rows: dict[int, Row], until: GatheredPool) -> None:
        """Raise the error of a device that comes before a pool."""
        before = 0
        for pool in self.pools:
            if pool is until:
                break
            for row in self.rows:
                if row.pool is pool:
                    before |= ((1 << row.count) - 1) << row.first
        if mines & before:
            raise AllocationError(FATAL, self.mine_texts[number, next(_bits(mines & before))])

    def _untolerated(self, alternative: Alternative, selected: int) -> int:
        if gates.DEVICE_TAINTS not in self.features:
            return 0
        refused = 0
        for row in self.rows:
            for position, taints in enumerate(row.view.taints):
                if any(not any(tolerates(t, taint) for t in alternative.tolerations) for taint in taints):
                    refused |= 1 << row.first + position
        return refused

    def _check_capacity(
        self, number: int, alternative: Alternative, selected: int, shares: dict[int, tuple[int, ...]]
    ) -> int:
        """Return the devices whose capacities are already used up for this request; fill in what shares consume."""
        refused = 0
        for device in _bits(selected):
            amounts = self.consumed.get((number, device))
            if amounts is None:
                if self.shareable >> device & 1:
                    shares[device] = ()
                continue
            row, position = self._locate(device)
            capacities = row.view.devices[position].capacity
            taken = self.aggregated.get(device, {})
            for name, capacity in capacities.items():
                if amounts[name].nano + taken.get(name, 0) > _nano(capacity.value):
                    refused |= 1 << device
            if self.shareable >> device & 1:
                shares[device] = tuple(amounts[name].nano for name in capacities)
        return refused

    def _locate(self, device: int) -> tuple[Row, int]:
        for row in self.rows:
            if device < row.first + row.count:
                return row, device - row.first
        raise IndexError(device)


def _nano(text: str) -> int:
    return parse_quantity(text).nano


def _bits(mask: int) -> Any:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _selector_error(place: str, row: Row, position: int, text: str) -> str:
    if text.startswith("CEL compile error"):
        return f"{place}: {text}"
    device = row.view.devices[position].name
    return f"{place} on device {row.view.driver}/{row.view.pool[1]}/{device}: {text}"


__all__ = ["Compiled", "Compiler", "ConstraintUse", "Row"]
