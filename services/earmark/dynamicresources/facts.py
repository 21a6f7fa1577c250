"""What the plugin keeps of a pod: enough to resolve its claims and to know whether it goes away, no more."""

from __future__ import annotations

from dataclasses import dataclass

from earmark.kube import objects


@dataclass(frozen=True, slots=True, order=True)
class PodRef:
    """Names one pod. The UID decides; namespace and name are for people and for API calls."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod, reduced."""

    ref: PodRef
    priority: int
    node_name: str
    # deletionTimestamp is set.
    terminating: bool
    # Succeeded or Failed: the claim controller drops it from its claims.
    finished: bool
    # A member of a PodGroup: DRA preemption leaves it alone on both sides (F45, KEP: Non-Goals).
    in_group: bool
    entries: tuple[objects.PodResourceClaim, ...]
    generated: tuple[objects.PodResourceClaimStatus, ...]
    resource_version: int

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.ref.uid

    @property
    def going_away(self) -> bool:
        """Whether its claims come free without anybody's doing: it terminates or has finished."""
        return self.terminating or self.finished


def version(value: objects.Object) -> int:
    """Return an object's resourceVersion as a number; 0 where there is none."""
    text = value.metadata.resource_version
    return int(text) if text.isdigit() else 0


def pod_facts(pod: objects.Pod) -> PodFacts:
    """Reduce a pod."""
    meta = pod.metadata
    return PodFacts(
        ref=PodRef(meta.namespace, meta.name, meta.uid),
        priority=pod.priority,
        node_name=pod.spec.node_name,
        terminating=meta.deletion_timestamp is not None,
        finished=pod.terminal,
        in_group=pod.spec.scheduling_group is not None,
        entries=pod.spec.resource_claims,
        generated=pod.status.resource_claim_statuses,
        resource_version=version(pod),
    )
