"""The standard library: operators, conversions, sizes, string tests and the parts of timestamps and durations."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from earmark.cel.declarations import Library
from earmark.cel.limits import element_bound, text_bound
from earmark.cel.regex import compile_pattern
from earmark.cel.temporal import (
    DURATION_OVERFLOW,
    MAX_UNIX,
    MIN_UNIX,
    TIMESTAMP_OVERFLOW,
    checked_duration,
    checked_timestamp,
    duration_text,
    in_zone,
    parse_duration,
    parse_timestamp,
    seconds_of,
    timestamp_text,
    years_left_out,
)
from earmark.cel.text import go_g, parse_float, parse_int
from earmark.cel.values import (
    COMPARABLE,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NO_OVERLOAD,
    Duration,
    Failure,
    ListBuilder,
    MapValue,
    Timestamp,
    TypeValue,
    Uint,
    compare,
    equal,
    type_name,
)

_INT_OVERFLOW: Final = Failure("integer overflow")
_UINT_OVERFLOW: Final = Failure("unsigned integer overflow")
_DIVISION: Final = Failure("division by zero")
_MODULUS: Final = Failure("modulus by zero")
# Types that answer for themselves if an operator is not theirs, with a shorter text.
_RECEIVERS: Final = frozenset({str, Timestamp, Duration})


def unsupported(function: str, value: Any) -> Failure:
    """The error of an operator whose left operand does not know it."""
    return NO_OVERLOAD if value.__class__ in _RECEIVERS else Failure(f"no such overload: {function}")


def _otherwise(other: Any) -> Failure:
    return other if other.__class__ is Failure else NO_OVERLOAD


# --- arithmetic ------------------------------------------------------------------------------------------------------


def add(left: Any, right: Any) -> Any:
    """left + right."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        total = left + right
        return total if MIN_INT <= total <= MAX_INT else _INT_OVERFLOW
    if kind is other and (kind is str or kind is bytes):
        text_bound(len(left) + len(right))
        return left + right
    if kind is float and other is float:
        return left + right
    if kind is tuple:
        if other is not tuple and other is not ListBuilder:
            return _otherwise(right)
        element_bound(len(left) + len(right))
        return left + tuple(right)
    if kind is Uint:
        if other is not Uint:
            return _otherwise(right)
        total = int(left) + int(right)
        return Uint(total) if total <= MAX_UINT else _UINT_OVERFLOW
    if kind is ListBuilder:
        if other is not tuple and other is not ListBuilder:
            return _otherwise(right)
        element_bound(len(left) + len(right))
        left.extend(right)
        return left
    if kind is Duration:
        if other is Duration:
            return checked_duration(left.nanos + right.nanos)
        if other is Timestamp:
            return checked_timestamp(left.nanos + right.nanos, right.offset)
        return _otherwise(right)
    if kind is Timestamp:
        return checked_timestamp(left.nanos + right.nanos, left.offset) if other is Duration else _otherwise(right)
    if kind in (int, float, str, bytes):
        return _otherwise(right)
    return unsupported("_+_", left)


def subtract(left: Any, right: Any) -> Any:
    """left - right."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        total = left - right
        return total if MIN_INT <= total <= MAX_INT else _INT_OVERFLOW
    if kind is float and other is float:
        return left - right
    if kind is Uint and other is Uint:
        total = int(left) - int(right)
        return Uint(total) if total >= 0 else _UINT_OVERFLOW
    if kind is Duration and other is Duration:
        return checked_duration(left.nanos - right.nanos)
    if kind is Timestamp:
        if other is Duration:
            return checked_timestamp(left.nanos - right.nanos, left.offset)
        if other is Timestamp:
            return checked_duration(left.nanos - right.nanos)
    if kind in (int, float, Uint, Duration, Timestamp):
        return _otherwise(right)
    return unsupported("_-_", left)


def multiply(left: Any, right: Any) -> Any:
    """left * right."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        product = left * right
        return product if MIN_INT <= product <= MAX_INT else _INT_OVERFLOW
    if kind is float and other is float:
        return left * right
    if kind is Uint and other is Uint:
        product = int(left) * int(right)
        return Uint(product) if product <= MAX_UINT else _UINT_OVERFLOW
    return _otherwise(right) if kind in (int, float, Uint) else unsupported("_*_", left)


