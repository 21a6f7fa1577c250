"""The one predicate that says whether a claim comes free when pods are removed (F16).

RemovePod asks it about a fork, AddNominatedPod about the victims: the answers cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from earmark.dynamicresources.claims import is_extended_resource_claim
from earmark.dynamicresources.state import World
from earmark.kube.objects import ResourceClaim


def consumers(world: World, claim: ResourceClaim) -> tuple[str, ...]:
    """Return the UIDs of the pods that use a claim: reservedFor, then pods that are assumed and about to be in it."""
    listed = [entry.uid for entry in claim.status.reserved_for if entry.is_pod]
    uid = claim.metadata.uid
    for pod_uid in world.reservations:
        if pod_uid not in listed and uid in world.reservations[pod_uid].claim_uids:
            listed.append(pod_uid)
    return tuple(listed)


def releasable(world: World, claim: ResourceClaim, node: str, removed: Collection[str]) -> bool:
    """Whether the claim's devices come free on the node when the pods with UIDs in `removed` are removed.

    Every consumer must be a pod that is removed, terminates or is gone, none a member of a PodGroup; at least one must
    be removed. All its devices must be tied to this node by an explicit nodeName (E26 to E28), and not all be admin
    accesses, which take nothing (F39). Claims of extended resources are left alone (E32).
    """
    allocation = world.allocation_of(claim)
    if allocation is None or is_extended_resource_claim(claim):
        return False
    if not all(entry.is_pod for entry in claim.status.reserved_for):
        return False
    pods = consumers(world, claim)
    if not any(pod in removed for pod in pods):
        return False
    if not all(_goes(world, pod, node, removed) for pod in pods):
        return False
    if not all(_gives_back(world, claim, pod) for pod in pods):
        return False
    results = allocation.devices.results
    if all(result.admin_access for result in results):
        return False
    inventory = world.inventory
    return all(inventory.node_of(result.driver, result.pool, result.device) == node for result in results)


def _goes(world: World, pod_uid: str, node: str, removed: Collection[str]) -> bool:
    pod = world.pods.get(pod_uid)
    if pod is None:
        # Never seen: it may be one that the cache has not heard of yet, and that runs.
        return pod_uid in world.deleted_pods
    if pod.in_group:
        return False
    if pod.going_away:
        return True
    reservation = world.reservations.get(pod_uid)
    where = pod.node_name or (reservation.node if reservation is not None else "")
    # A pod that is removed here but known to be elsewhere keeps its claim (F18).
    return pod_uid in removed and where in ("", node)


def _gives_back(world: World, claim: ResourceClaim, pod_uid: str) -> bool:
    """Whether the claim is deallocated when the pod is preempted: by the claim controller, or by Unreserve (F10).

    A pod that is assumed and not bound may be preempted in memory. Unreserve then clears what this cycle has allocated;
    a claim that was allocated before only loses the reservation, and nobody would clear it.
    """
    pod, reservation = world.pods.get(pod_uid), world.reservations.get(pod_uid)
    if reservation is None or (pod is not None and (pod.node_name or pod.going_away)):
        return True
    return claim.metadata.uid in reservation.allocations


def released(world: World, node: str, removed: Iterable[str], own_claims: Collection[str]) -> tuple[str, ...]:
    """Return the UIDs of the claims that come free on the node when these pods are removed, in order of discovery.

    own_claims: UIDs of the preemptor's claims, which it needs itself (F53).
    """
    gone = dict.fromkeys(removed)
    found: dict[str, None] = {}
    for pod in gone:
        for uid in world.claims_of_consumer(pod):
            if uid in found or uid in own_claims:
                continue
            claim = world.claim_by_uid(uid)
            # F52: a claim that is not known is nothing to release, never an error.
            if claim is not None and releasable(world, claim, node, gone):
                found[uid] = None
    return tuple(found)
