"""A pod that is bound and not finished has its claims allocated and reserved for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from earmark.simulation.cluster import Cluster, display
from earmark.simulation.invariants.base import Broken

BOUND = "bound pod has its claims"


def bound_without_claims(cluster: Cluster, placed_by_hand: Collection[str] = ()) -> Iterator[Broken]:
    """Yield bound pods that lack an allocated claim or its reservation.

    Args: `placed_by_hand` are UIDs of pods that came with spec.nodeName: no scheduler answers for their claims.
    """
    for pod in cluster.pods.values():
        if not pod.spec.node_name or pod.terminal or pod.metadata.uid in placed_by_hand:
            continue
        name = display(*pod.key)
        for entry, claim in cluster.claims_of(pod):
            subject = f"{name}/{entry}"
            if claim is None:
                yield Broken(BOUND, subject, f"{name} runs on {pod.spec.node_name}, its claim {entry!r} does not exist")
            elif claim.status.allocation is None:
                yield Broken(BOUND, subject, f"{name} runs on {pod.spec.node_name}, its claim {entry!r} is unallocated")
            elif all(consumer.uid != pod.metadata.uid for consumer in claim.status.reserved_for):
                detail = f"{name} runs on {pod.spec.node_name}, its claim {entry!r} is not reserved for it"
                yield Broken(BOUND, subject, detail)
