"""The nomination's transitions: AddNominatedPod, ConfirmNominatedPod, RemoveNominatedPod, and the handshake.

Each takes the state and returns the new one with what that means (KEP: Claim nomination; E34 to E54, F7 to F15).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from earmark.dynamicresources.allocator import NodeFacts
from earmark.dynamicresources.claims import UnresolvedClaim, resolve
from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.forks import passes
from earmark.dynamicresources.happened import (
    Happened,
    HoldReleased,
    NominationEnded,
    NominationRecorded,
    VictimClaimsForgotten,
)
from earmark.dynamicresources.nominations import ClaimNomination, HeldResult, Phase
from earmark.dynamicresources.releasable import consumers
from earmark.dynamicresources.solving import Question, Solver
from earmark.dynamicresources.state import Change, World
from earmark.dynamicresources.statuses import SUCCESS, Status, error, unschedulable
from earmark.dynamicresources.victimclaims import Owner, VictimClaim, victim_claim
from earmark.kube.objects import ResourceClaim


class Removal(enum.IntEnum):
    """Why a nomination is removed; the numbers are the contract's."""

    UNSPECIFIED = 0
    ASSUMED = 1
    BOUND = 2
    POD_DELETED = 3
    CLEARED = 4
    EXECUTION_FAILED = 5


