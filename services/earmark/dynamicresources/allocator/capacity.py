"""How much of a device's capacities a request consumes, and whether policy and size allow it (upstream A10)."""

from __future__ import annotations

from collections.abc import Mapping

from earmark.kube.objects import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from earmark.kube.quantity import Quantity, parse_quantity

_MAX_INT64 = 2**63 - 1


class CapacityError(Exception):
    """A request for capacity that upstream cannot calculate with; ends the scheduling attempt (upstream A10.7)."""


def consumed_capacity(
    requests: Mapping[str, Quantity], capacities: Mapping[str, DeviceCapacity], fractional: bool
) -> dict[str, Quantity] | None:
    """Return what a request consumes of each capacity; None if names or policies refuse the device.

    fractional: the gate for ranges in thousandths. Raises CapacityError. Whether it fits next to what is in use is
    not looked at.
    """
    if any(name not in capacities for name in requests):
        return None
    consumed = {}
    for name, capacity in capacities.items():
        amount = _consumed(requests.get(name), capacity, name, fractional)
        if amount.sign < 0:
            raise CapacityError(f'capacity "{name}": capacity value is negative')
        consumed[name] = amount
    for name, capacity in capacities.items():
        policy = capacity.request_policy
        if policy is not None and _violates(consumed[name], policy, fractional):
            return None
    return consumed


def _consumed(requested: Quantity | None, capacity: DeviceCapacity, name: str, fractional: bool) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        if policy is not None and policy.default is not None:
            return parse_quantity(policy.default)
        return parse_quantity(capacity.value)
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _round_up(requested, policy.valid_range, name, fractional)
    for text in policy.valid_values:
        value = parse_quantity(text)
        if requested <= value:
            return value
    return requested


def _round_up(requested: Quantity, valid: CapacityRequestPolicyRange, name: str, fractional: bool) -> Quantity:
    assert valid.min is not None
    least = parse_quantity(valid.min)
    if requested < least:
        return least
    if valid.step is None:
        return requested
    step = parse_quantity(valid.step)
    if _in_milli(valid, fractional):
        amount = _milli(requested)
        if amount is None:
            raise _not_representable(name, f"request {requested} is not a representable milli value")
        base, unit = least.milli_value(), step.milli_value()
        steps = _steps(amount - base, unit)
        if steps > _quotient(_MAX_INT64 - base, unit):
            text = f"rounding request {requested} up to the next step passes the milli-value range"
            raise _not_representable(name, text)
        total = base + unit * steps
        return Quantity.of_milli(total, step.format) if total % 1000 else Quantity.of(total // 1000, step.format)
    if requested.nano > _MAX_INT64 * 10**9:
        raise _not_representable(name, f"request {requested} exceeds MaxInt64")
    amount, base, unit = requested.value(), least.value(), step.value()
    if unit == 0:
        raise _not_representable(name, f"step {step} is zero")
    steps = _steps(amount - base, unit)
    if base >= 0 and steps > _quotient(_MAX_INT64 - base, unit):
        raise _not_representable(name, f"rounding request {requested} up to the next step passes MaxInt64")
    return Quantity.of(_wrapped(base + unit * steps), step.format)


def _not_representable(name: str, detail: str) -> CapacityError:
    text = "capacity request cannot be represented in the device's range arithmetic"
    return CapacityError(f'capacity "{name}": {text}: {detail}')


def _quotient(value: int, divisor: int) -> int:
    """Division that rounds towards zero, as Go's."""
    quotient = abs(value) // abs(divisor)
    return quotient if (value < 0) == (divisor < 0) else -quotient


def _steps(distance: int, unit: int) -> int:
    steps = _quotient(distance, unit)
    return steps + 1 if distance - steps * unit else steps


def _wrapped(value: int) -> int:
    """The low 64 bits as a signed number, as Go adds."""
    return (value + 2**63) % 2**64 - 2**63


def _milli(quantity: Quantity) -> int | None:
    """The value in thousandths if it is a whole number of them that fits 64 bits."""
    milli = quantity.milli_value()
    return milli if milli * 10**6 == quantity.nano else None


def _in_milli(valid: CapacityRequestPolicyRange, fractional: bool) -> bool:
    if not fractional:
        return False
    if any(_milli(parse_quantity(text)) is None for text in (valid.min, valid.max, valid.step) if text is not None):
        return False
    return valid.step is None or parse_quantity(valid.step).milli_value() >= 1


def _violates(amount: Quantity, policy: CapacityRequestPolicy, fractional: bool) -> bool:
    # Upstream compares with the default as Go structs, so equal values in another notation are checked further.
    if policy.default is not None and amount.same_struct(parse_quantity(policy.default)):
        return False
    if policy.valid_range is not None:
        return _violates_range(amount, policy.valid_range, fractional)
    if policy.valid_values:
        return all(amount != parse_quantity(text) for text in policy.valid_values)
    return False


def _violates_range(amount: Quantity, valid: CapacityRequestPolicyRange, fractional: bool) -> bool:
    if valid.max is not None and amount > parse_quantity(valid.max):
        return True
    if valid.step is None:
        return False
    step = parse_quantity(valid.step)
    least = parse_quantity(valid.min) if valid.min is not None else Quantity.of(0)
    if _in_milli(valid, fractional):
        value = _milli(amount)
        if value is None:
            return True
        unit = step.milli_value()
        return unit == 0 or (value - least.milli_value()) % unit != 0
    unit = step.value()
    return unit == 0 or (amount.value() - least.value()) % unit != 0
