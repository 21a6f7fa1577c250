"""The allocator's way to the CEL of devices: evaluation with the texts that upstream's errors have (upstream A5)."""

from __future__ import annotations

from earmark.dynamicresources.devicecel import (
    PreparedDevice,
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import DeviceAttribute


class CelJudge:
    """Compiles each expression once and evaluates it on devices that are prepared once."""

    def __init__(self) -> None:
        self._selectors: dict[str, Selector | str] = {}

    def evaluate(self, expression: str, view: SliceView, position: int) -> bool | str:
        """Return whether the device matches, or the text of the error."""
        selector = self._selectors.get(expression)
        if selector is None:
            selector = self._selectors[expression] = _compiled(expression)
        if isinstance(selector, str):
            return selector
        try:
            return selector.matches(_prepared(view, position))
        except SelectorRuntimeError as error:
            return f"CEL runtime error: {error}"

    def derive(self, expression: str, view: SliceView, position: int) -> DeviceAttribute | str | None:
        """Return the value of a derived attribute, or the text of the error."""
        return f"not supported: {expression} on {view.devices[position].name}"

    def reads(self, expression: str) -> frozenset[str] | None:
        """Return the attributes that the expression can read, None if that cannot be told."""
        return None


def _compiled(expression: str) -> Selector | str:
    try:
        return compile_selector(expression)
    except SelectorCompileError as error:
        return f"CEL compile error: {error}"


def _prepared(view: SliceView, position: int) -> PreparedDevice:
    prepared: dict[int, PreparedDevice] = view.views.setdefault("prepared", {})
    found = prepared.get(position)
    if found is None:
        found = prepared[position] = prepare_device(view.driver, view.devices[position])
    return found
