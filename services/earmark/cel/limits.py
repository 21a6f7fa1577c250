"""Bounds on what one call may build or walk, so that no expression can take memory or time that its cost hides.

Upstream counts the cost of a call after it, so it may build gigabytes first. Whatever is over these bounds would be
over the cost limit of a selector with the next function that looks at it, so it ends with that error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from earmark.cel.errors import EvaluationAborted

COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
# A string of this length costs a selector's whole limit when it is read.
MAX_TEXT: Final = 10_000_000
# So does a list of this length, and so many comparisons within one call.
MAX_ELEMENTS: Final = 1_000_000


def text_bound(length: int) -> None:
    """Refuse to build a string of this length.

    Raises:
        EvaluationAborted: if it is too long.
    """
    if length > MAX_TEXT:
        raise EvaluationAborted(COST_EXCEEDED)


def element_bound(count: int) -> None:
    """Refuse to build a list of this length, or to compare so often.

    Raises:
        EvaluationAborted: if it is too much.
    """
    if count > MAX_ELEMENTS:
        raise EvaluationAborted(COST_EXCEEDED)


def joined(parts: Iterable[str], separator: str = "") -> str:
    """Join parts that are made one by one.

    Raises:
        EvaluationAborted: if the result is too long.
    """
    kept: list[str] = []
    length = 0
    for part in parts:
        length += len(part) + len(separator)
        text_bound(length)
        kept.append(part)
    return separator.join(kept)


class Budget:
    """Steps of a walk through values, which may share parts and so be exponentially larger than they look."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MAX_ELEMENTS

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            EvaluationAborted: if there were too many.
        """
        self.left -= steps
        if self.left < 0:
            raise EvaluationAborted(COST_EXCEEDED)
