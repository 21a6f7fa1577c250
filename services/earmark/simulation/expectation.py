"""What an `expect` step demands, as values. Whether it holds: earmark.simulation.verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values that are accepted; None stands for "not set"."""

    values: tuple[Any, ...]

    def accepts(self, got: Any) -> bool:
        """Whether the value is one of these; "" counts as not set."""
        return (None if got == "" else got) in self.values

    @property
    def wanted(self) -> Any:
        """The demand as it was written: one value, or a list of several."""
        return self.values[0] if len(self.values) == 1 else list(self.values)


@dataclass(frozen=True, slots=True)
class Matches:
    """Regular expressions of which one must be found in the text; None stands for "not set"."""

    patterns: tuple[re.Pattern[str] | None, ...]

    def accepts(self, got: str | None) -> bool:
        """Whether the text is matched."""
        if not got:
            return None in self.patterns
        return any(pattern is not None and pattern.search(got) for pattern in self.patterns)

    @property
    def wanted(self) -> Any:
        """The demand as it was written."""
        texts = [pattern.pattern if pattern is not None else None for pattern in self.patterns]
        return texts[0] if len(texts) == 1 else texts


@dataclass(frozen=True, slots=True)
class PodExpectation:
    """Demands on one pod; what is not there is not checked."""

    values: Mapping[str, OneOf] = field(default_factory=dict)
    message: Matches | None = None


@dataclass(frozen=True, slots=True)
class ClaimExpectation:
    """Demands on one claim."""

    devices: tuple[str, ...] | None = None
    reserved_for: tuple[str, ...] | None = None
    allocated: OneOf | None = None
    absent: OneOf | None = None


@dataclass(frozen=True, slots=True)
class NominationExpectation:
    """Demands on what is held for one pod."""

    node: OneOf | None = None
    devices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class EventExpectation:
    """An Event that must have been recorded."""

    object: str
    reason: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """All demands of one step; None is not checked."""

    pods: Mapping[str, PodExpectation] = field(default_factory=dict)
    claims: Mapping[str, ClaimExpectation] = field(default_factory=dict)
    evicted: tuple[str, ...] | None = None
    evictions: OneOf | None = None
    nominations: Mapping[str, NominationExpectation] | None = None
    events: tuple[EventExpectation, ...] = ()
    metrics: Mapping[str, OneOf] = field(default_factory=dict)
