"""Scheduling cycles: what PreFilter finds out about a pod, pinned to one revision, and what later calls keep in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from earmark.dynamicresources.allocator import Problem
from earmark.dynamicresources.claims import UnresolvedClaim, resolve
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.nominations import ClaimNomination
from earmark.dynamicresources.releasable import Releases
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.solving import Fit, Solver
from earmark.dynamicresources.state import World
from earmark.dynamicresources.statuses import SKIP, SUCCESS, Status, error, unresolvable
from earmark.kube.objects import DeviceRequest, ResourceClaim


@dataclass(slots=True)
class ForkShape:
    """What unary AddPod and RemovePod calls have made of one node's fork."""

    removed: dict[str, None] = field(default_factory=dict)
    nominated: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Cycle:
    """One attempt of a pod. World, claims and problem never change; the rest is what its calls have left."""

    id: str
    pod: PodFacts
    world: World
    status: Status
    claims: tuple[ResourceClaim, ...] = ()
    to_allocate: tuple[ResourceClaim, ...] = ()
    problem: Problem | None = None
    # Node -> results that are valid in both passes (E66). Score and Reserve read them.
    results: dict[str, Fit] = field(default_factory=dict)
    # UIDs of claims that were not available on some node; PostFilter may deallocate one.
    unavailable: dict[str, None] = field(default_factory=dict)
    forks: dict[str, ForkShape] = field(default_factory=dict)
    # The state moved under the cycle: the pod is retried, not put to sleep.
    retry: bool = False
    # Holds that were not applied because an earlier nomination has the device (F6), by pod UID.
    ignored_holds: dict[str, ClaimNomination] = field(default_factory=dict)
    # Reserve is done: what happens from now on does not concern the attempt.
    reserved: bool = False

    # What the forks of this cycle release; None until the first one.
    _releases: Releases | None = None

    @property
    def releases(self) -> Releases:
        """The releases of the cycle's world."""
        if self._releases is None:
            self._releases = Releases(self.world)
        return self._releases

    @property
    def own_claims(self) -> frozenset[str]:
        """UIDs of the pod's claims."""
        return frozenset(claim.metadata.uid for claim in self.claims)


def open_cycle(cycle_id: str, world: World, pod: PodFacts, settings: Settings, solver: Solver) -> Cycle:
    """Do what PreFilter does (upstream B6, in its order) and return the cycle with PreFilter's status."""
    if not pod.entries:
        return Cycle(cycle_id, pod, world, SKIP)
    try:
        claims = resolve(pod, world.claim)
    except UnresolvedClaim as reason:
        return Cycle(cycle_id, pod, world, unresolvable(str(reason)))
    if not claims:
        return Cycle(cycle_id, pod, world, SKIP)
    status = _check_claims(world, pod, claims, settings)
    if not status.success:
        return Cycle(cycle_id, pod, world, status)
    to_allocate = tuple(claim for claim in claims if claim.status.allocation is None)
    problem = solver.prepare(world.inventory, to_allocate) if to_allocate else None
    return Cycle(cycle_id, pod, world, SUCCESS, claims, to_allocate, problem)


def _check_claims(world: World, pod: PodFacts, claims: tuple[ResourceClaim, ...], settings: Settings) -> Status:
    for claim in claims:
        uid, name = claim.metadata.uid, "/".join(claim.key)
        if settings.preemption and _is_to_be_taken_from(world, uid, pod.uid):
            return unresolvable(f"resource claim {name} is being deallocated")
        if claim.status.allocation is not None:
            continue
        if uid in world.in_flight:
            return unresolvable(f"resource claim {name} is in the process of being allocated")
        for request in claim.spec.devices.requests:
            status = _check_request(world, f"resource claim {name}, request", request, settings)
            if not status.success:
                return status
    return SUCCESS


def _is_to_be_taken_from(world: World, claim_uid: str, pod_uid: str) -> bool:
    """Whether the claim was released by preempting this very pod: it must not go on with the old allocation (F10)."""
    return any(pod_uid in item.consumers for item in world.victim_claims.of_claim(claim_uid))


def _check_request(world: World, prefix: str, request: DeviceRequest, settings: Settings) -> Status:
    if request.exactly is not None:
        classes = [(request.name, request.exactly.device_class_name)]
    elif request.first_available:
        if not settings.gate("DRAPrioritizedList"):
            return unresolvable(
                f"{prefix} {request.name}: has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        classes = [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available]
    else:
        return unresolvable(f"{prefix} {request.name}: unknown request type")
    for name, class_name in classes:
        if not class_name:
            return error(f"request {name}: unsupported request type")
        if world.inventory.device_class(class_name) is None:
            return unresolvable(f"request {name}: device class {class_name} does not exist")
    return SUCCESS
