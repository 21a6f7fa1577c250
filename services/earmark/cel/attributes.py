"""Attributes: a base (variable, local, any value) and the qualifiers that select from it, resolved in one go.

A qualifier costs 1; reading the whole attribute as a value costs 1 more, testing for presence does not.
"""

from __future__ import annotations

from typing import Any, Final

from earmark.cel.frames import LAZY, Frame, Run
from earmark.cel.values import (
    ABSENT,
    MAX_INT,
    MISSING,
    Failure,
    ListBuilder,
    MapValue,
    NativeMap,
    OptionalValue,
    Uint,
    go_name,
    shown,
    type_name,
)

_INDEXES: Final = frozenset({str, int, Uint, bool, float})


class Constant:
    """A qualifier that is known before."""

    __slots__ = ("index", "optional")

    def __init__(self, index: Any, optional: bool) -> None:
        self.index = index
        self.optional = optional


class Computed:
    """A qualifier that is evaluated; of an attribute used as index only its own qualifiers cost."""

    __slots__ = ("optional", "run")

    def __init__(self, run: Run, optional: bool) -> None:
        self.run = run
        self.optional = optional


class Attribute:
    """A base with qualifiers, or a choice between two attributes."""

    __slots__ = ("base", "choice", "qualifiers", "test")

    def __init__(self, base: Run | None, choice: tuple[Run, Attribute, Attribute] | None = None) -> None:
        self.base = base
        self.choice = choice
        self.qualifiers: list[Constant | Computed] = []
        self.test: str | None = None

    def add(self, qualifier: Constant | Computed) -> None:
        """Select further; a choice passes it to both sides."""
        if self.choice is not None:
            self.choice[1].add(qualifier)
            self.choice[2].add(qualifier)
        else:
            self.qualifiers.append(qualifier)

    def add_test(self, name: str) -> None:
        """End in a test for presence."""
        if self.choice is not None:
            self.choice[1].add_test(name)
            self.choice[2].add_test(name)
        else:
            self.test = name

    def resolve(self) -> Run:
        """A step that gives the value without the cost of reading it."""
        if self.choice is not None:
            return _chosen(*self.choice)
        assert self.base is not None
        if self.test is not None:
            return _tested(_generic(self.base, self.qualifiers, self.test))
        if not self.qualifiers:
            return self.base
        names = [one.index for one in self.qualifiers if isinstance(one, Constant) and not one.optional]
        if len(names) == len(self.qualifiers) and all(name.__class__ is str for name in names):
            return _names(self.base, tuple(names))
        return _generic(self.base, self.qualifiers, None)

    def read(self) -> Run:
        """A step that gives the value, with the cost of reading it."""
        resolve = self.resolve()
        if self.choice is not None:
            return resolve
        return _counted(resolve)


def variable(name: str) -> Run:
    """A step that reads a variable of the environment."""

    def run(frame: Frame) -> Any:
        return frame.variables[name]

    return run


def local(slot: int) -> Run:
    """A step that reads an iteration variable."""

    def run(frame: Frame) -> Any:
        return frame.locals[slot]

    return run


def lazy(slot: int, initial: Run) -> Run:
    """A step that reads an accumulator, which gets its first value when it is first read."""

    def run(frame: Frame) -> Any:
        value = frame.locals[slot]
        if value is LAZY:
            value = frame.locals[slot] = initial(frame)
        return value

    return run


def read_local(slot: int) -> Run:
    """As local, with the cost of reading it: what the bodies of folds do most."""

    def run(frame: Frame) -> Any:
        frame.cost += 1
        if frame.cost > frame.limit:
            frame.cost = frame.limit + 1
            raise frame.exceeded()
        return frame.locals[slot]

    return run


