"""What a run reports: failures, violations, evictions and the outcome as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Failure:
    """An expectation that did not hold."""

    # Seconds since the start.
    at: float
    # The key in `expect`, such as "pods.preemptor.node".
    path: str
    want: Any
    got: Any


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that was broken."""

    at: float
    invariant: str
    detail: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A deletion by preemption that the API accepted."""

    at: float
    # As reports call it.
    pod: str
    uid: str
    priority: int
    # The pod had been terminating before.
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class SettlementRecord:
    """A settling window; times in seconds since the start, None where the moment has not come."""

    preemptor: str
    node: str
    victims: tuple[str, ...]
    claims: tuple[str, ...]
    t0: float | None
    t1: float | None
    t3: float | None
    t4: float | None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Something that happened: who, what and the details in the order in which they are written."""

    at: float
    service: str
    event: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodRecord:
    """A pod at the end of a run; None where something is not set."""

    node: str | None
    nominated_node: str | None
    phase: str | None
    reason: str | None
    message: str | None
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that a run has shown."""

    scenario: str
    seed: int
    failures: tuple[Failure, ...] = ()
    violations: tuple[Violation, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    pods: Mapping[str, PodRecord] = field(default_factory=dict)
    settlements: tuple[SettlementRecord, ...] = ()
    log: tuple[LogEntry, ...] = ()
    # Virtual seconds that were played.
    duration: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether everything held."""
        return not self.failures and not self.violations

    @property
    def evicted(self) -> tuple[str, ...]:
        """The pods that were preempted, each once, sorted."""
        return tuple(sorted({eviction.pod for eviction in self.evictions}))
