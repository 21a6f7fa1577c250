"""Folds: the loops that macros expand to."""

from __future__ import annotations

from typing import Any

from earmark.cel.frames import LAZY, Frame, Run
from earmark.cel.values import Failure, ListBuilder, MapBuilder, MapValue, go_name


def fold(iter_range: Run, slots: tuple[int, int, int | None], condition: Run, step: Run, result: Run) -> Run:
    """A fold over a range.

    Args:
        slots: of the accumulator and of the one or two iteration variables.
        condition: ends the loop when it is false; an error does not.
    """
    accu, first, second = slots

    def run(frame: Frame) -> Any:
        ranged = iter_range(frame)
        if ranged.__class__ is Failure:
            return ranged
        local = frame.locals
        local[accu] = LAZY
        if second is None:
            values = _single(ranged)
            if values.__class__ is Failure:
                return values
            for value in values:
                local[first] = value
                goes_on = condition(frame)
                if goes_on is False:
                    break
                local[accu] = step(frame)
        else:
            pairs = _pairs(ranged)
            if pairs.__class__ is Failure:
                return pairs
            for one, other in pairs:
                local[first] = one
                local[second] = other
                if condition(frame) is False:
                    break
                local[accu] = step(frame)
        value = result(frame)
        if value.__class__ is ListBuilder:
            return tuple(value)
        return MapValue(value.entries) if value.__class__ is MapBuilder else value

    return run


def _single(ranged: Any) -> Any:
    if ranged.__class__ is tuple or ranged.__class__ is ListBuilder:
        return ranged
    if isinstance(ranged, MapValue):
        return tuple(ranged)
    return Failure(f"got '{go_name(ranged)}', expected iterable type")


def _pairs(ranged: Any) -> Any:
    if isinstance(ranged, MapValue):
        return tuple((key, ranged.find(key)) for key in ranged)
    if ranged.__class__ is tuple or ranged.__class__ is ListBuilder:
        return tuple(enumerate(ranged))
    return Failure(f"unsupported comprehension range type: {go_name(ranged)}")
