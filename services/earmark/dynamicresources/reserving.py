"""Reserve and Unreserve: what an assumed pod takes, and how it is given back. No API calls here (upstream B8, B9)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

from earmark.dynamicresources.allocator import NodeFacts
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.happened import Happened, HoldReleased, NominationEnded, ReservationReleased
from earmark.dynamicresources.nominating import held_capacity_free
from earmark.dynamicresources.nominations import ClaimNomination, Phase
from earmark.dynamicresources.solving import Question, Solver
from earmark.dynamicresources.state import Change, Reservation, World, look_at_victim_claim
from earmark.dynamicresources.statuses import SUCCESS, Status, error, unschedulable
from earmark.dynamicresources.victimclaims import VictimClaim
from earmark.kube.objects import AllocationResult, ResourceClaim


@dataclass(frozen=True, slots=True)
class Reserved:
    """Reserve's answer."""

    world: World
    happened: tuple[Happened, ...]
    status: Status
    reservation: Reservation | None = None


class ReservationText(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What Unreserve needs when the cycle is gone: the pod's claims, and those that the cycle was to allocate."""

    claims: tuple[str, ...]
    allocates: tuple[str, ...]


def write_text(reservation: Reservation) -> str:
    """Return the reservation as the text that travels to the framework and back."""
    text = ReservationText(claims=reservation.claim_uids, allocates=tuple(reservation.allocations))
    return msgspec.json.encode(text).decode()


def read_text(text: str) -> ReservationText | None:
    """Read write_text's text; None for any other."""
    try:
        return msgspec.json.decode(text, type=ReservationText)
    except (msgspec.DecodeError, ValueError):
        return None


def reserve(world: World, cycle: Cycle, node: str, solver: Solver) -> Reserved:
    """Take the cycle's results for the node in flight, after a look at the live ledger.

    What has changed since the cycle's revision is no error: the pod is retried on the state as it is.
    """
    if not cycle.claims:
        return Reserved(world, (), SUCCESS)
    results: Mapping[str, AllocationResult] = {}
    if cycle.to_allocate:
        found = cycle.results.get(node)
        if found is None:
            return Reserved(world, (), error("claim allocation not found for node"))
        results = found.results
    moved = _moved(world, cycle)
    if moved:
        cycle.retry = True
        return Reserved(world, (), unschedulable(moved))
    if cycle.to_allocate and not _still_fit(world, cycle, node, results, solver):
        cycle.retry = True
        return Reserved(world, (), unschedulable(f"devices on node {node} were taken in the meantime"))
    ledger = world.ledger
    for uid, result in results.items():
        ledger = ledger.charge(uid, result)
    reservation = Reservation(cycle.pod.ref, node, tuple(claim.metadata.uid for claim in cycle.claims), dict(results))
    nomination = world.nominations.get(cycle.pod.uid)
    after = world.changed(
        ledger=ledger,
        in_flight={**world.in_flight, **results},
        reservations={**world.reservations, cycle.pod.uid: reservation},
        nominations=world.nominations.assign(cycle.pod.uid),
    )
    happened: tuple[Happened, ...] = ()
    if nomination is not None and not uses_exactly(nomination, node, results):
        # D2.15, F56: the capacity that was held is not needed any more.
        happened = (HoldReleased(nomination, "placed elsewhere", held_capacity_free(after, nomination, solver)),)
    cycle.reserved = True
    return Reserved(after, happened, SUCCESS, reservation)


def uses_exactly(nomination: ClaimNomination, node: str, results: Mapping[str, AllocationResult]) -> bool:
    """Whether a pod takes what was held for it and leaves nothing of it (F32)."""
    return nomination.node == node and all(
        results.get(held.claim_uid) is not None and _same_devices(results[held.claim_uid], held.allocation)
        for held in nomination.results
    )


def _same_devices(one: AllocationResult, other: AllocationResult) -> bool:
    def devices(result: AllocationResult) -> list[tuple[str, str, str, str, object]]:
        # Share IDs are random and mean nothing (F36).
        return [(r.request, r.driver, r.pool, r.device, r.consumed_capacity) for r in result.devices.results]

    return devices(one) == devices(other)


def _moved(world: World, cycle: Cycle) -> str:
    """Return what has become of the pod's claims since the cycle began, "" if nothing that matters."""
    to_allocate = {claim.metadata.uid for claim in cycle.to_allocate}
    for claim in cycle.claims:
        live = world.claim_by_uid(claim.metadata.uid)
        name = "/".join(claim.key)
        if live is None or live.metadata.deletion_timestamp is not None:
            return f"resource claim {name} was deleted in the meantime"
        if claim.metadata.uid in to_allocate:
            if live.status.allocation is not None or claim.metadata.uid in world.in_flight:
                return f"resource claim {name} was allocated in the meantime"
        elif live.status.allocation is None:
            return f"resource claim {name} was deallocated in the meantime"
    return ""


def _still_fit(world: World, cycle: Cycle, node: str, results: Mapping[str, AllocationResult], solver: Solver) -> bool:
    if world.ledger is cycle.world.ledger and world.inventory is cycle.world.inventory:
        return True
    facts = world.nodes.get(node) or NodeFacts(node)
    problem = solver.prepare(world.inventory, cycle.to_allocate)
    only = [results[claim.metadata.uid] for claim in cycle.to_allocate]
    return isinstance(solver.ask(problem, Question(facts, (world.ledger,)), only), tuple)


def pre_bound(world: World, pod_uid: str) -> World:
    """PreBind has written everything: the API has taken the in-flight allocations' place (upstream B11.6)."""
    reservation = world.reservations.get(pod_uid)
    if reservation is None:
        return world
    written = [uid for uid in reservation.allocations if _written(world.claim_by_uid(uid))]
    in_flight = {uid: value for uid, value in world.in_flight.items() if uid not in written}
    return world.changed(in_flight=in_flight) if len(in_flight) != len(world.in_flight) else world


def _written(claim: ResourceClaim | None) -> bool:
    return claim is not None and claim.status.allocation is not None


def bound(world: World, pod_uid: str) -> World:
    """The pod is bound: reservedFor says what it uses."""
    if pod_uid not in world.reservations:
        return world
    after = pre_bound(world, pod_uid)
    return after.changed(reservations=_without(after.reservations, pod_uid))


def unreserve(world: World, pod_uid: str, solver: Solver, *, uncertain: Collection[str] = ()) -> Change:
    """Give back what the pod has in flight and end its reservation. Idempotent.

    uncertain: UIDs of claims for which a write was sent whose outcome is not known: they stay in flight until it is.
    A nomination that had been assigned ends here, because nominatedNodeName is cleared with it (F8).
    """
    reservation = world.reservations.get(pod_uid)
    if reservation is None:
        return world, ()
    given_back = tuple(uid for uid in reservation.allocations if uid in world.in_flight and uid not in uncertain)
    nominations, ended = world.nominations, None
    live = nominations.live.get(pod_uid)
    if live is not None and live.phase is Phase.ASSIGNED:
        nominations, _ = nominations.remove(pod_uid, live.generation)
        ended = live
    after = world.changed(reservations=_without(world.reservations, pod_uid), nominations=nominations)
    after, happened = release_in_flight(after, reservation, given_back)
    if ended is not None:
        happened = (
            *happened,
            HoldReleased(ended, "cleared", held_capacity_free(after, ended, solver)),
            NominationEnded(ended, "cleared"),
        )
    return after, happened


def release_in_flight(world: World, reservation: Reservation, claim_uids: Collection[str]) -> Change:
    """Take allocations out of flight: what the API has of these claims is all that counts from now on."""
    gone = tuple(uid for uid in claim_uids if uid in world.in_flight)
    in_flight = {uid: value for uid, value in world.in_flight.items() if uid not in gone}
    ledger = world.ledger
    for uid in gone:
        claim = world.claim_by_uid(uid)
        if claim is None or claim.status.allocation is None:
            ledger = ledger.release(uid)
    after = world.changed(in_flight=in_flight, ledger=ledger)
    settled: list[VictimClaim] = []
    for uid in gone:
        after, now_settled = look_at_victim_claim(after, uid)
        settled += now_settled
    return after, (ReservationReleased(reservation.pod, gone, tuple(settled)),)


def _without(items: Mapping[str, Reservation], uid: str) -> dict[str, Reservation]:
    return {key: value for key, value in items.items() if key != uid}
