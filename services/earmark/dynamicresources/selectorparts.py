"""Which part of a selector a device fails, as one text. Pure.

A cluster has thousands of devices and few kinds of them: an answer holds for all that look alike to the selector.
"""

from __future__ import annotations

from earmark.dynamicresources.celcheck import Part, explain_device
from earmark.dynamicresources.devicecel import (
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.kube.objects import Device

# Longer ones are cut: this is one line of many.
_LONGEST = 160


class SelectorParts:
    """Answers for selectors and devices, remembered for as long as this lives."""

    def __init__(self) -> None:
        self._answers: dict[object, str] = {}

    def failing(self, expression: str, driver: str, device: Device) -> str:
        """Return the innermost part that is not true for the device, with its error if any; "" if all is true."""
        try:
            selector = compile_selector(expression)
        except SelectorCompileError as error:
            return _cut(f"the selector does not compile: {error}")
        key = (expression, driver, _seen(selector, device))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = _failing(selector, driver, device)
        return answer


def _seen(selector: Selector, device: Device) -> object:
    """Return what can make a difference to the selector: what it reads, and what may not be convertible at all."""
    capacity = tuple((name, amount.value) for name, amount in device.capacity.items())
    reads = selector.reads()
    if reads is None:
        return tuple(device.attributes.items()), capacity, device.allow_multiple_allocations
    names = {name for kind, _, name in reads if kind == "attribute"}
    attributes = tuple(
        (name, value)
        for name, value in device.attributes.items()
        if name.rpartition("/")[2] in names or (value.string is None and value.int_ is None and value.bool_ is None)
    )
    return attributes, capacity, device.allow_multiple_allocations


def _failing(selector: Selector, driver: str, device: Device) -> str:
    prepared = prepare_device(driver, device)
    if prepared.error is None:
        try:
            if selector.matches(prepared):
                return ""
        except SelectorRuntimeError:
            # Which part it was is found below.
            pass
    part = _innermost(explain_device(selector, prepared))
    text = " ".join(part.text.split())
    return _cut(f"{text} ({part.error})" if part.error else text)


def _innermost(part: Part) -> Part:
    """Follow the only child that is to blame; of several the whole is."""
    blamed = [one for one in part.parts if one.outcome != "true"]
    return _innermost(blamed[0]) if len(blamed) == 1 else part


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
