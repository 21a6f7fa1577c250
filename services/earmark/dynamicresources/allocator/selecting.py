"""The seam to the CEL engine: what the allocator needs of it."""

from __future__ import annotations

from typing import Protocol

from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import DeviceAttribute


class Judge(Protocol):
    """Evaluates the expressions of selectors and derived attributes on devices."""

    def evaluate(self, expression: str, view: SliceView, position: int) -> bool | str:
        """Return whether the device matches, or the text of the error.

        The text begins with "CEL compile error" if no device can be evaluated, else with "CEL runtime error".
        """

    def derive(self, expression: str, view: SliceView, position: int) -> DeviceAttribute | str | None:
        """Return the value of a derived attribute, or the text of the error (upstream A5.13).

        The text begins with "compile: " if it concerns no device.
        """

    def reads(self, expression: str) -> frozenset[str] | None:
        """Return the attributes and capacities that the expression can read, None if that cannot be told.

        An attribute or capacity is named as in the API: "name" or "domain/name".
        """
