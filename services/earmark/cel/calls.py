"""Steps that call functions: strict in their arguments, guarded by run-time types, counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from earmark.cel.cost import Cost, equality, is_plain
from earmark.cel.declarations import Function, Implementation, Overload, no_such_overload
from earmark.cel.frames import Frame, Run
from earmark.cel.semver import Semver
from earmark.cel.types import Type
from earmark.cel.values import Duration, Failure, QuantityValue, Timestamp, Uint, equal, fits

_CLASSES: Final[dict[str, type]] = {
    "bool": bool,
    "bytes": bytes,
    "double": float,
    "int": int,
    "string": str,
    "uint": Uint,
    "google.protobuf.Duration": Duration,
    "google.protobuf.Timestamp": Timestamp,
    "kubernetes.Quantity": QuantityValue,
    "kubernetes.Semver": Semver,
}


def _charged(frame: Frame, cost: Cost, args: tuple[Any, ...], result: Any) -> None:
    frame.cost += cost if cost.__class__ is int else cost(args, result)  # type: ignore[operator]
    if frame.cost > frame.limit:
        raise frame.exceeded()


def call(function: Function, single: Overload | None, args: list[Run], cost: Cost) -> Run:
    """A call.

    Args:
        single: the only overload that the checker left, None if the types at run time decide.
    """
    if function.singleton is not None:
        implementation = function.singleton
        if len(args) == 1:
            return _unary(implementation, args[0], cost)
        return _binary(implementation, args[0], args[1], cost)
    if single is None:
        return sequential_call(function.dispatch, args, cost)
    implementation = guarded(single)
    if single.sequential or len(args) > 2 or not args:
        return sequential_call(implementation, args, cost)
    return _unary(implementation, args[0], cost) if len(args) == 1 else _binary(implementation, args[0], args[1], cost)


def guarded(overload: Overload) -> Implementation:
    """The implementation of an overload behind a test of the run-time types."""
    implementation = overload.implementation
    assert implementation is not None, overload.id
    if overload.unguarded:
        return implementation
    tests = [_test(one) for one in overload.args]
    name = overload.function
    if len(tests) == 1:
        first = tests[0]

        def one(value: Any) -> Any:
            return implementation(value) if first(value) else no_such_overload(name, (value,))

        return one
    if len(tests) == 2:
        first, second = tests

        def two(left: Any, right: Any) -> Any:
            if first(left) and second(right):
                return implementation(left, right)
            return no_such_overload(name, (left, right))

        return two

    def many(*values: Any) -> Any:
        if all(test(value) for test, value in zip(tests, values, strict=True)):
            return implementation(*values)
        return no_such_overload(name, values)

    return many


def _test(declared: Type) -> Callable[[Any], bool]:
    cls = _CLASSES.get(declared.name) if declared.kind != "param" else None
    if cls is not None:
        return lambda value: value.__class__ is cls
    if declared.kind in ("dyn", "param"):
        return lambda value: True
    return lambda value: fits(value, declared)


def _unary(implementation: Implementation, operand: Run, cost: Cost) -> Run:
    if cost == 1:

        def simple(frame: Frame) -> Any:
            value = operand(frame)
            result = value if value.__class__ is Failure else implementation(value)
            frame.cost += 1
            if frame.cost > frame.limit:
                raise frame.exceeded()
            return result

        return simple

    def run(frame: Frame) -> Any:
        value = operand(frame)
        result = value if value.__class__ is Failure else implementation(value)
        _charged(frame, cost, (value,), result)
        return result

    return run


def _binary(implementation: Implementation, left: Run, right: Run, cost: Cost) -> Run:
    """Both sides are evaluated, also if the left one fails."""

    def run(frame: Frame) -> Any:
        one = left(frame)
        other = right(frame)
        if one.__class__ is Failure:
            result = one
        elif other.__class__ is Failure:
            result = other
        else:
            result = implementation(one, other)
        if cost == 1:
            frame.cost += 1
            if frame.cost > frame.limit:
                raise frame.exceeded()
        else:
            _charged(frame, cost, (one, other), result)
        return result

    return run


def sequential_call(implementation: Implementation, args: list[Run], cost: Cost) -> Run:
    """A call whose arguments are evaluated until one fails; the call is counted only if all were evaluated."""
    last = len(args) - 1

    def run(frame: Frame) -> Any:
        values: list[Any] = []
        for index, arg in enumerate(args):
            value = arg(frame)
            values.append(value)
            if value.__class__ is Failure:
                if index == last:
                    _charged(frame, cost, tuple(values), value)
                return value
        result = implementation(*values)
        _charged(frame, cost, tuple(values), result)
        return result

    return run


def equals(left: Run, right: Run, negated: bool = False) -> Run:
    """== and !=. The latter holds also where comparing is an error."""

    def run(frame: Frame) -> Any:
        one = left(frame)
        other = right(frame)
        result: Any
        if one.__class__ is Failure:
            result = one
        elif other.__class__ is Failure:
            result = other
        else:
            result = equal(one, other)
            if negated:
                result = result is not True
        frame.cost += equality(one, other) if negated or is_plain(one) else 1
        if frame.cost > frame.limit:
            raise frame.exceeded()
        return result

    return run
