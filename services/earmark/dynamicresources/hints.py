"""Queueing hints: whether something that happened may make a sleeping pod schedulable (upstream B4; F31 to F33).

Pure. The pod's own stored results are checked by a function that is passed in, because only an allocator can.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from earmark.dynamicresources.claims import UnresolvedClaim, claim_keys, resolve
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.happened import (
    ClaimChanged,
    CleanUpFinished,
    DevicesChanged,
    Happened,
    HoldReleased,
    NominationEnded,
    NominationRecorded,
    PodChanged,
    ReservationReleased,
    VictimClaimsForgotten,
)
from earmark.dynamicresources.nominations import ClaimNomination, Phase
from earmark.dynamicresources.state import World


class Hint(enum.IntEnum):
    """What to do with the pod. The greater one wins over several events."""

    SKIP = 0
    QUEUE = 1
    # Without backoff: a preemptor whose devices are there.
    ACTIVATE = 2


ResultsFree = Callable[[World, ClaimNomination], bool]
"""Whether a nomination's stored results could be allocated in the real state now."""


def hint(world: World, pod_uid: str, event: Happened, *, preemption: bool, results_free: ResultsFree) -> Hint:
    """Judge one event for one sleeping pod, in the state after it.

    preemption: the gate. Pods that are not known (yet) are queued by the event that makes them known.
    """
    pod = world.pods.get(pod_uid)
    if pod is None:
        return Hint.SKIP
    match event:
        case ClaimChanged():
            return _after_claim(world, pod, event, preemption, results_free)
        case PodChanged():
            return _after_pod(world, pod, event)
        case DevicesChanged():
            return Hint.QUEUE
        case HoldReleased():
            return _after_hold(world, pod, event)
        case ReservationReleased():
            return _after_reservation(world, pod, event, preemption, results_free)
        case NominationRecorded():
            own = event.nomination.pod.uid == pod_uid
            return Hint.ACTIVATE if own and event.settled else Hint.SKIP
        case VictimClaimsForgotten():
            return _after_last_victim_claim(world, pod, tuple(item.node for item in event.claims))
        case CleanUpFinished():
            return Hint.QUEUE if event.pod.uid == pod_uid else Hint.SKIP
        case NominationEnded():
            return Hint.SKIP


def _resolvable(world: World, pod: PodFacts) -> bool:
    try:
        resolve(pod, world.claim)
    except UnresolvedClaim:
        return False
    return True


def _nomination(world: World, pod: PodFacts) -> ClaimNomination | None:
    found = world.nominations.get(pod.uid)
    return None if found is None or found.phase is Phase.ASSIGNED else found


def _after_claim(world: World, pod: PodFacts, event: ClaimChanged, preemption: bool, results_free: ResultsFree) -> Hint:
    if event.new is None:
        had = event.old is not None and event.old.status.allocation is not None
        if not had:
            return Hint.SKIP
        if preemption:
            return _after_deallocation(world, pod, event, results_free)
        return Hint.QUEUE
    if not _resolvable(world, pod):
        return Hint.SKIP
    if event.deallocated or event.settled:
        return _after_deallocation(world, pod, event, results_free) if preemption else Hint.QUEUE
    if event.new.key not in claim_keys(pod):
        return Hint.SKIP
    if event.old is None or event.old.status != event.new.status:
        return Hint.QUEUE
    # A claim that was being deleted has been replaced by a usable one under the same name: upstream sees an addition.
    return Hint.SKIP


def _after_deallocation(world: World, pod: PodFacts, event: ClaimChanged, results_free: ResultsFree) -> Hint:
    """A claim came free: a preemptor is woken by its own results or by its node's last victim claim (E90, E91, F31)."""
    nomination = _nomination(world, pod)
    if nomination is None:
        return Hint.QUEUE
    if nomination.results and results_free(world, nomination):
        return Hint.ACTIVATE
    if any(item.node == nomination.node for item in event.settled):
        return Hint.SKIP if world.victim_claims.on(nomination.node) else Hint.ACTIVATE
    return Hint.QUEUE


def _after_reservation(
    world: World, pod: PodFacts, event: ReservationReleased, preemption: bool, results_free: ResultsFree
) -> Hint:
    if not event.in_flight or not _resolvable(world, pod):
        return Hint.SKIP
    nomination = _nomination(world, pod) if preemption else None
    if nomination is None:
        return Hint.QUEUE
    if nomination.results and results_free(world, nomination):
        return Hint.ACTIVATE
    if any(item.node == nomination.node for item in event.settled):
        return Hint.SKIP if world.victim_claims.on(nomination.node) else Hint.ACTIVATE
    return Hint.QUEUE


def _after_last_victim_claim(world: World, pod: PodFacts, nodes: tuple[str, ...]) -> Hint:
    nomination = _nomination(world, pod)
    if nomination is None or nomination.node not in nodes:
        return Hint.SKIP
    return Hint.SKIP if world.victim_claims.on(nomination.node) else Hint.ACTIVATE


def _after_hold(world: World, pod: PodFacts, event: HoldReleased) -> Hint:
    """Capacity that was held for another pod can be had: only pods that the hold was against gain by it (E92, E93)."""
    gone = event.nomination
    if not event.free or gone.pod.uid == pod.uid or pod.priority > gone.priority or not _resolvable(world, pod):
        return Hint.SKIP
    return Hint.QUEUE


def _after_pod(world: World, pod: PodFacts, event: PodChanged) -> Hint:
    """The pod's own claims have been made (upstream B4.5)."""
    if event.new is None or event.new.uid != pod.uid:
        return Hint.SKIP
    changed = event.old is None or event.old.generated != event.new.generated
    return Hint.QUEUE if changed and _resolvable(world, pod) else Hint.SKIP
