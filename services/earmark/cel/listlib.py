"""Lists (extension version 3 and Kubernetes' own), sets, optionals and what the two-variable macros need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from typing import Any, Final

from earmark.cel.declarations import Library
from earmark.cel.limits import Budget, element_bound
from earmark.cel.macros import MAP_INSERT
from earmark.cel.stdlib import add, contained, unsupported
from earmark.cel.values import (
    ABSENT,
    COMPARABLE,
    MISSING,
    NO_OVERLOAD,
    Duration,
    Failure,
    ListBuilder,
    MapBuilder,
    MapValue,
    OptionalValue,
    Timestamp,
    Uint,
    compare,
    equal_to,
    map_key,
    shown,
    type_name,
)

_SUMMABLE: Final[tuple[tuple[str, Any], ...]] = (
    ("int", 0),
    ("uint", Uint(0)),
    ("double", 0.0),
    ("duration", Duration(0)),
)
_ORDERED: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_RUNTIME: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _is_list(value: Any) -> bool:
    return value.__class__ is tuple or value.__class__ is ListBuilder


# --- Kubernetes' lists -----------------------------------------------------------------------------------------------


def _is_sorted(elements: Any) -> Any:
    before = MISSING
    for one in elements:
        if one.__class__ not in COMPARABLE:
            return NO_OVERLOAD
        if before is not MISSING and compare(before, one) == 1:
            return False
        before = one
    return True


def _sum(start: Any) -> Callable[[Any], Any]:
    def function(elements: Any) -> Any:
        total = start
        for one in elements:
            total = add(total, one)
            if total.__class__ is Failure:
                return total
        return total

    return function


def _extreme(name: str, replaced: int) -> Callable[[Any], Any]:
    """min or max: a later element replaces the best one if comparing with it gives `replaced`."""

    def function(elements: Any) -> Any:
        best = MISSING
        for one in elements:
            if one.__class__ not in COMPARABLE:
                return NO_OVERLOAD
            if best is MISSING or compare(best, one) == replaced:
                best = one
        return Failure(f"{name} called on empty list") if best is MISSING else best

    return function


def _index_of(elements: Any, value: Any) -> Any:
    return next((index for index, one in enumerate(elements) if equal_to(one, value) is True), -1)


def _last_index_of(elements: Any, value: Any) -> Any:
    for index in range(len(elements) - 1, -1, -1):
        if equal_to(elements[index], value) is True:
            return index
    return -1


def _includes(target: Any, value: Any) -> Any:
    if _is_list(target):
        return any(equal_to(one, value) is True for one in target)
    return equal_to(target, value) is True


# --- the lists extension ---------------------------------------------------------------------------------------------


def _range(size: int) -> Any:
    if size < 0:
        return Failure(f"lists.range: size must be non-negative, got {size}")
    element_bound(size)
    return tuple(range(size))


def _slice(elements: Any, start: int, end: int) -> Any:
    if start < 0 or end < 0:
        return Failure(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Failure(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(elements) < end:
        return Failure(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return tuple(elements[start:end])


def _flatten(elements: Any, depth: int = 1) -> Any:
    if depth < 0:
        return Failure("level must be non-negative")
    flat: list[Any] = []
    budget = Budget()
    # An explicit stack: lists may be nested as deep as expressions.
    stack: list[tuple[Iterator[Any], int]] = [(iter(elements), depth)]
    while stack:
        iterator, left = stack[-1]
        one: Any = next(iterator, MISSING)
        if one is MISSING:
            stack.pop()
        elif left > 0 and _is_list(one):
            stack.append((iter(one), left - 1))
        else:
            flat.append(one)
        budget.spend(1)
    return tuple(flat)


def _sort(elements: Any) -> Any:
    return _sorted(elements, elements) if _is_list(elements) else unsupported("sort", elements)


def _sort_by(elements: Any, keys: Any) -> Any:
    return _sorted(elements, keys) if _is_list(elements) else unsupported("@sortByAssociatedKeys", elements)


def _sorted(elements: Any, keys: Any) -> Any:
    if len(elements) != len(keys):
        return Failure(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(elements)} and {len(keys)} elements respectively"
        )
    if not elements:
        return elements
    # Sorting costs the square of the size; the order of the checks does not matter to who is over the limit.
    element_bound(2 * len(keys) ** 2)
    if keys[0].__class__ not in COMPARABLE:
        return Failure("list elements must be comparable")
    name = type_name(keys[0])
    if len(keys) > 1 and any(type_name(key) != name for key in keys):
        return Failure("list elements must have the same type")
    order = sorted(range(len(keys)), key=cmp_to_key(lambda one, other: _order(keys[one], keys[other])))
    return tuple(elements[index] for index in order)


def _order(one: Any, other: Any) -> int:
    order = compare(one, other)
    return order if order.__class__ is int else 0


def _distinct(elements: Any) -> Any:
    element_bound(2 * len(elements) ** 2)
    unique: list[Any] = []
    for index, one in enumerate(elements):
        # Upstream does not compare an element with the unique one of the same index.
        if not any(index != at and equal_to(one, other) is True for at, other in enumerate(unique)):
            unique.append(one)
    return tuple(unique)


# --- sets ------------------------------------------------------------------------------------------------------------


def _contains_all(elements: Any, others: Any) -> Any:
    element_bound(len(elements) * len(others))
    return all(contained(one, elements) is True for one in others)


def _intersects(elements: Any, others: Any) -> Any:
    element_bound(len(elements) * len(others))
    return any(contained(one, others) is True for one in elements)


def _equivalent(elements: Any, others: Any) -> Any:
    return _contains_all(elements, others) and _contains_all(others, elements)


# --- optionals -------------------------------------------------------------------------------------------------------


def _is_zero(value: Any) -> bool:
    kind = value.__class__
    if value is None:
        return True
    if kind is Duration:
        return bool(value.nanos == 0)
    if kind is Timestamp:
        # Go's zero time is year 1.
        return bool(value.nanos == -62135596800 * 1_000_000_000)
    if kind in (bool, int, Uint, float, str, bytes):
        return not value
    return (_is_list(value) or isinstance(value, MapValue)) and len(value) == 0


def _value(optional: OptionalValue) -> Any:
    return optional.value[0] if optional.value else Failure("optional.none() dereference")


def _unwrap(elements: Any) -> Any:
    values: list[Any] = []
    for one in elements:
        if one.__class__ is not OptionalValue:
            return Failure(f"value {shown(one)} is not optional")
        values.extend(one.value)
    return tuple(values)


# --- two-variable macros ---------------------------------------------------------------------------------------------


def _insert(target: MapValue, key: Any, value: Any) -> Any:
    if target.find(key) is not MISSING:
        return Failure(f"insert failed: key {shown(key)} already exists")
    if target.__class__ is MapBuilder:
        target.entries[map_key(key)] = value
        return target
    return MapValue({**target.entries, map_key(key): value})


def _insert_all(target: MapValue, update: MapValue) -> Any:
    result: Any = target
    for key in update:
        result = _insert(result, key, update.find(key))
        if result.__class__ is Failure:
            return result
    return result


def declare(library: Library) -> None:
    """Add all of them."""

    def member(name: str, identifier: str, signature: str, implementation: Any, sequential: bool = False) -> None:
        library.add(name, identifier, signature, implementation, member=True, sequential=sequential)

    for kind in _ORDERED:
        member("isSorted", f"list_{kind}_is_sorted_bool", f"list<{kind}> -> bool", _is_sorted)
        member("max", f"list_{kind}_max_{kind}", f"list<{kind}> -> {kind}", _extreme("max", -1))
        member("min", f"list_{kind}_min_{kind}", f"list<{kind}> -> {kind}", _extreme("min", 1))
    for kind, zero in _SUMMABLE:
        member("sum", f"list_{kind}_sum_{kind}", f"list<{kind}> -> {kind}", _sum(zero))
    member("indexOf", "list_a_index_of_int", "list<A>, A -> int", _index_of)
    member("lastIndexOf", "list_a_last_index_of_int", "list<A>, A -> int", _last_index_of)
    member("includes", "list_includes_dyn_dyn", "dyn, dyn -> bool", _includes)

    member("slice", "list_slice", "list<T>, int, int -> list<T>", _slice, True)
    member("flatten", "list_flatten", "list<list<T>> -> list<T>", _flatten)
    member("flatten", "list_flatten_int", "list<dyn>, int -> list<dyn>", _flatten)
    for kind in _ORDERED:
        name = _RUNTIME.get(kind, kind)
        member("sort", f"list_{name}_sort", f"list<{kind}> -> list<{kind}>", None)
        member("@sortByAssociatedKeys", f"list_{name}_sortByAssociatedKeys", f"list<T>, list<{kind}> -> list<T>", None)
    library.functions["sort"].singleton = _sort
    library.functions["@sortByAssociatedKeys"].singleton = _sort_by
    library.add("lists.range", "lists_range", "int -> list<int>", _range)
    member("reverse", "list_reverse", "list<T> -> list<T>", lambda elements: tuple(reversed(elements)))
    member("distinct", "list_distinct", "list<T> -> list<T>", _distinct)
    member("first", "list_first", "list<V> -> optional<V>", lambda one: OptionalValue(one[0]) if one else ABSENT)
    member("last", "list_last", "list<V> -> optional<V>", lambda one: OptionalValue(one[-1]) if one else ABSENT)

    library.add("sets.contains", "list_sets_contains_list", "list<T>, list<T> -> bool", _contains_all)
    library.add("sets.equivalent", "list_sets_equivalent_list", "list<T>, list<T> -> bool", _equivalent)
    library.add("sets.intersects", "list_sets_intersects_list", "list<T>, list<T> -> bool", _intersects)

    library.add("optional.of", "optional_of", "V -> optional<V>", OptionalValue)
    library.add(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        "V -> optional<V>",
        lambda value: ABSENT if _is_zero(value) else OptionalValue(value),
    )
    library.add("optional.none", "optional_none", "-> optional<V>", lambda: ABSENT)
    member("value", "optional_value", "optional<V> -> V", _value)
    member("hasValue", "optional_hasValue", "optional<V> -> bool", lambda optional: bool(optional.value))
    member("or", "optional_or_optional", "optional<V>, optional<V> -> optional<V>", None)
    member("orValue", "optional_orValue_value", "optional<V>, V -> V", None)
    library.add("optional.unwrap", "optional_unwrap", "list<optional<V>> -> list<V>", _unwrap)
    member("unwrapOpt", "optional_unwrapOpt", "list<optional<V>> -> list<V>", _unwrap)
    library.add("_[?_]", "list_optindex_optional_int", "list<V>, int -> optional<V>")
    library.add("_[?_]", "optional_list_optindex_optional_int", "optional<list<V>>, int -> optional<V>")
    library.add("_[?_]", "map_optindex_optional_value", "map<K,V>, K -> optional<V>")
    library.add("_[?_]", "optional_map_optindex_optional_value", "optional<map<K,V>>, K -> optional<V>")

    library.add(MAP_INSERT, "@mapInsert_map_key_value", "map<K,V>, K, V -> map<K,V>", _insert, sequential=True)
    library.add(MAP_INSERT, "@mapInsert_map_map", "map<K,V>, map<K,V> -> map<K,V>", _insert_all)
