"""Attribute values under constraints as bit masks (upstream A8)."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.integers import FIRST_ONLY, ConstraintUse
from earmark.dynamicresources.allocator.requests import Alternative
from earmark.dynamicresources.allocator.rows import Numbering
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.sliceview import SliceView
from earmark.kube.objects import DeviceAttribute, DeviceConstraint

Value = tuple[str, object]


def lookup(view: SliceView, name: str) -> list[DeviceAttribute | None]:
    """Return the attribute of each device: by its full name, or without the domain if that is the driver's (A8.2)."""
    domain, slash, bare = name.partition("/")
    if not slash or domain != view.driver:
        return [device.attributes.get(name) for device in view.devices]
    return [device.attributes.get(name) or device.attributes.get(bare) for device in view.devices]


def scalar_value(attribute: DeviceAttribute) -> Value | None:
    """Return type and value of a scalar attribute, None for a list or nothing."""
    if attribute.string is not None:
        return "string", attribute.string
    if attribute.int_ is not None:
        return "int", attribute.int_
    if attribute.bool_ is not None:
        return "bool", attribute.bool_
    if attribute.version is not None:
        return "version", attribute.version
    return None


def list_values(attribute: DeviceAttribute) -> list[Value]:
    """Return the attribute as a list: a scalar is a list of one, nothing is an empty one."""
    if attribute.ints:
        return [("int", value) for value in attribute.ints]
    if attribute.bools:
        return [("bool", value) for value in attribute.bools]
    if attribute.strings:
        return [("string", value) for value in attribute.strings]
    if attribute.versions:
        return [("version", value) for value in attribute.versions]
    value = scalar_value(attribute)
    return [] if value is None else [value]


class AttributeColumns:
    """One constraint's values over all devices of a problem."""

    def __init__(
        self, constraint: DeviceConstraint, features: frozenset[str], judge: Judge, numbering: Numbering
    ) -> None:
        self.match = constraint.match_attribute is not None
        self.name = (constraint.match_attribute if self.match else constraint.distinct_attribute) or ""
        self._lists = gates.LIST_TYPE_ATTRIBUTES in features
        self._judge = judge
        self._rows = numbering.rows
        self._total = numbering.total
        self._bits: dict[Value, int] = {}
        self.errors: dict[tuple[str, int], str] = {}
        self._static: tuple[list[int], list[int], int] | None = None

    def use(self, slot: int, alternative: Alternative, selected: int) -> ConstraintUse:
        """Return the constraint as the alternative meets it."""
        expression = alternative.derived.get(self.name)
        if expression is None:
            if self._static is None:
                attributes = [attribute for row in self._rows for attribute in lookup(row.view, self.name)]
                self._static = self._masks(attributes)
            tests, adds, missing = self._static
            return ConstraintUse(slot, self.match, tests, adds, missing, 0)
        values: list[DeviceAttribute | None] = [None] * self._total
        mines = 0
        for row in self._rows:
            for position in range(row.count):
                number = row.first + position
                if not selected >> number & 1:
                    continue
                value = self._judge.derive(expression, row.view, position)
                if isinstance(value, str):
                    mines |= 1 << number
                    self.errors[expression, number] = value
                else:
                    values[number] = value
        tests, adds, missing = self._masks(values)
        return ConstraintUse(slot, self.match, tests, adds, missing & ~mines, mines)

    def _masks(self, attributes: Sequence[DeviceAttribute | None]) -> tuple[list[int], list[int], int]:
        tests, adds, missing = [], [], 0
        for number, attribute in enumerate(attributes):
            test, add = self._mask(attribute)
            if attribute is None or (self._lists and not add):
                missing |= 1 << number
            tests.append(test)
            adds.append(add)
        return tests, adds, missing

    def _mask(self, attribute: DeviceAttribute | None) -> tuple[int, int]:
        if attribute is None:
            return 0, 0
        if self._lists:
            mask = 0
            for value in list_values(attribute):
                mask |= self._bit(value)
            return mask, mask
        single = scalar_value(attribute)
        if single is not None:
            mask = self._bit(single)
            return mask, mask
        # Lists while the gate is off: accepted as the first device only (upstream A8.4, A8.6).
        return (FIRST_ONLY, 0) if self.match else (-1, FIRST_ONLY)

    def _bit(self, value: Value) -> int:
        # Bit 0 is FIRST_ONLY.
        return 2 << self._bits.setdefault(value, len(self._bits))
