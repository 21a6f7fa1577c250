"""What is checked after the types: literal durations, timestamps and patterns, and formats with literal arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from earmark.cel.errors import Fault
from earmark.cel.formatting import problem, scan
from earmark.cel.regex import Pattern, compile_pattern
from earmark.cel.syntax import Call, ListNode, Literal, MapNode, Node, children, walk
from earmark.cel.temporal import MAX_UNIX, MIN_UNIX, parse_duration, parse_timestamp
from earmark.cel.types import Type
from earmark.cel.values import Failure

_KINDS: Final = {
    "s": frozenset(
        ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type", "null")
    ),
    "d": frozenset(("int", "uint")),
    "f": frozenset(("double", "string")),
    "e": frozenset(("double", "string")),
    "b": frozenset(("int", "uint", "bool")),
    "x": frozenset(("int", "uint", "string", "bytes")),
    "o": frozenset(("int", "uint")),
}


def validate(root: Node) -> list[Fault]:
    """The faults of a checked tree."""
    calls = [node for node in walk(root) if isinstance(node, Call)]
    faults = [fault for function in ("duration", "timestamp", "matches") for fault in _literals(calls, function)]
    mixed = list(_mixed(root))
    return faults + mixed + [fault for node in calls for fault in _format(node)]


def _literals(calls: list[Call], function: str) -> Iterator[Fault]:
    for node in calls:
        if node.function != function or not node.args:
            continue
        arg = node.args[-1] if function == "matches" else node.args[0]
        if not isinstance(arg, Literal):
            continue
        if function == "timestamp" and arg.value.__class__ is int and not MIN_UNIX <= arg.value <= MAX_UNIX:
            yield Fault(arg.offset, "invalid timestamp argument")
        if arg.value.__class__ is not str:
            continue
        text: str = arg.value
        if function == "duration":
            valid = parse_duration(text) is not None
        elif function == "timestamp":
            read = parse_timestamp(text)
            valid = read is not None and not isinstance(read, Failure)
        else:
            valid = isinstance(compile_pattern(text), Pattern)
        if not valid:
            yield Fault(arg.offset, f"invalid {function} argument")


def _mixed(root: Node) -> Iterator[Fault]:
    """Lists and maps whose literals are of several types; format() takes them."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function == "format":
            continue
        stack.extend(children(node))
        if isinstance(node, ListNode):
            yield from _different(
                [(one, index in node.optional) for index, one in enumerate(node.elements)], first=True
            )
        elif isinstance(node, MapNode):
            yield from _different([(key, False) for key, _, _ in node.entries])
            yield from _different([(value, optional) for _, value, optional in node.entries])


def _different(parts: list[tuple[Node, bool]], first: bool = False) -> Iterator[Fault]:
    """The parts whose type is not that of the first one (only one of them, if `first`)."""
    wanted: Type | None = None
    for node, optional in parts:
        found = node.type
        if found is not None and optional and found.params:
            found = found.params[0]
        if wanted is None:
            wanted = found
        elif found != wanted:
            yield Fault(node.offset, f"expected type '{wanted}' but found '{found}'")
            if first:
                return


def _format(node: Call) -> Iterator[Fault]:
    if node.function != "format" or not isinstance(node.target, Literal) or node.target.value.__class__ is not str:
        return
    if not any(overload.id == "string_format" for overload in node.overloads):
        return
    (args,) = node.args
    if not isinstance(args, ListNode):
        return
    elements = args.elements
    used = 0
    at = node

    def render(index: int, letter: str, _: int | None) -> str:
        nonlocal used, at
        used = index + 1
        bad = _unfit(elements[index], letter.lower())
        if bad is not None:
            at = bad  # type: ignore[assignment]
            raise problem(letter, "dyn" if bad.type is None else bad.type.name)
        return ""

    try:
        scan(node.target.value, len(elements), render)
    except ValueError as error:
        yield Fault(at.offset, str(error))
        return
    if len(elements) > used:
        message = f"too many arguments supplied to string.format (expected {used}, got {len(elements)})"
        yield Fault(node.offset, message)


def _unfit(node: Node, letter: str) -> Node | None:
    """The node that a clause cannot print, None if there is none."""
    found: Type | None = node.type
    if found is not None and found.kind not in ("dyn", "param") and found.kind not in _KINDS[letter]:
        return node
    if letter == "s":
        if isinstance(node, ListNode):
            return next((bad for one in node.elements if (bad := _unfit(one, letter)) is not None), None)
        if isinstance(node, MapNode):
            return next((bad for one in children(node) if (bad := _unfit(one, letter)) is not None), None)
    return None
