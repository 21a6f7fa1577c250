"""Values at run time: which Python value stands for which CEL value, equality, order, size and conversion to text.

bool, int, float, str and bytes are themselves, null is None, lists are tuples; the classes here are the rest. Errors
are values too (`Failure`): `&&`, `||`, list equality and costs need to go on after one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from earmark.cel.errors import EvaluationAborted
from earmark.cel.limits import Budget
from earmark.cel.types import Type
from earmark.kube.quantity import Quantity

MAX_INT: Final = 2**63 - 1
MIN_INT: Final = -(2**63)
MAX_UINT: Final = 2**64 - 1


class Failure:
    """An error as a value; `text` is upstream's."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Failure({self.text!r})"


NO_OVERLOAD: Final = Failure("no such overload")


class Uint(int):
    """An unsigned 64-bit number."""

    __slots__ = ()


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))


class Timestamp:
    """An instant: nanoseconds since the epoch, and the offset of the zone that it was written in (seconds)."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))


class OptionalValue:
    """A value that may be absent; `value` is a tuple of none or one."""

    __slots__ = ("value",)

    def __init__(self, *value: Any) -> None:
        self.value = value


ABSENT: Final = OptionalValue()


class TypeValue:
    """A type as a value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class QuantityValue:
    """A quantity. Upstream holds it by reference: comparing a small one with a big one makes it big for good, and
    `add` and `sub` give a reference to a reference, which compares as something else (`nested`)."""

    __slots__ = ("nested", "original", "quantity")

    def __init__(self, quantity: Quantity, nested: bool = False) -> None:
        # What it was made of, whatever comparing has made of it since.
        self.original = quantity
        self.quantity = quantity
        self.nested = nested


class OpaqueValue:
    """Base of the values of libraries: compared by `key`, and unequal to nothing but their own kind."""

    __slots__ = ("key",)
    type_name: str = ""
    go_name: str = ""

    def __init__(self, key: Any) -> None:
        self.key = key


class MapValue:
    """A map. Keys are kept as `map_key` gives them, so that true and 1 are two keys."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Any, Any]) -> None:
        self.entries = entries

    def find(self, key: Any) -> Any:
        """The value of a key, or MISSING; numbers are found across their types."""
        kind = key.__class__
        if kind is str:
            return self.entries.get(key, MISSING)
        if not self.entries:
            return MISSING
        if kind not in _SIMPLE:
            check_hashable(key)
        found = self.entries.get(map_key(key), MISSING)
        if found is not MISSING:
            return found
        for other in _same_numbers(key):
            found = self.entries.get(map_key(other), MISSING)
            if found is not MISSING:
                return found
        return MISSING

    def has(self, key: Any) -> bool:
        """Whether `in` finds the key; differs from `find` for maps with a default."""
        return MapValue.find(self, key) is not MISSING

    def __iter__(self) -> Iterator[Any]:
        return (key[1] if key.__class__ is tuple else key for key in self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class NativeMap(MapValue):
    """A map from strings that upstream holds as a Go map: no other key is ever in it, and none makes it fail."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        return self.entries.get(key, MISSING) if key.__class__ is str else MISSING

    def has(self, key: Any) -> bool:
        return key.__class__ is str and key in self.entries


class DefaultMap(NativeMap):
    """A map that gives an empty map for every unknown key, but does not contain it (upstream's Find override)."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        return self.entries.get(key, EMPTY_MAP) if key.__class__ is str else EMPTY_MAP


class ListBuilder(list[Any]):
    """A list that a macro builds in place."""


class MapBuilder(MapValue):
    """A map that a macro builds in place."""

    __slots__ = ()


MISSING: Final = object()
EMPTY_MAP: Final = NativeMap({})
_SIMPLE: Final = frozenset({str, int, Uint, bool, float})
# What Go cannot hash.
_UNHASHABLE: Final = frozenset({"types.Bytes", "cel.Semver", "cel.Format"})


def check_hashable(value: Any) -> None:
    """Upstream panics where Go has to hash what it cannot.

    Raises:
        EvaluationAborted: with its text.
    """
    name = go_name(value)
    if name in _UNHASHABLE:
        raise EvaluationAborted(f"internal error: runtime error: hash of unhashable type {name}")


def map_key(key: Any) -> Any:
    """The key under which a dict keeps a CEL key: strings and ints are themselves."""
    kind = key.__class__
    if kind is str or kind is int:
        return key
    return (kind, key)


def _same_numbers(key: Any) -> Iterator[Any]:
    """The other numbers that are equal to a numeric key, in the order in which they are tried."""
    kind = key.__class__
    if kind is float:
        if math.isfinite(key) and key == int(key):
            if MIN_INT <= key < 2.0**63:
                yield int(key)
            if 0 <= key < 2.0**64:
                yield Uint(int(key))
    elif kind is int and key >= 0:
        yield Uint(key)
    elif kind is Uint and key <= MAX_INT:
        yield int(key)


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    tuple: "list",
    ListBuilder: "list",
    MapValue: "map",
    NativeMap: "map",
    DefaultMap: "map",
    MapBuilder: "map",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    QuantityValue: "kubernetes.Quantity",
    Failure: "error",
}
_GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    OptionalValue: "*types.Optional",
    tuple: "*types.baseList",
    MapValue: "*types.baseMap",
    NativeMap: "*types.baseMap",
}


def type_name(value: Any) -> str:
    """The name of a value's type, as `type()` and error texts have it."""
    name = _TYPE_NAMES.get(value.__class__)
    return value.type_name if name is None else name


