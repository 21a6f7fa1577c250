"""`in` a constant list of simple values: a look-up in a set, which costs nothing (as upstream)."""

from __future__ import annotations

import math
from typing import Any, Final, Literal

from earmark.cel.frames import Frame, Run
from earmark.cel.values import MAX_INT, MAX_UINT, MIN_INT, Failure, Uint, check_hashable

_SIMPLE: Final = frozenset({str, int, Uint, bool, float})


def membership(operand: Run, elements: Any) -> Run | Literal[False] | None:
    """The test, False if the list is empty (the operand is not evaluated then), None if it cannot be a set."""
    if elements.__class__ is not tuple:
        return None
    if not elements:
        return False
    if any(one.__class__ not in _SIMPLE for one in elements):
        return None
    values = {key for one in elements for key in _keys(one)}

    def run(frame: Frame) -> Any:
        value = operand(frame)
        kind = value.__class__
        if kind in _SIMPLE:
            return value == value and (kind, value) in values
        if kind is Failure:
            return value
        check_hashable(value)
        return False

    return run


def _keys(value: Any) -> list[tuple[type, Any]]:
    """A value and the numbers of other types that are taken for it."""
    keys: list[tuple[type, Any]] = [(value.__class__, value)]
    if value.__class__ is float:
        if math.isfinite(value) and value == int(value):
            whole = int(value)
            if MIN_INT < whole < 2**63:
                keys.append((int, whole))
            if 0 <= whole <= MAX_UINT:
                keys.append((Uint, Uint(whole)))
    elif value.__class__ is int:
        keys.append((float, float(value)))
        if value >= 0:
            keys.append((Uint, Uint(value)))
    elif value.__class__ is Uint:
        keys.append((float, float(value)))
        if value <= MAX_INT:
            keys.append((int, int(value)))
    return keys