def _counted(resolve: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = resolve(frame)
        frame.cost += 1
        if frame.cost > frame.limit:
            frame.cost = frame.limit + 1
            raise frame.exceeded()
        return value

    return run


def _tested(resolve: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = resolve(frame)
        if value.__class__ is OptionalValue:
            value = bool(value.value)
        if frame.cost > frame.limit:
            frame.cost = frame.limit + 1
            raise frame.exceeded()
        return value

    return run


def _chosen(condition: Run, truthy: Attribute, falsy: Attribute) -> Run:
    yes, no = truthy.resolve(), falsy.resolve()

    def run(frame: Frame) -> Any:
        chosen = condition(frame)
        if chosen is True:
            return yes(frame)
        if chosen is False:
            return no(frame)
        return chosen if chosen.__class__ is Failure else Failure("no such overload")

    return run


def _names(base: Run, names: tuple[str, ...]) -> Run:
    """The common form: constant names only."""
    count = len(names)

    def run(frame: Frame) -> Any:
        value = base(frame)
        frame.cost += count
        left = count
        for name in names:
            kind = value.__class__
            if kind is NativeMap:
                found = value.entries.get(name, MISSING)
            elif kind is OptionalValue or kind is Failure:
                frame.cost -= left
                if kind is Failure:
                    return value
                return _optional_names(frame, value, names[count - left :])
            else:
                found = qualified(value, name)
            left -= 1
            if found is MISSING:
                frame.cost -= left
                return missing(value, name)
            if found.__class__ is Failure:
                frame.cost -= left
                return found
            value = found
        return value

    return run


def _optional_names(frame: Frame, value: OptionalValue, names: tuple[str, ...]) -> Any:
    if not value.value:
        return value
    return _present(frame, value.value[0], [Constant(name, True) for name in names])


def _generic(base: Run, qualifiers: list[Constant | Computed], test: str | None) -> Run:
    def run(frame: Frame) -> Any:
        value = base(frame)
        kind = value.__class__
        if kind is Failure:
            return value
        if kind is OptionalValue:
            if not value.value:
                return value
            return _present(frame, value.value[0], qualifiers, test)
        for position, qualifier in enumerate(qualifiers):
            if qualifier.optional:
                return _present(frame, value, qualifiers[position:], test)
            index = _index(frame, qualifier)
            frame.cost += 1
            if index.__class__ is Failure:
                return index
            found = qualified(value, index)
            if found is MISSING:
                return missing(value, index)
            if found.__class__ is Failure:
                return found
            value = found
        if test is None:
            return value
        frame.cost += 1
        found = qualified(value, test)
        return found if found.__class__ is Failure else found is not MISSING

    return run


def _present(frame: Frame, value: Any, qualifiers: list[Any], test: str | None = None) -> Any:
    """Go on from a value that may turn out to be absent; only what is there costs."""
    for qualifier in [*qualifiers, *([] if test is None else [Constant(test, True)])]:
        index = _index(frame, qualifier)
        if index.__class__ is Failure:
            return index
        found = qualified(value, index)
        if found is MISSING:
            return ABSENT
        if found.__class__ is Failure:
            return found
        frame.cost += 1
        value = found
    return OptionalValue(value)


def _index(frame: Frame, qualifier: Constant | Computed) -> Any:
    if isinstance(qualifier, Constant):
        return qualifier.index
    index = qualifier.run(frame)
    if index.__class__ in _INDEXES or index.__class__ is Failure:
        return index
    return Failure(f"invalid qualifier type: {go_name(index)}")


def qualified(value: Any, index: Any) -> Any:
    """value[index]: MISSING if it is not there, a Failure if it cannot be asked for."""
    if isinstance(value, MapValue):
        return value.find(index)
    if value.__class__ is tuple or value.__class__ is ListBuilder:
        position = list_index(index)
        if position.__class__ is Failure:
            return position
        return value[position] if 0 <= position < len(value) else MISSING
    return MISSING


def list_index(index: Any) -> Any:
    """An index of a list as an int, or a Failure."""
    kind = index.__class__
    if kind is int:
        return index
    if kind is Uint and index <= MAX_INT:
        return int(index)
    if kind is float and index == index and abs(index) < 2.0**63 and index == int(index):
        return int(index)
    if kind is float or kind is Uint:
        return Failure(f"unsupported index value {shown(index)} in list")
    return Failure(f"unsupported index type '{type_name(index)}' in list")


def missing(value: Any, index: Any) -> Failure:
    """The error of an index that is not there."""
    if value.__class__ is tuple or value.__class__ is ListBuilder:
        return Failure(f"index out of bounds: {shown(index)}")
    return Failure(f"no such key: {shown(index)}")
