"""The Kubernetes libraries with a type of their own that selectors use: quantities and semantic versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from earmark.cel.declarations import Library
from earmark.cel.semver import Semver, normalized_semver, parse_semver
from earmark.cel.values import MAX_INT, Failure, QuantityValue, compare_quantities
from earmark.kube.quantity import Format, Quantity, QuantityError


def _quantity(text: str) -> Any:
    try:
        return QuantityValue(Quantity.parse(text))
    except QuantityError as error:
        return Failure(str(error))


def _is_quantity(text: str) -> Any:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _as_integer(value: QuantityValue) -> Any:
    number = value.quantity.as_int64()
    return Failure("cannot convert value to integer") if number is None else number


def _arithmetic(operation: Callable[[Quantity, Quantity], Quantity]) -> Callable[[QuantityValue, Any], Any]:
    """add or sub; the result is a reference to a reference (see QuantityValue)."""

    def function(value: QuantityValue, other: Any) -> Any:
        operand = (
            other.quantity if other.__class__ is QuantityValue else Quantity.of(int(other), Format.DECIMAL_EXPONENT)
        )
        try:
            return QuantityValue(operation(value.quantity, operand), nested=True)
        except QuantityError as error:
            return Failure(str(error))

    return function


def _semver(text: str, normalize: bool = False) -> Any:
    try:
        return normalized_semver(text) if normalize else parse_semver(text)
    except ValueError as error:
        return Failure(str(error))


def _is_semver(text: str, normalize: bool = False) -> Any:
    return _semver(text, normalize).__class__ is Semver


def _part(index: int) -> Callable[[Semver], int]:
    def function(value: Semver) -> int:
        number: int = value.key[index]
        return number if number <= MAX_INT else number - 2**64

    return function


def declare(library: Library) -> None:
    """Add both."""

    def member(name: str, identifier: str, signature: str, implementation: Any) -> None:
        library.add(name, identifier, signature, implementation, member=True)

    library.add("quantity", "string_to_quantity", "string -> quantity", _quantity)
    library.add("isQuantity", "is_quantity_string", "string -> bool", _is_quantity)
    library.add("sign", "quantity_sign", "quantity -> int", lambda value: value.quantity.sign)
    member(
        "isGreaterThan",
        "quantity_is_greater_than",
        "quantity, quantity -> bool",
        lambda one, other: compare_quantities(one, other) == 1,
    )
    member(
        "isLessThan",
        "quantity_is_less_than",
        "quantity, quantity -> bool",
        lambda one, other: compare_quantities(one, other) == -1,
    )
    member("compareTo", "quantity_compare_to", "quantity, quantity -> int", compare_quantities)
    member(
        "asApproximateFloat",
        "quantity_get_float",
        "quantity -> double",
        lambda value: value.quantity.approximate_float(),
    )
    member("asInteger", "quantity_get_int", "quantity -> int", _as_integer)
    member("isInteger", "quantity_is_integer", "quantity -> bool", lambda value: value.quantity.as_int64() is not None)
    for name, operation in (("add", Quantity.add), ("sub", Quantity.sub)):
        member(name, f"quantity_{name}", "quantity, quantity -> quantity", _arithmetic(operation))
        member(name, f"quantity_{name}_int", "quantity, int -> quantity", _arithmetic(operation))

    library.add("semver", "string_to_semver", "string -> semver", _semver)
    library.add("semver", "string_bool_to_semver", "string, bool -> semver", _semver)
    library.add("isSemver", "is_semver_string", "string -> bool", _is_semver)
    library.add("isSemver", "is_semver_string_bool", "string, bool -> bool", _is_semver)
    member("isGreaterThan", "semver_is_greater_than", "semver, semver -> bool", lambda a, b: a.compare(b) == 1)
    member("isLessThan", "semver_is_less_than", "semver, semver -> bool", lambda a, b: a.compare(b) == -1)
    member("compareTo", "semver_compare_to", "semver, semver -> int", Semver.compare)
    for index, name in enumerate(("major", "minor", "patch")):
        member(name, f"semver_{name}", "semver -> int", _part(index))
