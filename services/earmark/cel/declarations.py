"""Functions and their overloads: what the checker chooses from and the planner binds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from earmark.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    opaque,
    optional_of,
    param,
    type_of_type,
)
from earmark.cel.values import Failure, fits, type_name

Implementation = Callable[..., Any]

QUANTITY: Final = opaque("kubernetes.Quantity")
SEMVER: Final = opaque("kubernetes.Semver")
IP: Final = opaque("net.IP")
CIDR: Final = opaque("net.CIDR")
URL: Final = opaque("kubernetes.URL")
FORMAT: Final = opaque("kubernetes.NamedFormat")

_NAMED: Final = {
    "bool": BOOL, "bytes": BYTES, "double": DOUBLE, "int": INT, "string": STRING, "uint": UINT, "null": NULL,
    "dyn": DYN, "duration": DURATION, "timestamp": TIMESTAMP, "quantity": QUANTITY, "semver": SEMVER, "ip": IP,
    "cidr": CIDR, "url": URL, "format": FORMAT,
}  # fmt: skip
_WORD: Final = re.compile(r"\s*([A-Za-z]+|[<>,])")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function.

    `sequential` says that a failing argument keeps the later ones from being evaluated (cel-go's variadic calls).
    `implementation` is None for what the planner itself knows (operators, optional `or`).
    """

    id: str
    function: str
    args: tuple[Type, ...]
    result: Type
    member: bool
    params: tuple[str, ...]
    implementation: Implementation | None = None
    sequential: bool = False
    unguarded: bool = False

    def accepts(self, values: tuple[Any, ...]) -> bool:
        """Whether arguments fit at run time."""
        return len(values) == len(self.args) and (
            self.unguarded or all(fits(value, arg) for value, arg in zip(values, self.args, strict=True))
        )


@dataclass(slots=True)
class Function:
    """A function by name. Operators have one implementation for all overloads (`singleton`), which asks itself what
    it gets; the others are dispatched by the types of the arguments."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    singleton: Implementation | None = None

    def dispatch(self, *values: Any) -> Any:
        """Call the first overload that fits."""
        for overload in self.overloads:
            if overload.implementation is not None and overload.accepts(values):
                return overload.implementation(*values)
        return no_such_overload(self.name, values)


def no_such_overload(function: str, values: tuple[Any, ...]) -> Failure:
    """The error of a call that no overload fits."""
    return Failure(f"no such overload: {function}({', '.join(type_name(value) for value in values)})")


class Library:
    """A set of functions under construction."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}

    def add(
        self,
        name: str,
        identifier: str,
        signature: str,
        implementation: Implementation | None = None,
        *,
        member: bool = False,
        sequential: bool = False,
        unguarded: bool = False,
    ) -> None:
        """Declare an overload.

        Args:
            name: the function.
            identifier: the overload's id, by which costs are looked up.
            signature: argument types and result, as "string, list<A> -> int"; one letter is a type variable.
        """
        left, _, right = signature.partition("->")
        args = tuple(_types(left))
        (result,) = _types(right)
        params = tuple(sorted({one for arg in (*args, result) for one in _variables(arg)}))
        overload = Overload(identifier, name, args, result, member, params, implementation, sequential, unguarded)
        self.functions.setdefault(name, Function(name)).overloads.append(overload)

    def operator(self, name: str, implementation: Implementation, *signatures: tuple[str, str]) -> None:
        """Declare an operator: its implementation and (id, signature) of its overloads."""
        for identifier, signature in signatures:
            self.add(name, identifier, signature)
        self.functions[name].singleton = implementation


def _variables(one: Type) -> set[str]:
    if one.kind == "param":
        return {one.name}
    return {name for inner in one.params for name in _variables(inner)}


def _types(text: str) -> list[Type]:
    words = _WORD.findall(text)
    found: list[Type] = []
    at = 0
    while at < len(words):
        one, at = _type(words, at)
        found.append(one)
        if at < len(words):
            at += 1
    return found


def _type(words: list[str], at: int) -> tuple[Type, int]:
    name = words[at]
    at += 1
    inner: list[Type] = []
    if at < len(words) and words[at] == "<":
        while words[at] in "<,":
            one, at = _type(words, at + 1)
            inner.append(one)
        at += 1
    match name:
        case "list":
            return list_of(inner[0]), at
        case "map":
            return map_of(inner[0], inner[1]), at
        case "optional":
            return optional_of(inner[0]), at
        case "type":
            return type_of_type(inner[0]), at
    return (_NAMED[name] if name in _NAMED else param(name)), at
