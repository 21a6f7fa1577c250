"""The plugin's state as one immutable value, and what the API's events make of it.

A cycle pins a World by keeping it: nothing is copied. The ledger in it is fed by what the API has delivered or
acknowledged, overlaid with in-flight reservations; there is no way back to an older object (F58).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.claims import ClaimKey
from earmark.dynamicresources.facts import PodFacts, PodRef, version
from earmark.dynamicresources.happened import ClaimChanged, DevicesChanged, Happened, PodChanged, VictimClaimsForgotten
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.nominations import Nominations
from earmark.dynamicresources.overlay import OverlayMap
from earmark.dynamicresources.victimclaims import VictimClaim, VictimClaims
from earmark.kube import objects


@dataclass(frozen=True, slots=True)
class Reservation:
    """What an assumed pod has taken: from Reserve until it is bound or gives up."""

    pod: PodRef
    node: str
    # All claims of the pod, and the allocations that this cycle has to write, by claim UID.
    claim_uids: tuple[str, ...]
    allocations: Mapping[str, objects.AllocationResult]


@dataclass(frozen=True, slots=True)
class World:
    """Everything the plugin knows."""

    revision: int = 0
    claims: OverlayMap[ClaimKey, objects.ResourceClaim] = field(default_factory=OverlayMap)
    keys: OverlayMap[str, ClaimKey] = field(default_factory=OverlayMap)
    # Pod UID -> UIDs of claims whose reservedFor names it.
    reserved_by: OverlayMap[str, tuple[str, ...]] = field(default_factory=OverlayMap)
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    # Claim UID -> allocation that has not been seen in the API yet.
    in_flight: Mapping[str, objects.AllocationResult] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    inventory: Inventory = field(default_factory=Inventory)
    nodes: OverlayMap[str, NodeFacts] = field(default_factory=OverlayMap)
    pods: OverlayMap[str, PodFacts] = field(default_factory=OverlayMap)
    # UIDs of deleted pods that a claim still names: that they are gone is known, not guessed.
    deleted_pods: OverlayMap[str, PodRef] = field(default_factory=OverlayMap)
    nominations: Nominations = field(default_factory=Nominations)
    victim_claims: VictimClaims = field(default_factory=VictimClaims)

    def claim(self, key: ClaimKey) -> objects.ResourceClaim | None:
        """Return a claim by namespace and name."""
        return self.claims.get(key)

    def claim_by_uid(self, uid: str) -> objects.ResourceClaim | None:
        """Return a claim by UID."""
        key = self.keys.get(uid)
        return None if key is None else self.claims.get(key)

    def allocation_of(self, claim: objects.ResourceClaim) -> objects.AllocationResult | None:
        """Return what the claim holds: as in the API, else in flight."""
        if claim.status.allocation is not None:
            return claim.status.allocation
        return self.in_flight.get(claim.metadata.uid)

    def claims_of_consumer(self, pod_uid: str) -> tuple[str, ...]:
        """Return the UIDs of the claims that a pod uses: by reservedFor, and by its reservation while it is assumed."""
        listed = self.reserved_by.get(pod_uid) or ()
        reservation = self.reservations.get(pod_uid)
        if reservation is None:
            return listed
        return (*listed, *(uid for uid in reservation.claim_uids if uid not in listed))

    def changed(self, **fields: object) -> World:
        """Return the next revision, with these fields."""
        return replace(self, revision=self.revision + 1, **fields)  # type: ignore[arg-type]


Change = tuple[World, tuple[Happened, ...]]
"""A transition's result: the new state and what it means."""


# --- claims ----------------------------------------------------------------------------------------------------------


def claim_seen(world: World, claim: objects.ResourceClaim, *, written: bool = False) -> Change:
    """Take in a claim that the watch has delivered or, `written`, a write has returned.

    Older objects than the known one change nothing. A write's answer about a claim that is not known (any more) is
    left to the watch: the claim may have been deleted in the meantime.
    """
    old = world.claims.get(claim.key)
    if written and (old is None or old.metadata.uid != claim.metadata.uid):
        return world, ()
    if old is not None and version(claim) <= version(old):
        return world, ()
    happened: tuple[Happened, ...] = ()
    if old is not None and old.metadata.uid != claim.metadata.uid:
        world, happened = _without_claim(world, old)
        old = None
    uid = claim.metadata.uid
    allocation = world.allocation_of(claim)
    after = world.changed(
        claims=world.claims.with_item(claim.key, claim),
        keys=world.keys if old is not None else world.keys.with_item(uid, claim.key),
        reserved_by=_reindexed(world.reserved_by, old, claim),
        ledger=world.ledger.release(uid) if allocation is None else world.ledger.charge(uid, allocation),
    )
    after = _forget_deleted_consumers(after, old, claim)
    after, settled = look_at_victim_claim(after, uid)
    after, lost = _lost_victim_claims(after, claim)
    happened = (*happened, ClaimChanged(old, claim, settled))
    return after, (*happened, VictimClaimsForgotten(lost)) if lost else happened


