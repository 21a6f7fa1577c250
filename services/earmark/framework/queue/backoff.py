"""How long a pod backs off (upstream A16.5)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from earmark.framework.queue.entry import QueuedPod

# Ends of backoff are aligned to windows of this many seconds, so that pods of one window leave in order of priority.
WINDOW_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff.

    Attributes: `initial` and `longest` are seconds; a `longest` of 0 switches backoff off.
    """

    initial: float = 1.0
    longest: float = 10.0

    def duration(self, pod: QueuedPod) -> float:
        """Return the seconds for a pod's last failures in a row: errors count by themselves."""
        count = pod.error_count or pod.unschedulable_count
        if count == 0 or self.longest <= 0:
            return 0.0
        # A shift beyond the longest duration would only make large numbers.
        return float(min(self.longest, self.initial * 2 ** min(count - 1, 32)))

    def expiry(self, pod: QueuedPod) -> float:
        """Return when the pod's backoff ends; long ago if it never failed."""
        duration = self.duration(pod)
        return window(pod.timestamp + duration) if duration else -math.inf

    def backing_off(self, pod: QueuedPod, now: float) -> bool:
        """Whether the pod still has to wait."""
        return self.expiry(pod) > window(now)


def window(moment: float) -> float:
    """Return the start of the window that a moment lies in."""
    return math.floor(round(moment, 6) / WINDOW_SECONDS) * WINDOW_SECONDS
