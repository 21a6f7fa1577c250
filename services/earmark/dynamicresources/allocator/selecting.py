"""Which devices of a slice the CEL selectors accept, evaluated once per expression and slice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import DeviceAttribute


class Verdicts:
    """What one expression says about the devices of one slice, as far as it has been asked."""

    __slots__ = ("accepted", "errors", "known")

    def __init__(self) -> None:
        self.known = 0
        self.accepted = 0
        self.errors: dict[int, str] = {}


class Judge(Protocol):
    """Evaluates expressions; the CEL engine behind it is devicecel's."""

    def evaluate(self, expression: str, view: SliceView, position: int) -> bool | str:
        """Return whether the device matches, or the text of the error."""

    def derive(self, expression: str, view: SliceView, position: int) -> DeviceAttribute | str | None:
        """Return the value of a derived attribute, or the text of the error (upstream A5.13)."""


def verdicts(view: SliceView, expression: str, wanted: int, judge: Judge) -> Verdicts:
    """Return what the expression says about at least the `wanted` devices of the slice (a bit mask)."""
    key = ("cel", expression)
    found: Verdicts | None = view.views.get(key)
    if found is None:
        found = view.views[key] = Verdicts()
    rest = wanted & ~found.known
    evaluate: Callable[[str, SliceView, int], bool | str] = judge.evaluate
    while rest:
        low = rest & -rest
        rest ^= low
        position = low.bit_length() - 1
        answer = evaluate(expression, view, position)
        if answer is True:
            found.accepted |= low
        elif answer is not False:
            found.errors[position] = answer
    found.known |= wanted
    return found