OUTCOMES: Mapping[Removal, str] = {
    Removal.UNSPECIFIED: "cleared",
    Removal.ASSUMED: "scheduled",
    Removal.BOUND: "scheduled",
    Removal.POD_DELETED: "deleted",
    Removal.CLEARED: "cleared",
    Removal.EXECUTION_FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What AddNominatedPod is called with."""

    pod: PodFacts
    priority: int
    node: str
    victims: tuple[PodRef, ...]
    generation: int
    # UIDs of the other pods nominated on the node that count: equal or higher priority.
    nominated: tuple[str, ...] = ()
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Proposed:
    """AddNominatedPod's answer. There is no nomination where the status is no success or nothing is to be held."""

    world: World
    status: Status
    nomination: ClaimNomination | None = None
    victim_claims: tuple[VictimClaim, ...] = ()


def add_nominated_pod(world: World, proposal: Proposal, solver: Solver) -> Proposed:
    """Compute what is held for the preemptor and which claims its victims release, and propose it.

    The devices are those of the deterministic allocator with the victims removed and the other nominations applied, in
    the state as it is now (E39, E40). Fails where they cannot be had: nobody is evicted for an allocation that we
    cannot name (F7). A member of a PodGroup gets no nomination (F45), nor does a pod that neither allocates devices
    nor released any (E8).
    """
    pod = proposal.pod
    live = world.nominations.live.get(pod.uid)
    if live is not None and (live.generation, live.node) == (proposal.generation, proposal.node):
        # A repeated call that came late: it must not lie beside the nomination that it has become, and take that one's
        # victim claims with it when the cycle ends.
        return Proposed(world, SUCCESS, live, world.victim_claims.of_owner(live.owner))
    if pod.in_group:
        return Proposed(world, SUCCESS)
    try:
        claims = resolve(pod, world.claim)
    except UnresolvedClaim as reason:
        return Proposed(world, unschedulable(str(reason)))
    own = frozenset(claim.metadata.uid for claim in claims)
    ledgers = passes(
        world,
        proposal.node,
        removed=[victim.uid for victim in proposal.victims],
        nominated=proposal.nominated,
        pod_uid=pod.uid,
        own_claims=own,
    )
    to_allocate = [claim for claim in claims if claim.status.allocation is None]
    held: tuple[HeldResult, ...] = ()
    if to_allocate:
        node = world.nodes.get(proposal.node) or NodeFacts(proposal.node)
        answer = solver.ask(solver.prepare(world.inventory, to_allocate), Question(node, ledgers.ledgers))
        if isinstance(answer, Exception):
            return Proposed(world, error(str(answer)))
        if answer is None:
            return Proposed(world, unschedulable(f"devices on node {proposal.node} are not available any more"))
        held = tuple(
            HeldResult(claim.metadata.uid, claim.key, result) for claim, result in zip(to_allocate, answer, strict=True)
        )
    earlier = world.nominations.proposed.get(pod.uid)
    # A repeated call proposes nothing new, and its record is the first one's.
    at = earlier.at if earlier is not None and earlier.generation == proposal.generation else proposal.at
    nomination = ClaimNomination(
        pod=pod.ref,
        node=proposal.node,
        generation=proposal.generation,
        priority=proposal.priority,
        results=held,
        victims=proposal.victims,
        at=at,
    )
    latches = _latches(world, proposal.node, ledgers.released, nomination.owner)
    after, _ = drop_proposal(world, pod.uid)
    if not held and not latches:
        seen = after.nominations.seen_generation(proposal.generation)
        return Proposed(after.changed(nominations=seen), SUCCESS)
    victim_claims = after.victim_claims
    for latch in latches:
        victim_claims = victim_claims.recorded(latch)
    after = after.changed(nominations=after.nominations.propose(nomination), victim_claims=victim_claims)
    return Proposed(after, SUCCESS, nomination, latches)


def _latches(world: World, node: str, claim_uids: Sequence[str], owner: Owner) -> tuple[VictimClaim, ...]:
    found = []
    for uid in claim_uids:
        claim = world.claim_by_uid(uid)
        if claim is None:
            continue
        allocation = world.allocation_of(claim)
        if allocation is not None:
            found.append(victim_claim(claim, allocation, node, consumers(world, claim), owner))
    return tuple(found)


def drop_proposal(world: World, pod_uid: str) -> Change:
    """Drop a proposal that was not confirmed: nothing has been deleted for it, so its victim claims go too."""
    nominations, item = world.nominations.drop_proposal(pod_uid)
    if item is None:
        return world, ()
    victim_claims, _ = world.victim_claims.forgotten(item.owner, lambda _: True)
    return world.changed(nominations=nominations, victim_claims=victim_claims), ()


def confirm_nominated_pod(world: World, pod_uid: str, generation: int, solver: Solver) -> Change:
    """The nomination is written to the API: the proposal becomes the nomination, what it replaces is gone (E46)."""
    nominations, old = world.nominations.confirm(pod_uid, generation)
    if nominations is world.nominations:
        live = world.nominations.live.get(pod_uid)
        if live is None or live.generation >= generation:
            return world, ()
        # The new preemption concerns no devices, so there was no proposal; it supersedes the old one all the same.
        return remove_nominated_pod(world, pod_uid, live.generation, Removal.CLEARED, (), solver)
    after = world.changed(nominations=nominations)
    item = nominations.live[pod_uid]
    happened: list[Happened] = []
    if old is not None:
        happened += [
            HoldReleased(old, "replaced", held_capacity_free(after, old, solver)),
            NominationEnded(old, "cleared"),
        ]
    latches = after.victim_claims.of_owner(item.owner)
    happened.append(NominationRecorded(item, latches, settled=not after.victim_claims.on(item.node)))
    return after, tuple(happened)


def remove_nominated_pod(
    world: World,
    pod_uid: str,
    generation: int | None,
    reason: Removal,
    victims_not_deleted: Collection[str],
    solver: Solver,
) -> Change:
    """The framework has cleared or replaced a nomination. Victim claims stay, except of victims not deleted (E47, F15).

    generation: nothing newer is removed (F9). A pod that is bound or deleted has no newer one.
    """
    if reason is Removal.ASSUMED:
        nominations = world.nominations.assign(pod_uid)
        return (world, ()) if nominations == world.nominations else (world.changed(nominations=nominations), ())
    limit = None if reason in (Removal.BOUND, Removal.POD_DELETED) else generation
    nominations, gone = world.nominations.remove(pod_uid, limit)
    after = world if not gone else world.changed(nominations=nominations)
    forgotten: list[VictimClaim] = []
    for item in gone:
        if item.phase is Phase.PROPOSED:
            victim_claims, _ = after.victim_claims.forgotten(item.owner, lambda _: True)
            after = replace(after, victim_claims=victim_claims)
    if reason is Removal.EXECUTION_FAILED and victims_not_deleted and generation is not None:
        after, forgotten_now = forget_victim_claims(after, Owner(pod_uid, generation), victims_not_deleted)
        forgotten += forgotten_now
    happened: list[Happened] = []
    if forgotten:
        happened.append(VictimClaimsForgotten(tuple(forgotten)))
    outcome = OUTCOMES[reason]
    for item in gone:
        if item.phase is Phase.PROPOSED:
            continue
        # An assigned nomination has become the pod's allocation; when the pod is bound nothing is given back.
        if not (item.phase is Phase.ASSIGNED and reason is Removal.BOUND):
            happened.append(HoldReleased(item, outcome, held_capacity_free(after, item, solver)))
        happened.append(NominationEnded(item, outcome))
    return after, tuple(happened)


def forget_victim_claims(
    world: World, owner: Owner, victims_not_deleted: Collection[str]
) -> tuple[World, tuple[VictimClaim, ...]]:
    """Take back what an owner awaits of victims that were not deleted and do not terminate."""

    def stays_allocated(item: VictimClaim) -> bool:
        return any(
            pod in victims_not_deleted and (facts := world.pods.get(pod)) is not None and not facts.going_away
            for pod in item.consumers
        )

    victim_claims, dropped = world.victim_claims.forgotten(owner, stays_allocated)
    if victim_claims is world.victim_claims:
        return world, ()
    return world.changed(victim_claims=victim_claims), dropped


def held_capacity_free(world: World, nomination: ClaimNomination, solver: Solver) -> bool:
    """Whether some of what a nomination held can be had in the real state now (E92, E93, F33)."""
    node = world.nodes.get(nomination.node) or NodeFacts(nomination.node)
    awaited = bool(world.victim_claims.on(nomination.node))
    for held in nomination.results:
        claim = world.claim_by_uid(held.claim_uid)
        if claim is not None and claim.status.allocation is None and held.claim_uid not in world.in_flight:
            problem = solver.prepare(world.inventory, (claim,))
            if isinstance(solver.ask(problem, Question(node, (world.ledger,)), (held.allocation,)), tuple):
                return True
            continue
        # The claim is gone with its pod: without victim claims on the node, a device that nobody has is free.
        if not awaited and any(
            not item.admin_access and not world.ledger.device(item.driver, item.pool, item.device).exclusive
            for item in held.allocation.devices.results
        ):
            return True
    return False


def results_free(world: World, nomination: ClaimNomination, solver: Solver) -> bool:
    """Whether the preemptor's stored results could be allocated now, all of them (F31)."""
    claims: list[ResourceClaim] = []
    results = []
    for held in nomination.results:
        claim = world.claim_by_uid(held.claim_uid)
        if claim is None:
            return False
        if claim.status.allocation is None:
            claims.append(claim)
            results.append(held.allocation)
    node = world.nodes.get(nomination.node) or NodeFacts(nomination.node)
    answer = solver.ask(solver.prepare(world.inventory, claims), Question(node, (world.ledger,)), results)
    return isinstance(answer, tuple)


# --- handshake -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """An entry of the framework's nominator, with what this plugin's record says of it."""

    pod: PodRef
    node: str
    generation: int
    record: tuple[ClaimNomination, tuple[VictimClaim, ...]] | None


def reconcile(world: World, known: Iterable[Known], solver: Solver) -> Change:
    """Make the nominations those of the framework's nominator (KEP: 1-to-1; design: Sessions).

    What it does not list is dropped, what it lists and this plugin lacks is restored from its record. Victim claims
    that have settled meanwhile are not restored (F12, F13).
    """
    listed = {item.pod.uid: item for item in known}
    happened: list[Happened] = []
    for uid in [*world.nominations.proposed]:
        world, _ = drop_proposal(world, uid)
    for uid, mine in [*world.nominations.live.items()]:
        entry = listed.get(uid)
        if entry is None or entry.node != mine.node or entry.generation != mine.generation:
            world, more = remove_nominated_pod(world, uid, mine.generation, Removal.CLEARED, (), solver)
            happened += more
    for entry in listed.values():
        nominations = world.nominations.seen_generation(entry.generation)
        world = world if nominations is world.nominations else replace(world, nominations=nominations)
        if entry.pod.uid in world.nominations.live:
            # One that was assigned is nominated again: the binding has failed for no fault of the nomination.
            nominations = world.nominations.unassign(entry.pod.uid)
            world = world if nominations is world.nominations else world.changed(nominations=nominations)
            continue
        if entry.record is None:
            continue
        nomination, recorded = entry.record
        victim_claims = world.victim_claims
        for latch in recorded:
            seen = latch.seen(world.claim(latch.key), world.in_flight.get(latch.uid))
            if seen is not None:
                victim_claims = victim_claims.recorded(seen)
        world = world.changed(nominations=world.nominations.restore(nomination), victim_claims=victim_claims)
        latches = victim_claims.of_owner(nomination.owner)
        settled = not victim_claims.on(nomination.node)
        happened.append(NominationRecorded(nomination, latches, settled, restored=True))
    return world, tuple(happened)
