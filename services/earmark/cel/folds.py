"""Folds: the loops that macros expand to."""

from __future__ import annotations

from typing import Any

from earmark.cel.frames import LAZY, Frame, Run
from earmark.cel.values import NO_OVERLOAD, Failure, ListBuilder, MapBuilder, MapValue, go_name

Slots = tuple[int, int, int | None]


def fold(iter_range: Run, slots: Slots, condition: Run | None, step: Run, result: Run) -> Run:
    """A fold over a range.

    Args:
        slots: of the accumulator and of the one or two iteration variables.
        condition: ends the loop when it is false; an error does not. None: it never ends before the range.
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
                if condition is not None and condition(frame) is False:
                    break
                local[accu] = step(frame)
        else:
            pairs = _pairs(ranged)
            if pairs.__class__ is Failure:
                return pairs
            for one, other in pairs:
                local[first] = one
                local[second] = other
                if condition is not None and condition(frame) is False:
                    break
                local[accu] = step(frame)
        value = result(frame)
        if value.__class__ is ListBuilder:
            return tuple(value)
        return MapValue(value.entries) if value.__class__ is MapBuilder else value

    return run


def quantifier(iter_range: Run, slots: Slots, predicate: Run, ends_at: bool) -> Run:
    """The fold of all() and exists(), with its accumulator in the loop: nested ones are what takes a selector longest.

    The cost is that of the parts upstream evaluates: before each element the accumulator is read and tested, then it is
    read again to be combined with the predicate.

    Args:
        ends_at: the value of the predicate that decides: False of all(), True of exists().
    """
    _, first, second = slots
    test = 3 if ends_at else 2

    def run(frame: Frame) -> Any:
        ranged = iter_range(frame)
        if ranged.__class__ is Failure:
            return ranged
        values = _single(ranged) if second is None else _pairs(ranged)
        if values.__class__ is Failure:
            return values
        local, limit = frame.locals, frame.limit
        so_far: Any = not ends_at
        for value in values:
            if second is None:
                local[first] = value
            else:
                local[first], local[second] = value
            if so_far is ends_at:
                frame.cost += test
                break
            frame.cost += test + 1
            if frame.cost > limit:
                break
            found = predicate(frame)
            if found is ends_at:
                so_far = ends_at
            elif found is not (not ends_at) and so_far.__class__ is not Failure:
                # An error stays until an element decides; the first one counts.
                so_far = found if found.__class__ is Failure else NO_OVERLOAD
        frame.cost += 1
        if frame.cost > limit:
            frame.cost = limit + 1
            raise frame.exceeded()
        return so_far

    return run


def mapping(iter_range: Run, slots: Slots, element: Run, cost: int) -> Run:
    """The fold of map() and transformList() without a condition: one element for each of the range.

    Args:
        cost: of what upstream evaluates beside the element: reading the list so far, making one of the element (unless
            it is constant), adding them.
    """
    _, first, second = slots

    def run(frame: Frame) -> Any:
        ranged = iter_range(frame)
        if ranged.__class__ is Failure:
            return ranged
        values = _single(ranged) if second is None else _pairs(ranged)
        if values.__class__ is Failure:
            return values
        local, limit = frame.locals, frame.limit
        built: list[Any] = []
        failed: Failure | None = None
        for value in values:
            if second is None:
                local[first] = value
            else:
                local[first], local[second] = value
            made = element(frame)
            frame.cost += cost
            if frame.cost > limit:
                break
            if made.__class__ is not Failure:
                built.append(made)
            elif failed is None:
                # The others are evaluated and counted all the same.
                failed = made
        frame.cost += 1
        if frame.cost > limit:
            frame.cost = limit + 1
            raise frame.exceeded()
        return tuple(built) if failed is None else failed

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
