"""The allocator's way to the CEL of devices: each expression is evaluated once per content that it can read.

The texts are those that upstream's errors have (upstream A5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from earmark.cel import CompileError, Program
from earmark.cel.devices import environment
from earmark.cel.semver import Semver
from earmark.dynamicresources.devicecel import (
    PreparedDevice,
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import Device, DeviceAttribute

# Answers and devices are cheap to make again, so their stores are simply emptied when they have grown.
_MANY_ANSWERS = 200_000
_MANY_DEVICES = 512

_Reader = Callable[[str, Device], object]


class CelJudge:
    """Compiles each expression once and remembers answers by what the expression reads of a device."""

    def __init__(self) -> None:
        self._selectors: dict[str, tuple[Selector | str, _Reader]] = {}
        self._programs: dict[str, Program | str] = {}
        self._reads: dict[str, frozenset[str] | None] = {}
        self._answers: dict[tuple[str, object, object], bool | str] = {}
        self._prepared: dict[tuple[SliceView, int], PreparedDevice] = {}

    def evaluate(self, expression: str, view: SliceView, position: int) -> bool | str:
        """Return whether the device matches, or the text of the error."""
        found = self._selectors.get(expression)
        if found is None:
            found = self._selectors[expression] = _compiled(expression)
        selector, read = found
        if isinstance(selector, str):
            return selector
        key = (expression, read(view.driver, view.devices[position]), _always_read(view)[position])
        answer = self._answers.get(key)
        if answer is None:
            try:
                answer = selector.matches(self._prepare(view, position))
            except SelectorRuntimeError as error:
                answer = f"CEL runtime error: {error}"
            if len(self._answers) >= _MANY_ANSWERS:
                self._answers.clear()
            self._answers[key] = answer
        return answer

    def derive(self, expression: str, view: SliceView, position: int) -> DeviceAttribute | str | None:
        """Return the value of a derived attribute, or the text of the error (upstream A5.13)."""
        program = self._programs.get(expression)
        if program is None:
            program = self._programs[expression] = _derived_program(expression)
        if isinstance(program, str):
            return program
        prepared = self._prepare(view, position)
        if prepared.error is not None:
            return prepared.error
        outcome = program.evaluate(prepared.variables)
        return outcome.error if outcome.error is not None else _attribute(outcome.value)

    def reads(self, expression: str) -> frozenset[str] | None:
        """Return the attributes that the expression can read, None if that cannot be told."""
        if expression not in self._reads:
            self._reads[expression] = _attributes_read(expression)
        return self._reads[expression]

    def _prepare(self, view: SliceView, position: int) -> PreparedDevice:
        found = self._prepared.get((view, position))
        if found is None:
            if len(self._prepared) >= _MANY_DEVICES:
                self._prepared.clear()
            found = self._prepared[view, position] = prepare_device(view.driver, view.devices[position])
        return found


def _attributes_read(expression: str) -> frozenset[str] | None:
    try:
        read = compile_selector(expression).reads()
    except SelectorCompileError:
        # It is an error for every device, whatever the device has.
        return frozenset()
    if read is None:
        return None
    return frozenset(f"{domain}/{name}" for kind, domain, name in read if kind == "attribute")


def _always_read(view: SliceView) -> tuple[object, ...]:
    """Per device what every evaluation depends on, whatever the expression reads (upstream A5.8).

    One value that cannot be converted makes every evaluation an error; versions are the only attributes that need a
    look, and capacities that are no quantities.
    """
    found: tuple[object, ...] | None = view.views.get("always read")
    if found is None:
        found = view.views["always read"] = tuple(
            (
                *[
                    item
                    for item in device.attributes.items()
                    if item[1].string is None and item[1].int_ is None and item[1].bool_ is None
                ],
                *[amount.value for amount in device.capacity.values()],
            )
            for device in view.devices
        )
    return found


def _compiled(expression: str) -> tuple[Selector | str, _Reader]:
    try:
        selector = compile_selector(expression)
    except SelectorCompileError as error:
        return f"CEL compile error: {error}", _read_nothing
    return selector, _reader(selector)


def _read_nothing(driver: str, device: Device) -> object:
    return None


def _read_all(driver: str, device: Device) -> object:
    capacity = tuple((name, amount.value) for name, amount in device.capacity.items())
    return driver, tuple(device.attributes.items()), capacity, bool(device.allow_multiple_allocations)


def _reader(selector: Selector) -> _Reader:
    """Return a function that gives what the selector can see of a device, as one hashable value."""
    read = selector.reads()
    if read is None:
        return _read_all
    names = sorted((kind, domain, name) for kind, domain, name in read if kind in ("attribute", "capacity"))
    shared = any(kind == "allowMultipleAllocations" for kind, _, _ in read)

    def reader(driver: str, device: Device) -> object:
        found: list[object] = [driver]
        attributes, capacity = device.attributes, device.capacity
        for kind, domain, name in names:
            if kind == "attribute":
                found.append(attributes.get(f"{domain}/{name}"))
                if domain == driver:
                    found.append(attributes.get(name))
            else:
                amount = capacity.get(f"{domain}/{name}")
                found.append(None if amount is None else amount.value)
                if domain == driver:
                    amount = capacity.get(name)
                    found.append(None if amount is None else amount.value)
        if shared:
            found.append(device.allow_multiple_allocations)
        return tuple(found)

    return reader


def _derived_program(expression: str) -> Program | str:
    try:
        program = environment().compile(expression)
    except CompileError as error:
        return f"compile: {error}"
    output = str(program.output)
    element = output.removeprefix("list(").removesuffix(")")
    if element not in ("bool", "int", "string", "dyn", "kubernetes.Semver"):
        return f"compile: a derived attribute cannot be of type {output}"
    return program


def _attribute(value: Any) -> DeviceAttribute | str:
    single = _scalar(value)
    if single is not None:
        kind, content = single
        return msgspec.convert({_FIELDS[kind][0]: content}, DeviceAttribute)
    try:
        elements = [] if isinstance(value, bytes) else list(value)
    except TypeError:
        return f"unsupported CEL return type: {type(value).__name__}"
    if isinstance(value, bytes):
        return "unsupported CEL return type: []uint8"
    if not elements:
        return DeviceAttribute(strings=())
    scalars = [_scalar(element) for element in elements]
    if scalars[0] is None:
        return f"unsupported list element type: {type(elements[0]).__name__}"
    kind = scalars[0][0]
    for index, scalar in enumerate(scalars):
        if scalar is None or scalar[0] != kind:
            return f"expected list element at index {index} to be {kind}, got {type(elements[index]).__name__}"
    content = [scalar[1] for scalar in scalars if scalar is not None]
    return msgspec.convert({_FIELDS[kind][1]: content}, DeviceAttribute)


_FIELDS = {
    "bool": ("bool", "bools"),
    "int": ("int", "ints"),
    "string": ("string", "strings"),
    "semver": ("version", "versions"),
}


def _scalar(value: Any) -> tuple[str, Any] | None:
    if isinstance(value, bool):
        return "bool", value
    if type(value) is int:
        return "int", value
    if type(value) is str:
        return "string", value
    if isinstance(value, Semver):
        return "semver", str(value)
    return None
