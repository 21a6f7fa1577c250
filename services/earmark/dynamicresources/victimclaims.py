"""Victim claims: per node, the claims that preemptions released and that are still to be deallocated.

Each is a latch that goes one way: once settled it is out of the record for good, whatever happens to the claim later
(KEP: Claim nomination; F11, F12, F58). Times and the API are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from earmark.dynamicresources.claims import ClaimKey, fingerprint
from earmark.kube.objects import AllocationResult, ResourceClaim


@dataclass(frozen=True, slots=True)
class Owner:
    """A nomination that released a victim claim."""

    preemptor_uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class VictimClaim:
    """One claim that is awaited on a node."""

    uid: str
    key: ClaimKey
    node: str
    resource_version: str
    # Of the allocation that was released; another one means that this one is gone (F12).
    fingerprint: str
    # Set once the allocation is seen in the API: the time is written with it, after it has been in flight.
    timestamp: datetime | None
    # UIDs of pods whose removal releases the claim: victims and pods that were terminating.
    consumers: tuple[str, ...]
    owners: tuple[Owner, ...]

    def seen(self, claim: ResourceClaim | None, in_flight: AllocationResult | None) -> VictimClaim | None:
        """Return the latch after a look at the claim; None when it is settled (F11, F12)."""
        if claim is None or claim.metadata.uid != self.uid:
            return None
        allocation = claim.status.allocation
        if allocation is None:
            allocation = in_flight
        if allocation is None or fingerprint(allocation) != self.fingerprint:
            return None
        stamp = allocation.allocation_timestamp
        if stamp is None or stamp == self.timestamp:
            return self
        if self.timestamp is not None:
            return None
        return replace(self, timestamp=stamp)


def victim_claim(
    claim: ResourceClaim, allocation: AllocationResult, node: str, consumers: Iterable[str], owner: Owner
) -> VictimClaim:
    """Make the latch of a claim that is allocated, or in flight, now."""
    return VictimClaim(
        uid=claim.metadata.uid,
        key=claim.key,
        node=node,
        resource_version=claim.metadata.resource_version,
        fingerprint=fingerprint(allocation),
        timestamp=allocation.allocation_timestamp,
        consumers=tuple(sorted(set(consumers))),
        owners=(owner,),
    )


@dataclass(frozen=True, slots=True)
class VictimClaims:
    """All victim claims that are not settled, by node and claim UID. Immutable."""

    by_node: Mapping[str, Mapping[str, VictimClaim]] = field(default_factory=dict)
    nodes_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def on(self, node: str) -> tuple[VictimClaim, ...]:
        """Return the node's victim claims, oldest first."""
        return tuple(self.by_node.get(node, {}).values())

    def get(self, node: str, claim_uid: str) -> VictimClaim | None:
        """Return one latch."""
        return self.by_node.get(node, {}).get(claim_uid)

    def of_claim(self, claim_uid: str) -> tuple[VictimClaim, ...]:
        """Return the latches of a claim; more than one only after manual changes of bound pods."""
        return tuple(self.by_node[node][claim_uid] for node in self.nodes_of.get(claim_uid, ()))

    def all(self) -> tuple[VictimClaim, ...]:
        """Return every latch, by node, then oldest first."""
        return tuple(item for node in sorted(self.by_node) for item in self.by_node[node].values())

    def of_owner(self, owner: Owner) -> tuple[VictimClaim, ...]:
        """Return what one nomination released."""
        return tuple(item for item in self.all() if owner in item.owners)

    def __len__(self) -> int:
        return sum(len(items) for items in self.by_node.values())

    def recorded(self, item: VictimClaim) -> VictimClaims:
        """Return the record with a latch; one that is there already gets the owner and the consumers added (E73)."""
        old = self.get(item.node, item.uid)
        if old is not None:
            item = replace(
                old,
                owners=(*old.owners, *(owner for owner in item.owners if owner not in old.owners)),
                consumers=tuple(sorted({*old.consumers, *item.consumers})),
            )
        return self._put(item)

    def looked_at(
        self, claim_uid: str, look: Callable[[VictimClaim], VictimClaim | None]
    ) -> tuple[VictimClaims, tuple[VictimClaim, ...]]:
        """Apply a look to a claim's latches; return the record and the latches that settled."""
        new, settled = self, []
        for item in self.of_claim(claim_uid):
            after = look(item)
            if after is None:
                new = new._drop(item)
                settled.append(item)
            elif after is not item:
                new = new._put(after)
        return new, tuple(settled)

    def forgotten(
        self, owner: Owner, which: Callable[[VictimClaim], bool]
    ) -> tuple[VictimClaims, tuple[VictimClaim, ...]]:
        """Take an owner off those of its latches that `which` selects; a latch without an owner is dropped (F15)."""
        new, dropped = self, []
        for item in self.of_owner(owner):
            if not which(item):
                continue
            owners = tuple(other for other in item.owners if other != owner)
            if owners:
                new = new._put(replace(item, owners=owners))
            else:
                new = new._drop(item)
                dropped.append(item)
        return new, tuple(dropped)

    def _put(self, item: VictimClaim) -> VictimClaims:
        nodes = self.nodes_of.get(item.uid, ())
        if item.node not in nodes:
            nodes = (*nodes, item.node)
        return VictimClaims(
            {**self.by_node, item.node: {**self.by_node.get(item.node, {}), item.uid: item}},
            {**self.nodes_of, item.uid: nodes},
        )

    def _drop(self, item: VictimClaim) -> VictimClaims:
        by_node = dict(self.by_node)
        left = {uid: other for uid, other in by_node.pop(item.node).items() if uid != item.uid}
        if left:
            by_node[item.node] = left
        nodes_of = dict(self.nodes_of)
        nodes = tuple(node for node in nodes_of.pop(item.uid) if node != item.node)
        if nodes:
            nodes_of[item.uid] = nodes
        return VictimClaims(by_node, nodes_of)
