"""Makes the skeleton of a node: selectors, amounts, taints and constraints over its devices (upstream A3 to A10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.attributes import AttributeColumns
from earmark.dynamicresources.allocator.capacity import CapacityError, consumed_capacity
from earmark.dynamicresources.allocator.counting import consumption
from earmark.dynamicresources.allocator.errors import FATAL, NODE, AllocationError
from earmark.dynamicresources.allocator.nodes import NodeFacts, node_matches
from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.allocator.requests import MAX_RESULTS, Alternative, Claim
from earmark.dynamicresources.allocator.rows import Numbering, bits
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.allocator.skeleton import DeviceError, Skeleton, StaticChoice, StaticWish
from earmark.kube.objects import Device, DeviceCapacity, DeviceTaint, DeviceToleration
from earmark.kube.quantity import Quantity, QuantityError, parse_quantity
from earmark.kube.selectors import tolerates

_NODE_OPERATIONS = "DRAOptionalNodeOperations"


class _DeviceFault(Exception):
    def __init__(self, error: DeviceError, device: int) -> None:
        super().__init__()
        self.error = error
        self.device = device


def make_skeleton(claims: tuple[Claim, ...], features: frozenset[str], variant: str, judge: Judge,
                  node: NodeFacts, pools: Sequence[GatheredPool], numbering: Numbering) -> Skeleton:  # fmt: skip
    """Return the skeleton; errors of claims are kept in it."""
    builder = _Builder(features, variant, judge, node, pools, numbering)
    try:
        builder.read_devices()
        builder.read_claims(claims)
    except AllocationError as error:
        builder.skeleton.error = error
    except _DeviceFault as fault:
        builder.skeleton.device_error = fault.error, fault.device
    return builder.skeleton


class _Builder:
    def __init__(self, features: frozenset[str], variant: str, judge: Judge, node: NodeFacts,
                 pools: Sequence[GatheredPool], numbering: Numbering) -> None:  # fmt: skip
        self.features = features
        self.variant = variant
        self.judge = judge
        self.node = node
        self.pools = pools
        self.numbering = numbering
        self.skeleton = Skeleton(numbering.total, numbering.firsts, any(pool.invalid for pool in pools))
        self.consumable = gates.CONSUMABLE_CAPACITY in features
        self.fractional = gates.FRACTIONAL_CAPACITY_RANGE in features
        self.refused = 0
        self.unselectable = 0
        self.off_node = 0
        self.alternatives = 0
        self.capacity_numbers: dict[str, int] = {}
        self.answers: dict[str, dict[int, bool | str]] = {}
        self.unasked: dict[int, dict[str, Quantity] | None] = {}

    # --- devices -----------------------------------------------------------------------------------------------------

    def read_devices(self) -> None:
        skeleton, features = self.skeleton, self.features
        binding = gates.DEVICE_BINDING_AND_STATUS in features
        partitionable = gates.PARTITIONABLE_DEVICES in features
        for row in self.numbering.rows:
            view = row.view
            pool = self.numbering.pools[row.pool]
            if self._skips_refused(view.slice.spec.skip_node_operations):
                self.refused |= ((1 << row.count) - 1) << row.first
            for position, device in enumerate(view.devices):
                number = row.first + position
                bit = 1 << number
                _, _, selector = view.node_fields(device)
                if selector is not None and len(selector.node_selector_terms) > 1:
                    skeleton.many_terms |= bit
                if device.binding_conditions and not binding:
                    self.unselectable |= bit
                if view.per_device and not node_matches(
                    self.node, device.node_name, bool(device.all_nodes), device.node_selector,
                    f"device {device.name} in slice {view.name}",
                ):  # fmt: skip
                    self.off_node |= bit
                if device.consumes_counters:
                    if partitionable:
                        skeleton.consumption[number] = (row.pool, *consumption(pool, device))
                    else:
                        self.refused |= bit
                if self.consumable and (device.capacity or device.allow_multiple_allocations):
                    self._read_capacity(number, device, view.name)

    def _read_capacity(self, number: int, device: Device, slice_name: str) -> None:
        skeleton = self.skeleton
        try:
            amounts = {name: parse_quantity(capacity.value).nano for name, capacity in device.capacity.items()}
        except QuantityError as error:
            raise AllocationError(FATAL, f"slice {slice_name}, device {device.name}: capacity: {error}") from error
        skeleton.capacities[number] = amounts
        if device.allow_multiple_allocations:
            skeleton.shareable |= 1 << number
            skeleton.room[number] = tuple(amounts.values())
            skeleton.room_names[number] = tuple(amounts)
            numbers = self.capacity_numbers
            skeleton.room_numbers[number] = tuple(numbers.setdefault(name, len(numbers)) for name in amounts)

    def _skips_refused(self, operations: tuple[str, ...]) -> bool:
        """Whether the slice wants operations skipped that the node cannot skip (upstream A4.14, A0.5)."""
        if not operations or self.variant != gates.EXPERIMENTAL:
            return False
        return (
            gates.OPTIONAL_NODE_OPERATIONS not in self.features or _NODE_OPERATIONS not in self.node.declared_features
        )

    # --- requests ----------------------------------------------------------------------------------------------------

    def read_claims(self, claims: tuple[Claim, ...]) -> None:
        skeleton = self.skeleton
        for number, claim in enumerate(claims):
            columns = [
                AttributeColumns(constraint, self.features, self.judge, self.numbering)
                for constraint in claim.constraints
            ]
            needed = 0
            for request in claim.requests:
                choices = tuple(self._choice(alternative, columns) for alternative in request.alternatives)
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
                skeleton.wishes.append(StaticWish(number, choices, request.prioritized))
            if claim.error is not None:
                raise claim.error.again()
            skeleton.slots.append(len(columns))
            skeleton.starts.append(tuple(-1 if column.match else 0 for column in columns))
        asked = [choice.alternative for wish in skeleton.wishes for choice in wish.choices]
        if gates.LATER_FIXES in self.features and all(alternative.admin for alternative in asked):
            # Looking at a device takes nothing of what its partitions share.
            skeleton.consumption = {}

    def _choice(self, alternative: Alternative, columns: list[AttributeColumns]) -> StaticChoice:
        number = self.alternatives
        self.alternatives += 1
        selected, mines, consumed = self._select(number, alternative)
        if alternative.all_devices:
            self._check_all(number, alternative, mines)
            for device, amounts in consumed.items():
                capacities = self.skeleton.capacities[device]
                if any(amount.nano > capacities[name] for name, amount in amounts.items()):
                    selected &= ~(1 << device)
            mines = 0
        uses = tuple(columns[position].use(position, alternative, selected) for position in alternative.constraints)
        for use in uses:
            for device in bits(use.mines):
                name = columns[use.slot].name
                text = columns[use.slot].errors[alternative.derived[name], device]
                error = _derive_error(name, text)
                self.skeleton.derive_errors[number, use.slot, device] = error
        skeleton = self.skeleton
        listed = tuple(bits(selected)) if alternative.all_devices else None
        refused = self.refused | self._tainted(alternative.tolerations)
        nanos = {
            device: tuple((name, wanted[name].nano) for name in skeleton.capacities[device])
            for device, wanted in consumed.items()
        }
        late = 0
        for device, pairs in nanos.items():
            if any(amount > skeleton.capacities[device][name] for name, amount in pairs):
                late |= 1 << device
        mask = selected & ~refused & ~late
        for use in uses:
            mask &= ~(use.missing & ~use.mines)
        return StaticChoice(
            number=number,
            alternative=alternative,
            num=alternative.count if listed is None else len(listed),
            selected=selected,
            mines=mines,
            refused=refused,
            listed=listed,
            uses=uses,
            consumed=consumed,
            amounts=nanos,
            shares={
                device: tuple(amount for _, amount in nanos.get(device, ()))
                for device in bits(selected & skeleton.shareable)
            },
            late=late,
            mask=mask,
        )

    def _consumed(
        self, device: int, wanted: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity]
    ) -> dict[str, Quantity] | None:
        """What a request takes of a device; requests that name no capacity all take the same."""
        if wanted:
            return consumed_capacity(wanted, capacities, self.fractional)
        if device not in self.unasked:
            self.unasked[device] = consumed_capacity(wanted, capacities, self.fractional)
        return self.unasked[device]

    def _select(self, number: int, alternative: Alternative) -> tuple[int, int, dict[int, dict[str, Quantity]]]:
        """Return the devices that can be selected, those whose selection is an error, and amounts (A5, A10)."""
        selected = ((1 << self.skeleton.total) - 1) & ~self.unselectable
        mines = 0
        for expression, place in alternative.expressions:
            passed = 0
            known = self.answers.setdefault(expression, {})
            for row in self.numbering.rows:
                for position in bits(selected >> row.first & ((1 << row.count) - 1)):
                    device = row.first + position
                    answer = known.get(device)
                    if answer is None:
                        answer = known[device] = self.judge.evaluate(expression, row.view, position)
                    if answer is True:
                        passed |= 1 << device
                    elif answer is not False:
                        mines |= 1 << device
                        self.skeleton.mine_errors[number, device] = _selector_error(place, answer)
            selected = passed
        selected &= ~self.off_node
        consumed: dict[int, dict[str, Quantity]] = {}
        if not self.consumable:
            return selected, mines, consumed
        for row in self.numbering.rows:
            for position in bits(selected >> row.first & ((1 << row.count) - 1)):
                capacities = row.view.devices[position].capacity
                if not capacities and not alternative.capacity:
                    continue
                device = row.first + position
                try:
                    amounts = self._consumed(device, alternative.capacity, capacities)
                except (CapacityError, QuantityError) as error:
                    mines |= 1 << device
                    selected &= ~(1 << device)
                    self.skeleton.mine_errors[number, device] = DeviceError(
                        f"{alternative.place}: checking capacity for device ", f": {error}", alternative.all_devices
                    )
                    continue
                if amounts is None:
                    selected &= ~(1 << device)
                else:
                    consumed[device] = amounts
        return selected, mines, consumed

    def _check_all(self, number: int, alternative: Alternative, mines: int) -> None:
        """Mode All stops at the first pool or device with an error, in candidate order (upstream A4.5)."""
        before = 0
        firsts = iter(self.numbering.firsts)
        for pool in self.pools:
            if pool.incomplete or pool.invalid:
                self._raise_first(number, mines & before)
                state = "being updated" if pool.incomplete else "invalid"
                text = f"asks for all devices, but resource pool {pool.id[0]}/{pool.id[1]} is currently {state}"
                kind = NODE if gates.LATER_FIXES in self.features else FATAL
                raise AllocationError(kind, f"{alternative.place}: {text}")
            before |= ((1 << pool.count) - 1) << next(firsts)
        self._raise_first(number, mines)

    def _raise_first(self, number: int, mines: int) -> None:
        for device in bits(mines):
            raise _DeviceFault(self.skeleton.mine_errors[number, device], device)

    def _tainted(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        refused = 0
        if gates.DEVICE_TAINTS in self.features:
            for row in self.numbering.rows:
                if row.view.tainted:
                    for position, taints in enumerate(row.view.taints):
                        if taints and not all(_tolerated(taint, tolerations) for taint in taints):
                            refused |= 1 << row.first + position
        return refused


def _tolerated(taint: DeviceTaint, tolerations: tuple[DeviceToleration, ...]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def _selector_error(place: str, text: str) -> DeviceError:
    # Text of the form "CEL compile error: ..." concerns no device; the others come after the device's name.
    if text.startswith("CEL compile error"):
        return WholeError(f"{place}: {text}", "")
    return DeviceError(f"{place} on device ", f": {text}")


def _derive_error(name: str, text: str) -> DeviceError:
    if text.startswith("compile: "):
        return WholeError(f"compile derived attribute {name} failed: {text.removeprefix('compile: ')}", "")
    return DeviceError(f"evaluate derived attribute {name} on device ", f" failed: {text}")


class WholeError(DeviceError):
    """An error that a device brings up without being named in it."""

    def raised(self, numbering: Numbering, device: int) -> AllocationError:
        """Return the error."""
        return AllocationError(FATAL, self.before)
