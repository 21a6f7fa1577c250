"""The step that checks: expect."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from earmark.simulation.document import Field
from earmark.simulation.expectation import (
    ClaimExpectation,
    EventExpectation,
    Expectation,
    Matches,
    NominationExpectation,
    OneOf,
    PodExpectation,
)
from earmark.simulation.stage import Stage
from earmark.simulation.steps.base import ReadContext

T = TypeVar("T")

_FLAGS = ("terminating", "absent")
_TEXTS = ("node", "nominatedNode", "phase", "reason", "disruptionTarget")


@dataclass(frozen=True, slots=True)
class Expect:
    """Check what must hold now."""

    expectation: Expectation
    key: ClassVar[str] = "expect"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Expect:
        """Read the demands, all keys of the format."""
        return cls(read_expectation(field))

    def describe(self) -> Mapping[str, Any]:
        """Return nothing: the outcome is logged where it is checked."""
        return {}

    async def run(self, stage: Stage) -> None:
        """Check."""
        await stage.expect(self.expectation)


def read_expectation(field: Field) -> Expectation:
    """Read the demands of one `expect`; raises ScenarioError."""
    known = {"pods", "claims", "evicted", "evictions", "nominations", "events", "metrics"}
    fields = field.mapping(known)
    return Expectation(
        pods=_named(fields.get("pods"), _pod),
        claims=_named(fields.get("claims"), _claim),
        evicted=_strings(fields["evicted"]) if "evicted" in fields else None,
        evictions=_one_of(fields["evictions"], lambda value: value.integer()) if "evictions" in fields else None,
        nominations=_named(fields["nominations"], _nomination) if "nominations" in fields else None,
        events=tuple(_event(item) for item in fields["events"].items()) if "events" in fields else (),
        metrics=_named(fields.get("metrics"), lambda value: _one_of(value, lambda item: item.number())),
    )


def _named(field: Field | None, read: Callable[[Field], T]) -> dict[str, T]:
    return {} if field is None else {name: read(value) for name, value in field.mapping().items()}


def _one_of(field: Field, read: Callable[[Field], Any]) -> OneOf:
    values = field.items() if field.is_list else [field]
    if not values:
        field.fail("must name at least one value")
    return OneOf(tuple(None if value.is_null else read(value) for value in values))


def _strings(field: Field) -> tuple[str, ...]:
    return () if field.is_null else tuple(item.string() for item in field.items())


def _devices(field: Field) -> tuple[str, ...]:
    names = _strings(field)
    for item, name in zip(field.items() if names else [], names, strict=True):
        if "/" not in name.strip("/"):
            item.fail(f"{name!r} is not POOL/DEVICE or DRIVER/POOL/DEVICE")
    return names


def _pod(field: Field) -> PodExpectation:
    fields = field.mapping({*_FLAGS, *_TEXTS, "message"})
    values = {
        name: _one_of(value, (lambda item: item.boolean()) if name in _FLAGS else (lambda item: item.string()))
        for name, value in fields.items()
        if name != "message"
    }
    return PodExpectation(values, _matches(fields["message"]) if "message" in fields else None)


def _matches(field: Field) -> Matches:
    def pattern(value: Field) -> re.Pattern[str]:
        try:
            return re.compile(value.string())
        except re.error as error:
            value.fail(f"is no regular expression: {error}")

    return Matches(_one_of(field, pattern).values)


def _claim(field: Field) -> ClaimExpectation:
    fields = field.mapping({"devices", "reservedFor", "allocated", "absent"})
    return ClaimExpectation(
        devices=_devices(fields["devices"]) if "devices" in fields else None,
        reserved_for=_strings(fields["reservedFor"]) if "reservedFor" in fields else None,
        allocated=_one_of(fields["allocated"], lambda value: value.boolean()) if "allocated" in fields else None,
        absent=_one_of(fields["absent"], lambda value: value.boolean()) if "absent" in fields else None,
    )


def _nomination(field: Field) -> NominationExpectation:
    fields = field.mapping({"node", "devices"})
    return NominationExpectation(
        node=_one_of(fields["node"], lambda value: value.string()) if "node" in fields else None,
        devices=_devices(fields["devices"]) if "devices" in fields else None,
    )


def _event(field: Field) -> EventExpectation:
    fields = field.mapping({"object", "reason"}, required=("object", "reason"))
    return EventExpectation(fields["object"].string(), fields["reason"].string())