def divide(left: Any, right: Any) -> Any:
    """left / right; whole numbers are cut towards zero."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        if right == 0:
            return _DIVISION
        quotient = abs(left) // abs(right)
        quotient = quotient if (left < 0) == (right < 0) else -quotient
        return quotient if quotient <= MAX_INT else _INT_OVERFLOW
    if kind is float and other is float:
        if right == 0:
            if left == 0 or math.isnan(left):
                return math.nan
            return math.copysign(math.inf, left) * math.copysign(1.0, right)
        return left / right
    if kind is Uint and other is Uint:
        return Uint(int(left) // int(right)) if right else _DIVISION
    return _otherwise(right) if kind in (int, float, Uint) else unsupported("_/_", left)


def modulo(left: Any, right: Any) -> Any:
    """left % right, with the sign of the left."""
    kind, other = left.__class__, right.__class__
    if kind is int and other is int:
        if right == 0:
            return _MODULUS
        if right == -1 and left == MIN_INT:
            return _INT_OVERFLOW
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    if kind is Uint and other is Uint:
        return Uint(int(left) % int(right)) if right else _MODULUS
    return _otherwise(right) if kind in (int, Uint) else unsupported("_%_", left)


def negate(value: Any) -> Any:
    """-value."""
    kind = value.__class__
    if kind is int:
        return -value if value != MIN_INT else _INT_OVERFLOW
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(-value.nanos) if value.nanos != MIN_INT else DURATION_OVERFLOW
    return NO_OVERLOAD if kind is bool else unsupported("-_", value)


def negation(value: Any) -> Any:
    """!value."""
    return not value if value.__class__ is bool else _otherwise(value)


# --- order, membership -----------------------------------------------------------------------------------------------


def _ordering(function: str, holds: Callable[[int], bool]) -> Callable[[Any, Any], Any]:
    def operator(left: Any, right: Any) -> Any:
        if left.__class__ not in COMPARABLE:
            return unsupported(function, left)
        order = compare(left, right)
        return holds(order) if order.__class__ is int else order

    return operator


less = _ordering("_<_", lambda order: order < 0)
less_equals = _ordering("_<=_", lambda order: order <= 0)
greater = _ordering("_>_", lambda order: order > 0)
greater_equals = _ordering("_>=_", lambda order: order >= 0)


def contained(value: Any, container: Any) -> Any:
    """value in container; an error of comparing means "not this one"."""
    kind = container.__class__
    if kind is tuple or kind is ListBuilder:
        return any(equal(value, one) is True for one in container)
    if isinstance(container, MapValue):
        return container.has(value)
    return _otherwise(container)


# --- strings ---------------------------------------------------------------------------------------------------------


def _two_strings(test: Callable[[str, str], bool]) -> Callable[[Any, Any], Any]:
    def function(value: Any, other: Any) -> Any:
        if value.__class__ is not str:
            return _otherwise(value)
        return test(value, other) if other.__class__ is str else _otherwise(other)

    return function


def matches(value: Any, pattern: Any) -> Any:
    """Whether a string matches a pattern that is not known before."""
    if value.__class__ is not str:
        return unsupported("matches", value)
    if pattern.__class__ is not str:
        return _otherwise(pattern)
    compiled = compile_pattern(pattern)
    return compiled if isinstance(compiled, Failure) else compiled.matches(value)


def size(value: Any) -> Any:
    """The number of characters, bytes, elements or entries."""
    if value.__class__ in (str, bytes, tuple, ListBuilder) or isinstance(value, MapValue):
        return len(value)
    return unsupported("size", value)


# --- conversions -----------------------------------------------------------------------------------------------------


def _identity(value: Any) -> Any:
    return value


def _cannot(source: str, target: str) -> Failure:
    return Failure(f"type conversion error from '{source}' to '{target}'")


def _to_int(value: Any) -> Any:
    kind = value.__class__
    if kind is Uint:
        return int(value) if value <= MAX_INT else _INT_OVERFLOW
    if kind is float:
        # Upstream refuses the ends of the range too, which a double cannot tell from what lies beyond.
        return int(value) if math.isfinite(value) and -(2.0**63) < value < 2.0**63 else _INT_OVERFLOW
    if kind is Duration:
        return value.nanos
    if kind is Timestamp:
        return value.nanos // 1_000_000_000
    number = parse_int(value, MIN_INT, MAX_INT, signed=True)
    return _cannot("string", "int") if number is None else number


def _to_uint(value: Any) -> Any:
    kind = value.__class__
    if kind is int:
        return Uint(value) if value >= 0 else _UINT_OVERFLOW
    if kind is float:
        return Uint(int(value)) if math.isfinite(value) and 0 <= value < 2.0**64 else _UINT_OVERFLOW
    number = parse_int(value, 0, MAX_UINT, signed=False)
    return _cannot("string", "uint") if number is None else Uint(number)


def _to_double(value: Any) -> Any:
    if value.__class__ is str:
        number = parse_float(value)
        return _cannot("string", "double") if number is None else number
    return float(value)


_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _to_bool(value: str) -> Any:
    if value in _TRUE:
        return True
    return False if value in _FALSE else _cannot("string", "bool")


def to_string(value: Any) -> Any:
    """string(value) for the types that have it."""
    kind = value.__class__
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return go_g(value)
    if kind is bytes:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return Failure("invalid UTF-8 in bytes, cannot convert to string")
    if kind is Duration:
        return duration_text(value)
    return timestamp_text(value)


def _to_bytes(value: str) -> Any:
    return value.encode("utf-8", "surrogatepass")


def _to_duration(value: Any) -> Any:
    duration = parse_duration(value)
    return _cannot("string", "google.protobuf.Duration") if duration is None else duration


def _to_timestamp(value: Any) -> Any:
    if value.__class__ is int:
        return Timestamp(value * 1_000_000_000) if MIN_UNIX <= value <= MAX_UNIX else TIMESTAMP_OVERFLOW
    timestamp = parse_timestamp(value)
    return _cannot("string", "google.protobuf.Timestamp") if timestamp is None else timestamp


def _type_of(value: Any) -> Any:
    return TypeValue(type_name(value))


# --- timestamps and durations ----------------------------------------------------------------------------------------


def _part(name: str, read: Callable[[datetime], int]) -> Callable[..., Any]:
    def function(value: Timestamp, zone: Any = None) -> Any:
        moment = in_zone(value, zone)
        return moment if isinstance(moment, Failure) else read(moment)

    if name == "getFullYear":

        def year(value: Timestamp, zone: Any = None) -> Any:
            moment = in_zone(value, zone)
            return moment if isinstance(moment, Failure) else moment.year + years_left_out(value)

        return year

    return function


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}


def _float_unit(nanos_of_unit: int) -> Callable[[Duration], int]:
    """Hours and minutes are computed in floating point and then cut."""

    def function(value: Duration) -> int:
        whole, rest = abs(value.nanos) // nanos_of_unit, abs(value.nanos) % nanos_of_unit
        cut = int(float(whole) + float(rest) / float(nanos_of_unit))
        return -cut if value.nanos < 0 else cut

    return function


def _milliseconds(value: Duration) -> int:
    whole = abs(value.nanos) // 1_000_000
    return -whole if value.nanos < 0 else whole


def declare(library: Library) -> None:
    """Add the standard library."""
    _operators(library)
    _conversions(library)
    library.operator("size", size, *(
        (f"size_{name}", f"{kind} -> int")
        for name, kind in (("bytes", "bytes"), ("list", "list<A>"), ("map", "map<A,B>"), ("string", "string"))
    ))  # fmt: skip
    for name, kind in (("bytes", "bytes"), ("list", "list<A>"), ("map", "map<A,B>"), ("string", "string")):
        library.add("size", f"{name}_size", f"{kind} -> int", member=True)
    tests = (
        ("contains", lambda value, other: other in value),
        ("endsWith", str.endswith),
        ("startsWith", str.startswith),
    )
    identifiers = {"contains": "contains_string", "endsWith": "ends_with_string", "startsWith": "starts_with_string"}
    for name, test in tests:
        library.add(name, identifiers[name], "string, string -> bool", _two_strings(test), member=True, unguarded=True)
    library.operator("matches", matches, ("matches", "string, string -> bool"))
    library.add("matches", "matches_string", "string, string -> bool", member=True)
    for name, read in _PARTS.items():
        library.add(name, f"timestamp_{name}", "timestamp -> int", _part(name, read), member=True)
        library.add(name, f"timestamp_{name}_tz", "timestamp, string -> int", _part(name, read), member=True)
    library.add("getHours", "duration_to_hours", "duration -> int", _float_unit(3_600_000_000_000), member=True)
    library.add("getMinutes", "duration_to_minutes", "duration -> int", _float_unit(60_000_000_000), member=True)
    library.add(
        "getSeconds", "duration_to_seconds", "duration -> int", lambda value: int(seconds_of(value.nanos)), member=True
    )
    library.add("getMilliseconds", "duration_to_milliseconds", "duration -> int", _milliseconds, member=True)


def _operators(library: Library) -> None:
    numbers = ("double", "int", "uint")
    library.operator("_?_:_", _unplanned, ("conditional", "bool, A, A -> A"))
    library.operator("_&&_", _unplanned, ("logical_and", "bool, bool -> bool"))
    library.operator("_||_", _unplanned, ("logical_or", "bool, bool -> bool"))
    library.operator("!_", negation, ("logical_not", "bool -> bool"))
    library.operator("@not_strictly_false", _unplanned, ("not_strictly_false", "bool -> bool"))
    library.operator("_==_", _unplanned, ("equals", "A, A -> bool"))
    library.operator("_!=_", _unplanned, ("not_equals", "A, A -> bool"))
    library.operator("_+_", add, *(
        (f"add_{name}", signature)
        for name, signature in (
            ("bytes", "bytes, bytes -> bytes"),
            ("double", "double, double -> double"),
            ("duration_duration", "duration, duration -> duration"),
            ("duration_timestamp", "duration, timestamp -> timestamp"),
            ("timestamp_duration", "timestamp, duration -> timestamp"),
            ("int64", "int, int -> int"),
            ("list", "list<A>, list<A> -> list<A>"),
            ("string", "string, string -> string"),
            ("uint64", "uint, uint -> uint"),
        )
    ))  # fmt: skip
    library.operator("_/_", divide, *((f"divide_{one}", f"{one}, {one} -> {one}") for one in numbers))
    library.operator("_%_", modulo, *((f"modulo_{one}", f"{one}, {one} -> {one}") for one in ("int", "uint")))
    library.operator("_*_", multiply, *((f"multiply_{one}", f"{one}, {one} -> {one}") for one in numbers))
    library.operator("-_", negate, ("negate_double", "double -> double"), ("negate_int64", "int -> int"))
    library.operator("_-_", subtract, *(
        (f"subtract_{left}_{right}", f"{left}, {right} -> {result}")
        for left, right, result in (
            ("double", "double", "double"),
            ("duration", "duration", "duration"),
            ("int", "int", "int"),
            ("timestamp", "duration", "timestamp"),
            ("timestamp", "timestamp", "duration"),
            ("uint", "uint", "uint"),
        )
    ))  # fmt: skip
    kinds = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
    for function, name, implementation in (
        ("_<_", "less", less),
        ("_<=_", "less_equals", less_equals),
        ("_>_", "greater", greater),
        ("_>=_", "greater_equals", greater_equals),
    ):
        pairs = [(one, one) for one in kinds]
        pairs += [(one, other) for one in numbers for other in numbers if one != other]
        library.operator(
            function,
            implementation,
            *(
                (f"{name}_{one}" if one == other else f"{name}_{one}_{other}", f"{one}, {other} -> bool")
                for one, other in pairs
            ),
        )
    library.operator("@in", contained, ("in_list", "A, list<A> -> bool"), ("in_map", "A, map<A,B> -> bool"))
    library.operator(
        "_[_]",
        _unplanned,
        ("index_list", "list<A>, int -> A"),
        ("index_map", "map<A,B>, A -> B"),
        ("optional_list_index_int", "optional<list<V>>, int -> optional<V>"),
        ("optional_map_index_value", "optional<map<K,V>>, K -> optional<V>"),
    )


def _unplanned(*_: Any) -> Any:
    """Operators that the planner builds itself are never called as functions."""
    return NO_OVERLOAD


def _conversions(library: Library) -> None:
    conversions: tuple[tuple[str, tuple[str, ...], Callable[[Any], Any]], ...] = (
        ("int", ("double", "duration", "string", "timestamp", "uint"), _to_int),
        ("uint", ("double", "int", "string"), _to_uint),
        ("double", ("int", "string", "uint"), _to_double),
        ("bool", ("string",), _to_bool),
        ("bytes", ("string",), _to_bytes),
        ("string", ("bool", "bytes", "double", "duration", "int", "timestamp", "uint"), to_string),
        ("duration", ("string",), _to_duration),
        ("timestamp", ("int", "string"), _to_timestamp),
    )
    for target, sources, implementation in conversions:
        library.add(target, f"{target}_to_{target}", f"{target} -> {target}", _identity)
        for source in sources:
            library.add(target, f"{source}_to_{target}", f"{source} -> {target}", implementation)
    library.add("dyn", "to_dyn", "A -> dyn", _identity)
    library.operator("type", _type_of, ("type", "A -> type<A>"))
