"""What calls cost at run time, counted as cel-go and the Kubernetes libraries count (upstream A5.12).

A cost is a constant or a function of the arguments and the result. Everything that is not listed costs 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from earmark.cel.errors import EvaluationAborted
from earmark.cel.limits import Budget
from earmark.cel.values import Failure, ListBuilder, MapValue, OpaqueValue, QuantityValue, size_of

Cost = int | Callable[[tuple[Any, ...], Any], int]

SELECT: Final = 1
LIST: Final = 10
MAP: Final = 30
STRUCT: Final = 40
_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25


def call_cost(function: str, overload: str) -> Cost:
    """The cost of a call.

    Args:
        function: the name.
        overload: the id of the only overload that the checker left, "" if there are several.
    """
    for table, key in ((_BY_OVERLOAD_FIRST, overload), (_BY_FUNCTION, function), (_BY_OVERLOAD, overload)):
        found = table.get(key)
        if found is not None:
            return found
    return 1


def equality(left: Any, right: Any) -> int:
    """The cost of == and !=: the smaller size; the values of the Kubernetes libraries cost 1 on the left of ==."""
    return math.ceil(min(size_of(left), size_of(right)) * _TRAVERSAL)


def is_plain(value: Any) -> bool:
    """Whether == counts the size of a value (it does not for the values of the Kubernetes libraries)."""
    return not (value.__class__ is QuantityValue or isinstance(value, OpaqueValue))


def _scan(size: float) -> int:
    return math.ceil(size * _TRAVERSAL)


def _first(args: tuple[Any, ...], _: Any) -> int:
    return _scan(_kube_size(args[0]))


def _first_twice(args: tuple[Any, ...], _: Any) -> int:
    return math.ceil(float(_kube_size(args[0])) * 2 * _TRAVERSAL)


def _result_twice(_: tuple[Any, ...], result: Any) -> int:
    return math.ceil(float(_kube_size(result)) * 2 * _TRAVERSAL)


def _kube_size(value: Any) -> int:
    """The Kubernetes libraries do not look into optionals."""
    return 1 if value.__class__.__name__ == "OptionalValue" else size_of(value)


def _find(args: tuple[Any, ...], _: Any) -> int:
    return math.ceil((1.0 + _kube_size(args[0])) * _TRAVERSAL) * math.ceil(_kube_size(args[1]) * _REGEX)


def _matches(args: tuple[Any, ...], _: Any) -> int:
    return math.ceil((1.0 + size_of(args[0])) * _TRAVERSAL) * math.ceil(size_of(args[1]) * _REGEX)


def _contains(args: tuple[Any, ...], _: Any) -> int:
    return _scan(size_of(args[0])) * _scan(size_of(args[1]))


def _second(args: tuple[Any, ...], _: Any) -> int:
    return _scan(size_of(args[1]))


def _plain_first(args: tuple[Any, ...], _: Any) -> int:
    return _scan(size_of(args[0]))


def _both(args: tuple[Any, ...], _: Any) -> int:
    return _scan(size_of(args[0]) + size_of(args[1]))


def _smaller(args: tuple[Any, ...], _: Any) -> int:
    return _scan(min(size_of(args[0]), size_of(args[1])))


def _in_list(args: tuple[Any, ...], _: Any) -> int:
    return size_of(args[1])


def _traversal(args: tuple[Any, ...], _: Any) -> int:
    return traversal(args[0], Budget()) if args else 0


def traversal(value: Any, budget: Budget) -> int:
    """What going through a value costs: elements 1 each, strings and bytes by their bytes."""
    budget.spend(1)
    kind = value.__class__
    if kind is str:
        return int(len(value.encode("utf-8", "surrogatepass")) * _TRAVERSAL)
    if kind is bytes:
        return int(len(value) * _TRAVERSAL)
    if kind is tuple or kind is ListBuilder:
        return sum(traversal(one, budget) for one in value)
    if isinstance(value, MapValue):
        return sum(traversal(key, budget) + traversal(value.find(key), budget) for key in value)
    return 1


def _contains_ip(with_text: bool) -> Cost:
    def cost(args: tuple[Any, ...], _: Any) -> int:
        base = math.ceil(float(2 * size_of(args[0])) * _TRAVERSAL)
        return base + (_scan(size_of(args[1])) if with_text else 0)

    return cost


def _contains_cidr(with_text: bool) -> Cost:
    def cost(args: tuple[Any, ...], _: Any) -> int:
        size = size_of(args[0])
        base = math.ceil(float(2 * size) * _TRAVERSAL) + _scan(size) + 1
        return base + (_scan(size_of(args[1])) if with_text else 0)

    return cost


def _validate(args: tuple[Any, ...], _: Any) -> int:
    regex: int | None = getattr(args[0], "regex_size", None)
    if regex is None:
        return 1
    return math.ceil((1.0 + _kube_size(args[1])) * _TRAVERSAL) * math.ceil(regex * _REGEX)


def _new_list(_: tuple[Any, ...], result: Any) -> int:
    return size_of(result) + 1 + LIST


def _flatten(args: tuple[Any, ...], _: Any) -> int:
    depth: Any = 1
    if len(args) == 2:
        depth = args[1]
        if depth.__class__ is Failure:
            raise EvaluationAborted("internal error: interface conversion: ref.Val is *types.Err, not types.Int")
    factor = float(depth) if depth >= 0 else 1.0
    return int(size_of(args[0]) * factor) + 1 + LIST


def _self_compare(index: int) -> Cost:
    def cost(args: tuple[Any, ...], _: Any) -> int:
        elements = args[index]
        if elements.__class__ is Failure:
            raise EvaluationAborted(
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            )
        size = len(elements)
        factor = 2.0 + (_TRAVERSAL if size and elements[0].__class__ in (str, bytes) else 0.0)
        return int(float(size * size) * factor) + 1 + LIST

    return cost


def _sets(factor: float) -> Cost:
    def cost(args: tuple[Any, ...], _: Any) -> int:
        return 1 + int(float(size_of(args[0]) * size_of(args[1])) * factor)

    return cost


_ELEMENTS: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)

_BY_OVERLOAD_FIRST: Final[dict[str, Cost]] = {
    "string_to_ip": _first,
    "cidr_contains_ip_string": _contains_ip(with_text=True),
    "cidr_contains_cidr_string": _contains_cidr(with_text=True),
    "list_slice": _new_list,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "lists_range": _new_list,
    "list_reverse": _new_list,
    "list_distinct": _self_compare(0),
    **{f"list_{one}_sort": _self_compare(0) for one in _ELEMENTS},
    **{f"list_{one}_sortByAssociatedKeys": _self_compare(1) for one in _ELEMENTS},
    "list_sets_contains_list": _sets(1.0),
    "list_sets_intersects_list": _sets(1.0),
    "list_sets_equivalent_list": _sets(2.0),
}

_BY_FUNCTION: Final[dict[str, Cost]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": _result_twice,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "validate": _validate,
    "containsIP": _contains_ip(with_text=False),
    "containsCIDR": _contains_cidr(with_text=False),
}

_BY_OVERLOAD: Final[dict[str, Cost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _second),
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _plain_first),
    "in_list": _in_list,
    **{
        f"{order}_{kind}": _smaller
        for order in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    **dict.fromkeys(("add_string", "add_bytes"), _both),
    **dict.fromkeys(("matches", "matches_string"), _matches),
    "contains_string": _contains,
}
