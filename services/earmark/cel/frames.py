"""The state of one evaluation: variables, local slots, and the cost so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from earmark.cel.errors import EvaluationAborted
from earmark.cel.limits import COST_EXCEEDED

Run = Callable[["Frame"], Any]

# A local variable whose value is computed when it is first read.
LAZY: Final = object()


class Frame:
    """One evaluation. Steps add to `cost` themselves and call `exceeded` once it is over the limit."""

    __slots__ = ("cost", "limit", "locals", "variables")

    def __init__(self, variables: dict[str, Any], slots: int, limit: int) -> None:
        self.variables = variables
        self.locals: list[Any] = [None] * slots
        self.cost = 0
        self.limit = limit

    def exceeded(self) -> EvaluationAborted:
        """The error to raise once the cost is over the limit."""
        return EvaluationAborted(COST_EXCEEDED)
