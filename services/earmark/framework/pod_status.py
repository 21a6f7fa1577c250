"""What an attempt writes into a pod: condition, nominatedNodeName and the nomination's record, in one patch (A14.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from earmark.framework import record
from earmark.framework.nominator import NominatedPod
from earmark.kube import objects

POD_SCHEDULED = "PodScheduled"
UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Nominating:
    """What happens to nominatedNodeName: `override` with a nomination sets it, without one clears it."""

    override: bool = False
    nomination: NominatedPod | None = None


KEEP = Nominating()
CLEAR = Nominating(override=True)


def failure_patch(
    pod: objects.Pod, reason: str, message: str, nominating: Nominating, now: datetime, *, deployment: str | None
) -> dict[str, Any] | None:
    """Return the strategic merge patch of pods/status after a failed attempt; None if nothing would change.

    Args:
        pod: the pod as the API has it.
        reason: of the PodScheduled condition.
        message: its full text.
        nominating: what happens to the nomination.
        now: for a condition whose status changes.
        deployment: what the nomination's record is signed with; None if none is written.
    """
    status: dict[str, Any] = {}
    old = next((c for c in pod.status.conditions if c.type == POD_SCHEDULED), None)
    generation = pod.metadata.generation or None
    new = (reason, message, "False", generation)
    if old is None or (old.reason, old.message, old.status, old.observed_generation) != new:
        kept = old.last_transition_time if old is not None and old.status == "False" else None
        moment = kept or now
        condition: dict[str, Any] = {
            "type": POD_SCHEDULED,
            "status": "False",
            "reason": reason,
            "message": message,
            "lastTransitionTime": _text(moment),
        }
        if generation is not None:
            condition["observedGeneration"] = generation
        status["conditions"] = [condition]
    node = nominating.nomination.node if nominating.nomination else ""
    if nominating.override and pod.status.nominated_node_name != node:
        status["nominatedNodeName"] = node or None
    written = None
    if nominating.nomination and deployment is not None:
        written = record.write(nominating.nomination, deployment)
    annotations = _annotations(pod, nominating, written, deployment)
    return _patch(pod, status, annotations)


def clear_patch(pod: objects.Pod) -> dict[str, Any] | None:
    """Return the patch that takes a pod's nomination out of the API; None if there is none."""
    status = {"nominatedNodeName": None} if pod.status.nominated_node_name else {}
    return _patch(pod, status, _annotations(pod, CLEAR, None, None))


def _annotations(
    pod: objects.Pod, nominating: Nominating, written: str | None, deployment: str | None
) -> Mapping[str, str | None]:
    present = pod.metadata.annotations.get(record.ANNOTATION)
    if written is not None:
        return {record.ANNOTATION: written} if present != written else {}
    # A record that does not count (any more) goes with the next patch.
    counts = not nominating.override and deployment is not None and record.read(pod, deployment) is not None
    stale = present is not None and not counts
    return {record.ANNOTATION: None} if stale else {}


def _patch(pod: objects.Pod, status: Mapping[str, Any], annotations: Mapping[str, str | None]) -> dict[str, Any] | None:
    if not status and not annotations:
        return None
    patch: dict[str, Any] = {"metadata": {"uid": pod.metadata.uid}}
    if annotations:
        patch["metadata"]["annotations"] = dict(annotations)
    if status:
        patch["status"] = dict(status)
    return patch


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