def go_name(value: Any) -> str:
    """The Go type of a value, which some error texts show."""
    if value.__class__ is QuantityValue:
        return "*cel.Quantity" if value.nested else "cel.Quantity"
    name = _GO_NAMES.get(value.__class__)
    return getattr(value, "go_name", type_name(value)) if name is None else name


def shown(value: Any) -> str:
    """A value as Go's %v prints it in error texts."""
    kind = value.__class__
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        from earmark.cel.text import go_g

        return go_g(value)
    if kind is bytes:
        return "[" + " ".join(str(one) for one in value) + "]"
    if kind is Failure:
        return str(value.text)
    return str(value)


def fits(value: Any, declared: Type) -> bool:
    """Whether a value can be of a type at run time: lists and maps are judged by their first element."""
    kind = declared.kind
    if kind in ("dyn", "param"):
        return True
    if kind == "list":
        if value.__class__ is tuple or value.__class__ is ListBuilder:
            return not value or fits(value[0], declared.params[0])
        return False
    if kind == "map":
        if not isinstance(value, MapValue):
            return False
        for key in value:
            return fits(key, declared.params[0]) and fits(value.find(key), declared.params[1])
        return True
    return type_name(value) == declared.name


# --- equality and order ----------------------------------------------------------------------------------------------

_SAME: Final = frozenset({str, int, bool, float, bytes, Uint})
_NUMBERS: Final = frozenset({int, float, Uint})


def equal(left: Any, right: Any, budget: Budget | None = None) -> Any:
    """left == right: a bool, or a Failure where upstream's Equal gives an error.

    Args:
        budget: what is left for a comparison that this one is a part of.
    """
    kind = left.__class__
    if kind is right.__class__ and kind in _SAME:
        return left == right
    if left is None or right is None:
        return left is None and right is None
    return equal_to(left, right, budget)


def equal_to(left: Any, right: Any, budget: Budget | None = None) -> Any:
    """left.Equal(right), which some functions call without looking for null first."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS:
        return other in _NUMBERS and compare_numbers(left, right) == 0
    if kind in _SAME:
        return kind is other and left == right
    if kind is tuple or kind is ListBuilder:
        return _equal_lists(left, right, budget or Budget()) if other is tuple or other is ListBuilder else False
    if kind is QuantityValue:
        if other is not QuantityValue or right.nested:
            return right if other is Failure else NO_OVERLOAD
        return compare_quantities(left, right) == 0
    if isinstance(left, MapValue):
        return _equal_maps(left, right, budget or Budget()) if isinstance(right, MapValue) else False
    if left is None:
        return right is None
    if kind is OptionalValue:
        if other is not OptionalValue or len(left.value) != len(right.value):
            return False
        return equal(left.value[0], right.value[0], budget) if left.value else True
    if kind is TypeValue:
        return other is TypeValue and left.name == right.name
    if isinstance(left, OpaqueValue):
        if other is not kind:
            return right if other is Failure else NO_OVERLOAD
        return left.key == right.key
    return kind is other and left == right


def _equal_lists(left: Any, right: Any, budget: Budget) -> Any:
    if len(left) != len(right):
        return False
    budget.spend(len(left))
    # An error counts as equal so far, as upstream.
    return all(equal(one, other, budget) is not False for one, other in zip(left, right, strict=True))


def _equal_maps(left: MapValue, right: MapValue, budget: Budget) -> Any:
    if len(left) != len(right):
        return False
    budget.spend(len(left))
    for key in left:
        other = right.find(key)
        if other is MISSING or equal(left.find(key), other, budget) is False:
            return False
    return True


def compare_quantities(left: QuantityValue, right: QuantityValue) -> int:
    """-1, 0 or 1; a small one that meets a big one becomes big itself, as upstream."""
    if right.quantity.is_big and not left.quantity.is_big:
        left.quantity = left.quantity.as_big()
    return left.quantity.compare(right.quantity)


def compare_numbers(left: Any, right: Any) -> Any:
    """-1, 0 or 1 for numbers of any types; None if one is NaN. Ints meet doubles as doubles, within their range."""
    if left.__class__ is float:
        if right.__class__ is not float:
            flipped = compare_numbers(right, left)
            return None if flipped is None else -flipped
        other = right
    elif right.__class__ is float:
        if math.isnan(right):
            return None
        low, high = (0.0, 2.0**64) if left.__class__ is Uint else (-(2.0**63), 2.0**63)
        if right < low:
            return 1
        if right > high:
            return -1
        left, other = float(left), right
    else:
        left, other = int(left), int(right)
    if left != left or other != other:
        return None
    return (left > other) - (left < other)


_ORDERED: Final = frozenset({str, bytes, bool})
COMPARABLE: Final = frozenset({int, Uint, float, str, bytes, bool, Duration, Timestamp})


def compare(left: Any, right: Any) -> Any:
    """-1, 0 or 1, or a Failure if the two have no order. The left one must be of a comparable type."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            return right if other is Failure else NO_OVERLOAD
        order = compare_numbers(left, right)
        return Failure("NaN values cannot be ordered") if order is None else order
    if kind is not other:
        return right if other is Failure else NO_OVERLOAD
    if kind in _ORDERED:
        return (left > right) - (left < right)
    if kind is Duration or kind is Timestamp:
        return (left.nanos > right.nanos) - (left.nanos < right.nanos)
    return NO_OVERLOAD


def size_of(value: Any) -> int:
    """The size that costs are counted with: of strings, bytes, lists and maps; 1 for everything else."""
    kind = value.__class__
    if kind is str or kind is tuple or kind is bytes or kind is ListBuilder:
        return len(value)
    if isinstance(value, MapValue):
        return len(value)
    if kind is OptionalValue and value.value:
        return size_of(value.value[0])
    return getattr(value, "size", 1) if isinstance(value, OpaqueValue) else 1
