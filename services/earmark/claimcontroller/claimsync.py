"""What has to be written for one claim: reservations released, the allocation cleared, the claim deleted. Pure."""

from __future__ import annotations

import enum
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from earmark.claimcontroller.names import done
from earmark.kube.objects import OwnerReference, Pod, ResourceClaim, ResourceClaimConsumerReference
from earmark.kube.wellknown import DELETE_PROTECTION


class Fate(enum.Enum):
    """What is known of a claim's consumer or owner."""

    # Needs the claim, or is of a kind that this controller does not know and never releases (upstream C3.4).
    STAYS = "stays"
    ENDED = "ended"
    # The cache does not know it: the API decides.
    LOOK_UP = "look up"


def fate_of_pod(uid: str, cached: Pod | None, deleted_uids: Container[str]) -> Fate:
    """Judge a pod by its UID, the cached pod of its name and the UIDs seen going (upstream C3.2)."""
    if uid in deleted_uids:
        return Fate.ENDED
    if cached is None:
        return Fate.LOOK_UP
    return fate_of_found(uid, cached)


def fate_of_found(uid: str, found: Pod | None) -> Fate:
    """Judge a pod by what has its name now: nothing, another pod, or itself."""
    if found is None or found.metadata.uid != uid or done(found):
        return Fate.ENDED
    return Fate.STAYS


def owner_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a generated claim belongs to."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.kind == "Pod" and owner.api_version == "v1":
            return owner
    return None


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """Writes for one claim, in the order of the fields."""

    # The reservations that remain; None if none is released.
    reserved_for: tuple[ResourceClaimConsumerReference, ...] | None = None
    deallocate: bool = False
    remove_finalizer: bool = False
    delete: bool = False
    # Reservations whose delay has still to pass, in seconds until the first one is released.
    wait_seconds: float | None = None

    @property
    def writes_status(self) -> bool:
        """Whether the claim's status changes."""
        return self.reserved_for is not None or self.deallocate


def plan_claim(claim: ResourceClaim, remaining_seconds: Mapping[str, float], *, owner: Fate | None = None) -> ClaimPlan:
    """Plan the writes for a claim (upstream C3, C4).

    `remaining_seconds` has, for the UID of each consumer that has ended, how long its release has still to wait (0 or
    less: it is due). `owner` is the fate of the pod that the claim was generated for, if it was.

    Releasing the last reservation clears the allocation, in the same write. A claim that is allocated and has no
    reservations to release is left alone (C3.7), unless it is being deleted (C3.8).
    """
    kept: list[ResourceClaimConsumerReference] = []
    waits: list[float] = []
    for entry in claim.status.reserved_for:
        remaining = remaining_seconds.get(entry.uid) if entry.is_pod else None
        if remaining is None:
            kept.append(entry)
        elif remaining > 0:
            kept.append(entry)
            waits.append(remaining)
    released = len(kept) < len(claim.status.reserved_for)
    protected = DELETE_PROTECTION in claim.metadata.finalizers
    going = claim.metadata.deletion_timestamp is not None
    ends_here = protected and not kept and (released or going)
    return ClaimPlan(
        reserved_for=tuple(kept) if released else None,
        deallocate=ends_here and claim.status.allocation is not None,
        remove_finalizer=ends_here,
        # The controller deletes a finished pod's claim, the garbage collector that of a pod that is gone.
        delete=owner is Fate.ENDED and not going and not waits,
        wait_seconds=min(waits) if waits else None,
    )


def status_patch(claim: ResourceClaim, plan: ClaimPlan, *, keep_allocation: bool = False) -> dict[str, Any]:
    """Return the merge patch of a claim's status, conditional on the claim as it was looked at."""
    status: dict[str, Any] = {}
    if plan.reserved_for is not None:
        status["reservedFor"] = msgspec.to_builtins(plan.reserved_for) or None
    if plan.deallocate and not keep_allocation:
        status["allocation"] = None
    return {"metadata": _version(claim), "status": status}


def deallocation_patch(claim: ResourceClaim) -> dict[str, Any]:
    """Return the merge patch that clears the allocation alone: the second of two writes (decision F50)."""
    return {"metadata": _version(claim), "status": {"allocation": None}}


def finalizer_patch(claim: ResourceClaim) -> dict[str, Any]:
    """Return the merge patch that takes the controller's finalizer away."""
    others = [finalizer for finalizer in claim.metadata.finalizers if finalizer != DELETE_PROTECTION]
    return {"metadata": {**_version(claim), "finalizers": others or None}}


def reservation_patch(claim: ResourceClaim, entry: ResourceClaimConsumerReference) -> dict[str, Any]:
    """Return the merge patch that adds a reservation."""
    return {
        "metadata": _version(claim),
        "status": {"reservedFor": msgspec.to_builtins((*claim.status.reserved_for, entry))},
    }


def _version(claim: ResourceClaim) -> dict[str, str]:
    return {"resourceVersion": claim.metadata.resource_version}
