"""Selectors for tools: the JSON lines of `earmark cel -`, and why a device does not match, part by part.

Pure functions; reading files and printing is the command's affair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from earmark.cel.devices import environment
from earmark.cel.errors import CompileError
from earmark.cel.lexer import tokens
from earmark.cel.syntax import Call, Node
from earmark.dynamicresources.devicecel import (
    PreparedDevice,
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.kube.objects import Device, ResourceSlice

_OPERATORS: Final = {"_&&_": "and", "_||_": "or", "!_": "not"}


def answer(line: str) -> str:
    """Answer one line of the protocol.

    Args:
        line: {"expression": text, "device": {"driver", "attributes", "capacity", "allowMultipleAllocations"}} as JSON,
            attributes and capacity as in resource.k8s.io/v1.

    Returns:
        {"expect": {"result": bool} | {"compile_error": text} | {"runtime_error": text}, "cost": n} as JSON; the cost is
        left out if nothing was evaluated. A line that is not of the form gives {"expect": {"input_error": text}}.
    """
    try:
        given = json.loads(line)
        expression, device = given["expression"], given["device"]
        prepared = _prepared(device)
    except (ValueError, KeyError, TypeError, AttributeError, msgspec.ValidationError) as error:
        return json.dumps({"expect": {"input_error": f"{type(error).__name__}: {error}"}})
    try:
        selector = compile_selector(expression)
    except SelectorCompileError as error:
        return json.dumps({"expect": {"compile_error": str(error)}}, ensure_ascii=False)
    result: dict[str, Any] = {}
    try:
        result["expect"] = {"result": selector.matches(prepared)}
    except SelectorRuntimeError as error:
        result["expect"] = {"runtime_error": str(error)}
    if prepared.error is None:
        result["cost"] = selector.evaluate(prepared).cost
    return json.dumps(result, ensure_ascii=False)


def _prepared(device: dict[str, Any]) -> PreparedDevice:
    fields = {name: value for name, value in device.items() if name != "driver"}
    return prepare_device(device.get("driver", ""), msgspec.convert({"name": "", **fields}, Device))


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a selector and what it gave for a device.

    Attributes:
        text: the part as written.
        outcome: "true", "false", another value's type, or "error".
        error: the text of the error, "" if there was none.
        parts: what it is made of, if it is an `and`, `or` or `not` that did not give true.
    """

    text: str
    outcome: str
    error: str = ""
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """What a selector says of one device."""

    driver: str
    pool: str
    device: str
    matches: bool
    part: Part


def explain(expression: str, slices: Iterable[ResourceSlice]) -> Iterator[DeviceAnswer]:
    """Which devices match, and for the others which parts of the expression are to blame.

    Raises:
        SelectorCompileError: if the expression does not compile.
    """
    selector = compile_selector(expression)
    for one in slices:
        for device in one.spec.devices:
            prepared = prepare_device(one.spec.driver, device)
            part = explain_device(selector, prepared)
            yield DeviceAnswer(one.spec.driver, one.spec.pool.name, device.name, part.outcome == "true", part)


def explain_device(selector: Selector, prepared: PreparedDevice) -> Part:
    """What the parts of a selector give for one device."""
    if prepared.error is not None:
        return Part(selector.program.source, "error", prepared.error)
    return _part(selector.program.root, selector.program.source, prepared)


def _part(node: Node, source: str, prepared: PreparedDevice) -> Part:
    text = _trimmed(source)
    outcome, error = _evaluated(text, prepared)
    if outcome == "true" or not isinstance(node, Call) or node.function not in _OPERATORS:
        return Part(text, outcome, error)
    parts: tuple[Part, ...] = ()
    pieces = _pieces(text, node.function)
    if len(pieces) > 1 or node.function == "!_":
        parts = tuple(_explained(piece, prepared) for piece in pieces)
    return Part(text, outcome, error, parts)


def _explained(text: str, prepared: PreparedDevice) -> Part:
    try:
        root = environment().compile(text).root
    except CompileError as error:
        return Part(text, "error", str(error))
    return _part(root, text, prepared)


def _evaluated(text: str, prepared: PreparedDevice) -> tuple[str, str]:
    try:
        return ("true" if compile_selector(text).matches(prepared) else "false"), ""
    except (SelectorRuntimeError, SelectorCompileError) as error:
        return "error", str(error)


def _trimmed(text: str) -> str:
    """The text without space and brackets around the whole of it."""
    text = text.strip()
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _closing(text: str) -> int:
    """Where the bracket at the start is closed."""
    for at, depth, _ in _characters(text):
        if depth == 0:
            return at
    return -1


def _pieces(text: str, function: str) -> list[str]:
    """The operands of the outermost operators of a kind."""
    if function == "!_":
        return [text.removeprefix("!").strip()]
    operator = "&&" if function == "_&&_" else "||"
    pieces: list[str] = []
    start = 0
    for at, depth, char in _characters(text):
        if depth == 0 and char == operator[0] and text[at : at + 2] == operator:
            pieces.append(text[start:at].strip())
            start = at + 2
    pieces.append(text[start:].strip())
    return pieces


def _characters(text: str) -> Iterator[tuple[int, int, str]]:
    """The characters outside of strings and comments: where they are and how deep in brackets (after them)."""
    depth = 0
    for token in tokens(text):
        if token.kind in ("(", "[", "{"):
            depth += 1
        elif token.kind in (")", "]", "}"):
            depth -= 1
        yield token.offset, depth, token.text[0]


def readable(part: Part, indent: int = 0) -> Iterator[str]:
    """A part and what it is made of, as indented lines."""
    yield f"{'  ' * indent}{part.outcome}: {part.text}{f'  ({part.error})' if part.error else ''}"
    for one in part.parts:
        yield from readable(one, indent + 1)
