"""The one predicate that says whether a claim comes free when pods are removed (F16).

RemovePod asks it about a fork, AddNominatedPod about the victims: the answers cannot differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.claims import is_extended_resource_claim
from earmark.dynamicresources.state import World
from earmark.kube.objects import ResourceClaim


def consumers(world: World, claim: ResourceClaim) -> tuple[str, ...]:
    """Return the UIDs of the pods that use a claim: reservedFor, then pods that are assumed and about to be in it."""
    uid = claim.metadata.uid
    return _consumers(claim, [pod for pod, item in world.reservations.items() if uid in item.claim_uids])


def _consumers(claim: ResourceClaim, assumed: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(entry.uid for entry in claim.status.reserved_for if entry.is_pod), *assumed)))


@dataclass(frozen=True, slots=True)
class Release:
    """What the release of one claim depends on. uid: the claim's. pods: its consumers. nodes: where its devices are."""

    uid: str
    pods: tuple[str, ...]
    nodes: tuple[str | None, ...]

    def given(self, world: World, node: str, removed: Collection[str]) -> bool:
        """Whether the devices come free on the node when the pods with UIDs in `removed` are removed.

        Every consumer must be removed, terminate or be gone, and at least one be removed. All devices must be tied to
        this node.
        """
        # Plain loops: this is asked for every pod of every node in every round of a dry run.
        for where in self.nodes:
            if where != node:
                return False
        named = False
        for pod in self.pods:
            if not _goes(world, pod, node, removed):
                return False
            named = named or pod in removed
        return named


class Releases:
    """The claims of one World that can come free at all, each looked at once: a dry run asks for them by the thousand.

    None can whose devices are not tied to a node by an explicit nodeName (E26 to E28) or are all admin accesses, which
    take nothing (F39); whose consumers are not all pods; that backs an extended resource (E32).
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._by_pod: dict[str, tuple[Release, ...]] = {}
        self._assumed: dict[str, list[str]] | None = None

    def of_consumer(self, pod_uid: str) -> tuple[Release, ...]:
        """Return the releases of the claims that a pod uses, in order of discovery."""
        found = self._by_pod.get(pod_uid)
        if found is None:
            # F52: a claim that is not known is nothing to release, never an error.
            claims = map(self._world.claim_by_uid, self._world.claims_of_consumer(pod_uid))
            releases = (self._of(claim) for claim in claims if claim is not None)
            found = self._by_pod[pod_uid] = tuple(release for release in releases if release is not None)
        return found

    def _of(self, claim: ResourceClaim) -> Release | None:
        world = self._world
        allocation = world.allocation_of(claim)
        if allocation is None or is_extended_resource_claim(claim):
            return None
        if not all(entry.is_pod for entry in claim.status.reserved_for):
            return None
        pods = _consumers(claim, self._assuming(claim.metadata.uid))
        if not all(_gives_back(world, claim, pod) for pod in pods):
            return None
        results = allocation.devices.results
        if all(result.admin_access for result in results):
            return None
        nodes: list[str | None] = []
        for result in results:
            node = world.inventory.node_of(result.driver, result.pool, result.device)
            if node not in nodes:
                nodes.append(node)
        return Release(claim.metadata.uid, pods, tuple(nodes))

    def _assuming(self, claim_uid: str) -> Sequence[str]:
        """The pods that are assumed with the claim."""
        if self._assumed is None:
            self._assumed = {}
            for pod_uid, reservation in self._world.reservations.items():
                for uid in reservation.claim_uids:
                    self._assumed.setdefault(uid, []).append(pod_uid)
        return self._assumed.get(claim_uid, ())


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


def released(
    world: World,
    node: str,
    removed: Iterable[str],
    own_claims: Collection[str],
    releases: Releases | None = None,
) -> tuple[str, ...]:
    """Return the UIDs of the claims that come free on the node when these pods are removed, in order of discovery.

    own_claims: UIDs of the preemptor's claims, which it needs itself (F53). releases: of this world, if it is asked
    more than once.
    """
    if releases is None:
        releases = Releases(world)
    gone = dict.fromkeys(removed)
    found: dict[str, None] = {}
    for pod in gone:
        for release in releases.of_consumer(pod):
            uid = release.uid
            if uid not in found and uid not in own_claims and release.given(world, node, gone):
                found[uid] = None
    return tuple(found)
