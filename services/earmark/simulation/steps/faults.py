"""Steps that make the API refuse or be slow: fail, delay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from earmark.kube.resources import BY_KIND
from earmark.simulation.document import Field
from earmark.simulation.durations import format_duration
from earmark.simulation.stage import RequestMatch, Stage
from earmark.simulation.steps.base import ReadContext, read_kind

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


def _read_match(fields: Mapping[str, Field]) -> RequestMatch:
    kind = read_kind(fields["kind"])
    subresource = None
    if "subresource" in fields:
        offered = BY_KIND[kind].subresources
        if not offered:
            fields["subresource"].fail(f"{kind} has no subresource")
        subresource = fields["subresource"].string(one_of=offered)
    return RequestMatch(
        verb=fields["verb"].string(one_of=VERBS),
        kind=kind,
        name=fields["name"].string() if "name" in fields else None,
        subresource=subresource,
    )


def _describe(match: RequestMatch) -> dict[str, Any]:
    told = {"verb": match.verb, "kind": match.kind, "name": match.name, "subresource": match.subresource}
    return {key: value for key, value in told.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Fail:
    """Refuse the next matching requests."""

    match: RequestMatch
    times: int
    status: int
    key: ClassVar[str] = "fail"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Fail:
        """Read {verb, kind, name?, subresource?, times, status}."""
        known = {"verb", "kind", "name", "subresource", "times", "status"}
        fields = field.mapping(known, required=("verb", "kind", "times", "status"))
        status = fields["status"].integer()
        if not 400 <= status <= 599:
            fields["status"].fail("must be an HTTP status from 400 to 599")
        return cls(_read_match(fields), fields["times"].integer(1), status)

    def describe(self) -> Mapping[str, Any]:
        """Return which requests, how often and how."""
        return {**_describe(self.match), "times": self.times, "status": self.status}

    async def run(self, stage: Stage) -> None:
        """Arm the fault."""
        stage.fail(self.match, self.times, self.status)


@dataclass(frozen=True, slots=True)
class Delay:
    """Answer matching requests later from now on."""

    match: RequestMatch
    seconds: float
    key: ClassVar[str] = "delay"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Delay:
        """Read {verb, kind, name?, subresource?, by}."""
        fields = field.mapping({"verb", "kind", "name", "subresource", "by"}, required=("verb", "kind", "by"))
        return cls(_read_match(fields), fields["by"].duration())

    def describe(self) -> Mapping[str, Any]:
        """Return which requests and how much."""
        return {**_describe(self.match), "by": format_duration(self.seconds)}

    async def run(self, stage: Stage) -> None:
        """Set the delay."""
        stage.delay(self.match, self.seconds)
