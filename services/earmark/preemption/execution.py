"""What is to be executed and what comes of it, as values, and the words that the API gets to see. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from earmark.kube.objects import Pod
from earmark.kube.wellknown import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from earmark.preemption.values import PodId


class Outcome(enum.Enum):
    """What became of one victim."""

    DELETED = "deleted"
    ALREADY_TERMINATING = "already terminating"
    GONE = "gone"
    # Taken out of Permit or PreBind; it was never bound and is scheduled again.
    PREEMPTED_IN_MEMORY = "preempted in memory"
    FAILED = "failed"
    NOT_ATTEMPTED = "not attempted"


@dataclass(frozen=True, slots=True)
class VictimResult:
    """One victim's outcome, with what the API said where it refused."""

    pod: PodId
    outcome: Outcome
    error: str = ""
    # When it was known; None for victims that nobody looked at.
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A confirmed nomination whose victims have to go."""

    preemptor: PodId
    priority: int
    node_name: str
    generation: int
    victims: tuple[PodId, ...]

    @property
    def key(self) -> tuple[str, int]:
        """What makes repeated orders the same one."""
        return (self.preemptor.uid, self.generation)


def all_not_attempted(victims: Sequence[PodId], why: str) -> tuple[VictimResult, ...]:
    """Return the results of an order that was not begun."""
    return tuple(VictimResult(victim, Outcome.NOT_ATTEMPTED, why) for victim in victims)


def any_failed(results: Sequence[VictimResult]) -> bool:
    """Whether a victim that should go stays."""
    return any(result.outcome in (Outcome.FAILED, Outcome.NOT_ATTEMPTED) for result in results)


def disruption_patch(victim: Pod, scheduler_name: str, now: datetime) -> dict[str, Any]:
    """Return the strategic patch of the victim's status (upstream B7.5), for this UID only (decision F42).

    The transition time is always the present: the disruption controller resets conditions that look stale.
    """
    condition: dict[str, Any] = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": PREEMPTION_BY_SCHEDULER,
        "message": f"{scheduler_name}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if victim.metadata.generation:
        condition["observedGeneration"] = victim.metadata.generation
    return {"metadata": {"uid": victim.metadata.uid}, "status": {"conditions": [condition]}}


def preempted_note(order: Order, *, in_memory: bool) -> str:
    """Return the text of the event on the victim (upstream B7.8)."""
    note = f"Preempted by pod {order.preemptor.uid} on node {order.node_name}"
    return f"{note} (in kube-scheduler memory)." if in_memory else note
