"""The types of the checker, how they are written, and how type variables are unified (cel-go's rules)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """A type. `kind` is bool, bytes, double, int, string, uint, null, dyn, error, duration, timestamp, list, map,
    type, opaque, struct or param; `name` is the name at run time; `open` says whether a type variable is in it.

    Types nest as deep as expressions. What would have to be asked of every level again, the hash and `open`, is kept.
    """

    kind: str
    name: str
    params: tuple[Type, ...] = ()
    open: bool = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "open", self.kind == "param" or any(one.open for one in self.params))
        object.__setattr__(self, "_hash", hash((self.kind, self.name, self.params)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type) or self._hash != other._hash:
            return False
        return self.kind == other.kind and self.name == other.name and self.params == other.params

    def __str__(self) -> str:
        """The type as error messages write it."""
        if self.kind in ("null", "duration", "timestamp"):
            return self.kind
        if self.kind == "error":
            return "!error!"
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(str(one) for one in self.params)})"

    @property
    def full_name(self) -> str:
        """The type with the names that types have at run time."""
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(one.full_name for one in self.params)})"


BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
INT: Final = Type("int", "int")
STRING: Final = Type("string", "string")
UINT: Final = Type("uint", "uint")
NULL: Final = Type("null", "null_type")
DYN: Final = Type("dyn", "dyn")
ERROR: Final = Type("error", "*error*")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
OPTIONAL_NAME: Final = "optional_type"


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of_type(inner: Type) -> Type:
    return Type("type", "type", (inner,))


def optional_of(inner: Type) -> Type:
    return Type("opaque", OPTIONAL_NAME, (inner,))


def opaque(name: str) -> Type:
    return Type("opaque", name)


def struct(name: str) -> Type:
    return Type("struct", name)


def param(name: str) -> Type:
    return Type("param", name)


def is_optional(one: Type) -> bool:
    return one.kind == "opaque" and one.name == OPTIONAL_NAME


def unwrapped(one: Type) -> tuple[Type, bool]:
    """The type within an optional one, and whether it was one."""
    return (one.params[0], True) if is_optional(one) else (one, False)


def signature(args: list[Type], member: bool) -> str:
    """Argument types as error messages write them: (int, string) or int.(string)."""
    if member:
        return f"{args[0]}.({', '.join(str(one) for one in args[1:])})"
    return f"({', '.join(str(one) for one in args)})"


_NULLABLE: Final = frozenset({"opaque", "struct", "duration", "timestamp", "null"})
_PARAMETRIC: Final = frozenset({"opaque", "list", "map"})


class Substitutions:
    """What is known of type variables. `assign` changes it only if it succeeds."""

    def __init__(self) -> None:
        self._known: dict[Type, Type] = {}
        # What was known of a variable before it changed, so that a failed attempt can be undone.
        self._undo: list[tuple[Type, Type | None]] = []

    def assign(self, targets: list[Type], sources: list[Type]) -> bool:
        """Whether each type can be used as the other, with what follows for type variables."""
        self._undo.clear()
        if self._all(targets, sources):
            return True
        for variable, before in reversed(self._undo):
            if before is None:
                del self._known[variable]
            else:
                self._known[variable] = before
        return False

    def resolve(self, one: Type, free_to_dyn: bool = False) -> Type:
        """The type with its known variables replaced (and the unknown ones by dyn)."""
        return self._resolved(one, free_to_dyn, {})

    def resolve_all(self, ones: Iterable[Type]) -> Iterator[Type]:
        """The types without variables, one after the other: what they have in common is looked at once."""
        seen: dict[Type, Type] = {}
        return (self._resolved(one, True, seen) for one in ones)

    def _resolved(self, one: Type, free_to_dyn: bool, seen: dict[Type, Type]) -> Type:
        if not one.open:
            return one
        found = seen.get(one)
        if found is None:
            if one in self._known:
                found = self._resolved(self._known[one], free_to_dyn, seen)
            elif one.kind == "param":
                found = DYN if free_to_dyn else one
            else:
                params = tuple([self._resolved(inner, free_to_dyn, seen) for inner in one.params])
                found = Type(one.kind, one.name, params)
            seen[one] = found
        return found

    def define(self, variable: Type, value: Type) -> None:
        self._undo.append((variable, self._known.get(variable)))
        self._known[variable] = value

    def _all(self, ones: list[Type] | tuple[Type, ...], others: list[Type] | tuple[Type, ...]) -> bool:
        return len(ones) == len(others) and all(
            self._assignable(one, other) for one, other in zip(ones, others, strict=True)
        )

    def _assignable(self, one: Type, other: Type) -> bool:
        if one is other and not one.open:
            return True
        if other.kind == "param":
            valid, known = self._substitute(one, other)
            if valid:
                return True
            if known:
                return False
        if one.kind == "param":
            return self._substitute(other, one)[0]
        if one.kind in ("dyn", "error") or other.kind in ("dyn", "error"):
            return True
        if one.kind == "null":
            return other.kind in _NULLABLE
        if other.kind == "null":
            return one.kind in _NULLABLE
        if one.kind == "type":
            return other.kind == "type"
        if one.kind in _PARAMETRIC:
            return one.kind == other.kind and one.name == other.name and self._all(one.params, other.params)
        return one == other

    def _substitute(self, value: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the value fits the variable, and whether something was known of it."""
        if value == variable:
            return True, True
        known = self._known.get(variable)
        if known is not None:
            if value == known:
                return True, True
            if not self._assignable(value, known):
                return False, True
            general = more_general(value, known)
            if self._free_of(variable, general):
                self.define(variable, general)
            return True, True
        if self._free_of(variable, value):
            self.define(variable, value)
            return True, False
        return False, False

    def _free_of(self, variable: Type, within: Type) -> bool:
        """Whether the variable does not occur in a type."""
        if not within.open:
            return True
        if variable == within:
            return False
        if within.kind == "param":
            known = self._known.get(within)
            return known is None or self._free_of(variable, known)
        return all(self._free_of(variable, inner) for inner in within.params)


def more_general(one: Type, other: Type) -> Type:
    """The less specific of two types that fit each other."""
    return one if _no_more_specific(one, other) else other


def _no_more_specific(one: Type, other: Type) -> bool:
    if one is other:
        return True
    if one.kind in ("dyn", "param"):
        return True
    if other.kind in ("dyn", "param") or one.kind != other.kind:
        return False
    if one.kind == "type":
        return True
    if one.kind in _PARAMETRIC:
        return (
            one.name == other.name
            and len(one.params) == len(other.params)
            and all(_no_more_specific(left, right) for left, right in zip(one.params, other.params, strict=True))
        )
    return one == other
