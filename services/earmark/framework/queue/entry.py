"""A pod as the queue knows it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from earmark.framework.status import Status
from earmark.kube import objects


class Place(enum.Enum):
    """Where a pod is. The values are those of the RPCs and of the gauge pending_pods."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    # On its way to the active or backoff queue: remote plugins are asked whether it may enter.
    ENTERING = "entering"
    IN_FLIGHT = "in_flight"


class Strategy(enum.IntEnum):
    """What an event means for a pod; a higher one wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


@dataclass(slots=True)
class QueuedPod:
    """A pending pod and its history. Times are seconds of the clock's monotonic()."""

    pod: objects.Pod
    # When it came, and when its last attempt ended: older ones come first among equals.
    added: float
    timestamp: float
    place: Place = Place.UNSCHEDULABLE
    since: float = 0.0
    attempts: int = 0
    unschedulable_count: int = 0
    error_count: int = 0
    # When it first entered the active queue; None while it has only been gated.
    first_active: float | None = None
    # Ordered sets.
    unschedulable_plugins: dict[str, None] = field(default_factory=dict)
    pending_plugins: dict[str, None] = field(default_factory=dict)
    gated_by: Status | None = None
    # How it is to go on once it is let in, and by which event.
    target: Strategy = Strategy.SKIP
    event: str = ""
    # While plugins are asked whether it may enter: an event came, so a refusal is asked about once more.
    ask_again: bool = False
    # Counts its moves: entries of heaps and answers that belong to an earlier place are ignored.
    token: int = 0
    flushed: bool = False
    message: str = ""

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.pod.metadata.uid

    @property
    def gating_plugin(self) -> str:
        """The plugin that keeps it out, "" if none does."""
        return self.gated_by.plugin if self.gated_by else ""
