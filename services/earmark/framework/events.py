"""Cluster events: what happened to nodes and pods, in the words that plugins register for ("Node/Add")."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from earmark.kube import objects

NODE_ADD: Final = "Node/Add"
NODE_DELETE: Final = "Node/Delete"
NODE_ALLOCATABLE: Final = "Node/UpdateNodeAllocatable"
NODE_LABEL: Final = "Node/UpdateNodeLabel"
NODE_TAINT: Final = "Node/UpdateNodeTaint"
NODE_CONDITION: Final = "Node/UpdateNodeCondition"
NODE_ANNOTATION: Final = "Node/UpdateNodeAnnotation"
NODE_DECLARED_FEATURE: Final = "Node/UpdateNodeDeclaredFeature"
ASSIGNED_POD_ADD: Final = "AssignedPod/Add"
ASSIGNED_POD_UPDATE: Final = "AssignedPod/Update"
ASSIGNED_POD_DELETE: Final = "AssignedPod/Delete"
POD_ADD: Final = "UnscheduledPod/Add"
POD_LABEL: Final = "UnscheduledPod/UpdatePodLabel"
POD_TOLERATION: Final = "UnscheduledPod/UpdatePodToleration"
POD_GATES_ELIMINATED: Final = "UnscheduledPod/UpdatePodSchedulingGatesEliminated"
POD_SCALE_DOWN: Final = "UnscheduledPod/UpdatePodScaleDown"
POD_GENERATED_CLAIM: Final = "UnscheduledPod/UpdatePodGeneratedResourceClaim"
# Events of the framework itself; the first two move every pod, whoever rejected it (wildcards).
UNSCHEDULABLE_TIMEOUT: Final = "UnschedulableTimeout"
FORCE_ACTIVATE: Final = "ForceActivate"
ATTEMPT_FAILED: Final = "ScheduleAttemptFailure"
BACKOFF_COMPLETE: Final = "BackoffComplete"

WILDCARDS: Final = (UNSCHEDULABLE_TIMEOUT, FORCE_ACTIVATE)

EventObject = objects.Node | objects.Pod | None

Hint = Callable[[objects.Pod, EventObject, EventObject], bool]
"""Says for (pod, old object, new object) whether an event may make the pod schedulable."""


def always(_pod: objects.Pod, _old: EventObject, _new: EventObject) -> bool:
    """The hint of a plugin that has none."""
    return True


def never(_pod: objects.Pod, _old: EventObject, _new: EventObject) -> bool:
    """The hint of a plugin that is interested in an event only for its gate."""
    return False


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something that happened. For a pod's own update and for wake-ups `target` is its UID."""

    name: str
    old: EventObject = None
    new: EventObject = None
    target: str = ""
    # Of a wake-up: the remote plugin that named the pod, and whether backoff is to be passed over.
    plugin: str = ""
    at_once: bool = False

    @property
    def wildcard(self) -> bool:
        """Whether no hint is asked."""
        return self.name in WILDCARDS


def node_changes(old: objects.Node, new: objects.Node) -> tuple[str, ...]:
    """Return the events that a node's update stands for."""
    found = []
    if old.status.allocatable != new.status.allocatable:
        found.append(NODE_ALLOCATABLE)
    if old.metadata.labels != new.metadata.labels:
        found.append(NODE_LABEL)
    if old.spec.taints != new.spec.taints or old.spec.unschedulable != new.spec.unschedulable:
        found.append(NODE_TAINT)
    if _condition_statuses(old) != _condition_statuses(new):
        found.append(NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        found.append(NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        found.append(NODE_DECLARED_FEATURE)
    return tuple(found)


def _condition_statuses(node: objects.Node) -> Mapping[str, str]:
    # Heartbeats change the times of conditions all the time; only the statuses matter.
    return {condition.type: condition.status for condition in node.status.conditions}


def pod_changes(old: objects.Pod, new: objects.Pod) -> tuple[str, ...]:
    """Return the events that an unbound pod's update stands for."""
    found = []
    if old.metadata.labels != new.metadata.labels:
        found.append(POD_LABEL)
    if old.spec.tolerations != new.spec.tolerations:
        found.append(POD_TOLERATION)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        found.append(POD_GATES_ELIMINATED)
    if old.spec.containers != new.spec.containers or old.spec.resources != new.spec.resources:
        found.append(POD_SCALE_DOWN)
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        found.append(POD_GENERATED_CLAIM)
    return tuple(found)
