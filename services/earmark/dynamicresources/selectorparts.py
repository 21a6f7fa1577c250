"""Which part of a selector a device fails, as one text. Pure."""

from __future__ import annotations

from earmark.dynamicresources.celcheck import Part, explain_device
from earmark.dynamicresources.devicecel import (
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.kube.objects import Device

# Longer ones are cut: this is one line of many.
_LONGEST = 160


def failing_part(expression: str, driver: str, device: Device) -> str:
    """Return the innermost part that is not true for the device, with its error if it has one; "" if all is true."""
    try:
        selector = compile_selector(expression)
    except SelectorCompileError as error:
        return _cut(f"the selector does not compile: {error}")
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