def claim_deleted(world: World, claim: objects.ResourceClaim) -> Change:
    """Take in that the watch has seen a claim go."""
    known = world.claims.get(claim.key)
    if known is None or known.metadata.uid != claim.metadata.uid:
        return world, ()
    return _without_claim(world, known)


def _without_claim(world: World, claim: objects.ResourceClaim) -> Change:
    uid = claim.metadata.uid
    in_flight = {key: value for key, value in world.in_flight.items() if key != uid}
    after = world.changed(
        claims=world.claims.without(claim.key),
        keys=world.keys.without(uid),
        reserved_by=_reindexed(world.reserved_by, claim, None),
        ledger=world.ledger.release(uid),
        in_flight=in_flight,
    )
    after = _forget_deleted_consumers(after, claim, None)
    after, settled = look_at_victim_claim(after, uid)
    return after, (ClaimChanged(claim, None, settled),)


def _pods_of(claim: objects.ResourceClaim | None) -> tuple[str, ...]:
    if claim is None:
        return ()
    return tuple(entry.uid for entry in claim.status.reserved_for if entry.is_pod)


def _reindexed(
    index: OverlayMap[str, tuple[str, ...]], old: objects.ResourceClaim | None, new: objects.ResourceClaim | None
) -> OverlayMap[str, tuple[str, ...]]:
    before, now = _pods_of(old), _pods_of(new)
    if before == now:
        return index
    claim = new if new is not None else old
    assert claim is not None
    uid = claim.metadata.uid
    for pod in before:
        if pod not in now:
            left = tuple(other for other in index.get(pod) or () if other != uid)
            index = index.with_item(pod, left) if left else index.without(pod)
    for pod in now:
        if pod not in before:
            index = index.with_item(pod, (*(index.get(pod) or ()), uid))
    return index


def _forget_deleted_consumers(
    world: World, old: objects.ResourceClaim | None, new: objects.ResourceClaim | None
) -> World:
    deleted, now = world.deleted_pods, _pods_of(new)
    for pod in _pods_of(old):
        if pod not in now and pod in deleted and world.reserved_by.get(pod) is None:
            deleted = deleted.without(pod)
    return world if deleted is world.deleted_pods else replace(world, deleted_pods=deleted)


# --- victim claims ---------------------------------------------------------------------------------------------------


def look_at_victim_claim(world: World, claim_uid: str) -> tuple[World, tuple[VictimClaim, ...]]:
    """Settle the claim's latches if the claim is free by now (F11); return those that settled."""
    if claim_uid not in world.victim_claims.nodes_of:
        return world, ()
    claim, in_flight = world.claim_by_uid(claim_uid), world.in_flight.get(claim_uid)
    after, settled = world.victim_claims.looked_at(claim_uid, lambda item: item.seen(claim, in_flight))
    return replace(world, victim_claims=after), settled


def _lost_victim_claims(world: World, claim: objects.ResourceClaim) -> tuple[World, tuple[VictimClaim, ...]]:
    """Give up latches of a claim that a pod uses which nobody removes: waiting for it would have no end."""
    uid = claim.metadata.uid
    if uid not in world.victim_claims.nodes_of:
        return world, ()

    def look(item: VictimClaim) -> VictimClaim | None:
        for pod_uid in _pods_of(claim):
            pod = world.pods.get(pod_uid)
            if pod is not None and not pod.going_away and pod_uid not in item.consumers:
                return None
        return item

    after, lost = world.victim_claims.looked_at(uid, look)
    return replace(world, victim_claims=after), lost


# --- pods, nodes, devices --------------------------------------------------------------------------------------------


def pod_seen(world: World, pod: PodFacts) -> Change:
    """Take in a pod that the watch has delivered."""
    old = world.pods.get(pod.uid)
    if old == pod:
        return world, ()
    return world.changed(pods=world.pods.with_item(pod.uid, pod)), (PodChanged(old, pod),)


def pod_deleted(world: World, pod: PodFacts) -> Change:
    """Take in that the watch has seen a pod go. It stays known as gone while a claim names it."""
    old = world.pods.get(pod.uid)
    if old is None:
        return world, ()
    deleted = world.deleted_pods
    if world.reserved_by.get(pod.uid):
        deleted = deleted.with_item(pod.uid, pod.ref)
    return world.changed(pods=world.pods.without(pod.uid), deleted_pods=deleted), (PodChanged(old, None),)


def node_seen(world: World, node: NodeFacts) -> World:
    """Take in a node. Pods that wait for nodes are the framework's to queue again."""
    if world.nodes.get(node.name) == node:
        return world
    return world.changed(nodes=world.nodes.with_item(node.name, node))


def node_deleted(world: World, name: str) -> World:
    """Take in that a node is gone. Victim claims on it end when their claims do (F47)."""
    return world.changed(nodes=world.nodes.without(name))


def devices_changed(world: World, inventory: Inventory, kind: str, name: str, *, gone: bool = False) -> Change:
    """Take in an inventory with one object changed. Only what came or changed can make a pod fit (upstream B4.1)."""
    after = world.changed(inventory=inventory)
    return after, () if gone else (DevicesChanged(kind, name),)
