"""What an emulated kubelet does with a pod: start it, end it, or wait. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from earmark.kube.objects import Pod, ResourceClaim

# Kubernetes' timestamps are cut to whole seconds.
_CUT_OFF = timedelta(seconds=2)


class Action(enum.Enum):
    """What to do now."""

    NOTHING = "nothing"
    START = "start"
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now, or in how many seconds to look again; neither means: when something changes."""

    action: Action = Action.NOTHING
    wait_seconds: float | None = None


IDLE = Step()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the decision about a pod depends on besides the pod."""

    node_exists: bool
    # The node's kubelet is stopped: pods neither start nor finish terminating.
    held: bool
    claims_ready: bool
    # Seconds since the pod was first seen on its node.
    seconds_on_node: float
    startup_seconds: float
    # What is left of a terminating pod's grace period.
    seconds_to_end: float = 0.0


def next_step(pod: Pod, around: Surroundings) -> Step:
    """Decide what happens to a pod next.

    A pod without node, on a node that is gone, or with a finished or running phase is left as it is; so a pod that
    comes with a status keeps it. A pod whose claims are not allocated and reserved for it does not start.
    """
    if not pod.spec.node_name or not around.node_exists or around.held:
        return IDLE
    if pod.metadata.deletion_timestamp is not None:
        if pod.metadata.deletion_grace_period_seconds == 0:
            # Only finalizers keep it: the API removes it with the last one.
            return IDLE
        return _at(Action.END, around.seconds_to_end)
    if pod.status.phase not in ("", "Pending") or not around.claims_ready:
        return IDLE
    return _at(Action.START, around.startup_seconds - around.seconds_on_node)


def seconds_to_end(pod: Pod, now: datetime, default_grace_seconds: int) -> float:
    """Return how long a terminating pod goes on: its grace period, counted from the request.

    The deletion timestamp is the end of the grace period, cut to a second. Within a second of the request the kubelet
    counts by itself, to the fraction, whatever was cut off; later (a restarted one) the timestamp is all there is.
    """
    end = pod.metadata.deletion_timestamp
    if end is None:
        raise ValueError(f"pod {pod.metadata.name}: it is not being deleted")
    grace = pod.metadata.deletion_grace_period_seconds
    if grace is None:
        grace = default_grace_seconds
    left = end - now
    if left + _CUT_OFF > timedelta(seconds=grace):
        return float(grace)
    return left.total_seconds()


def _at(action: Action, seconds: float) -> Step:
    # To the microsecond: sums of fractions of seconds must meet at the instant that is meant.
    left = round(seconds, 6)
    return Step(action) if left <= 0 else Step(wait_seconds=left)


def claims_ready(pod: Pod, claim: Callable[[str], ResourceClaim | None]) -> bool:
    """Whether all of a pod's claims exist, are allocated and are reserved for it (a kubelet refuses it otherwise)."""
    generated = {status.name: status for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name
        if name is None:
            status = generated.get(entry.name)
            if status is None:
                return False
            name = status.resource_claim_name
        # A status without a name says that no claim is needed.
        if name is not None and not _usable(claim(name), pod):
            return False
    extended = pod.status.extended_resource_claim_status
    return extended is None or _usable(claim(extended.resource_claim_name), pod)


def _usable(claim: ResourceClaim | None, pod: Pod) -> bool:
    return (
        claim is not None
        and claim.status.allocation is not None
        and any(entry.uid == pod.metadata.uid for entry in claim.status.reserved_for)
    )


def running_patch(pod: Pod, arrived: datetime, now: datetime) -> dict[str, Any]:
    """Return the strategic patch that makes a pod Running; startTime is when the kubelet first saw it."""
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": _text(now)}
        for kind in ("Initialized", "Ready", "ContainersReady")
    ]
    status: dict[str, Any] = {"phase": "Running", "conditions": conditions}
    if pod.status.start_time is None:
        status["startTime"] = _text(arrived)
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
