"""Seeded faults of holding and deferring: what the plugin records and applies for nominated pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from earmark.dynamicresources import core, filtering, forks, reserving, state
from earmark.dynamicresources.forks import Passes
from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.nominations import ClaimNomination, HeldResult
from earmark.dynamicresources.solving import Fit, Question
from earmark.dynamicresources.state import World
from earmark.dynamicresources.victimclaims import Owner
from support.mutants_patching import Patches

_FIVE_MINUTES = timedelta(minutes=5)


def no_deferral(patches: Patches) -> None:
    """A pod whose victims' claims are still allocated may preempt again."""
    patches.replace(core, "eligible_to_preempt", lambda _: lambda *_, **__: (True, ""))


def no_hold(patches: Patches) -> None:
    """Nominated pods hold nothing."""
    patches.replace(forks, "holding", lambda _: lambda *_: ())


def hold_the_victims_claims(patches: Patches) -> None:
    """What is held is what the victims had."""

    def make(original: Any) -> Any:
        def add(world: World, proposal: Any, solver: Any) -> Any:
            answer = original(world, proposal, solver)
            if answer.nomination is None or not answer.victim_claims:
                return answer
            held = []
            for item in answer.victim_claims:
                claim = world.claim_by_uid(item.uid)
                allocation = world.allocation_of(claim) if claim is not None else None
                if allocation is not None:
                    held.append(HeldResult(item.uid, item.key, allocation))
            changed = replace(answer.nomination, results=tuple(held))
            after = replace(answer.world, nominations=answer.world.nominations.propose(changed))
            return replace(answer, world=after, nomination=changed)

        return add

    patches.replace(core, "add_nominated_pod", make)


def hold_bare_devices(patches: Patches) -> None:
    """Devices are held by name, whatever part of them is needed."""

    def bare(nomination: ClaimNomination) -> ClaimNomination:
        results = []
        for held in nomination.results:
            devices = [
                msgspec.structs.replace(item, share_id=None, consumed_capacity=None)
                for item in held.allocation.devices.results
            ]
            content = msgspec.structs.replace(held.allocation.devices, results=tuple(devices))
            results.append(replace(held, allocation=msgspec.structs.replace(held.allocation, devices=content)))
        return replace(nomination, results=tuple(results))

    def make(original: Any) -> Any:
        def with_holds(world: World, node: str, base: Ledger, holders: Sequence[ClaimNomination], *rest: Any) -> Any:
            return original(world, node, base, tuple(bare(item) for item in holders), *rest)

        return with_holds

    patches.replace(forks, "with_holds", make)


def second_pass_computes_its_own(patches: Patches) -> None:
    """Pass 2 looks for devices by itself, and what it finds is kept."""

    def make(original: Any) -> Any:
        def answers(cycle: Any, works: Any, solver: Any, *, stored_first: bool) -> Any:
            found = original(cycle, works, solver, stored_first=stored_first)
            for position, (work, answer) in enumerate(zip(works, found, strict=True)):
                if cycle.problem is None or not isinstance(answer, Fit) or work.passes.with_nominated is None:
                    continue
                question = Question(work.node, (work.passes.without,))
                found[position] = solver.ask_many(cycle.problem, cycle.to_allocate, [question])[0]
            return found

        return answers

    patches.replace(filtering, "_answers", make)


def no_second_pass(patches: Patches) -> None:
    """What is right with nominated pods is taken for right without them."""
    patches.replace(
        Passes,
        "ledgers",
        lambda _: property(lambda self: (self.without if self.with_nominated is None else self.with_nominated,)),
    )


def literal_second_pass(patches: Patches) -> None:
    """Pass 1 chooses freely; pass 2 refuses its choice though another device is free in both."""

    def make(original: Any) -> Any:
        def answers(cycle: Any, works: Any, solver: Any, *, stored_first: bool) -> Any:
            found = original(cycle, works, solver, stored_first=stored_first)
            for position, work in enumerate(works):
                if cycle.problem is None or work.passes.with_nominated is None or found[position] is None:
                    continue
                first = solver.ask(cycle.problem, Question(work.node, (work.passes.with_nominated,)))
                if not isinstance(first, tuple):
                    continue
                second = solver.ask(cycle.problem, Question(work.node, (work.passes.without,)), first)
                if not isinstance(second, tuple):
                    found[position] = None
            return found

        return answers

    patches.replace(filtering, "_answers", make)


def victim_claims_not_subtracted(patches: Patches) -> None:
    """What is being released counts beside what is held in its place."""

    def make(original: Any) -> Any:
        def with_holds(world: World, node: str, *rest: Any) -> Any:
            bare = replace(world, victim_claims=type(world.victim_claims)())
            return original(bare, node, *rest)

        return with_holds

    patches.replace(forks, "with_holds", make)


def subtracted_once_per_nominated_pod(patches: Patches) -> None:
    """Each nominated pod takes the node's awaited devices off again, also those that an earlier one holds by now."""

    def make(original: Any) -> Any:
        def with_holds(world: World, node: str, base: Ledger, holders: Sequence[ClaimNomination], *rest: Any) -> Any:
            ledger, ignored = original(world, node, base, holders, *rest)
            awaited = set()
            for latch in world.victim_claims.on(node):
                claim = world.claim_by_uid(latch.uid)
                allocation = world.allocation_of(claim) if claim is not None else None
                if allocation is not None:
                    awaited |= {(item.driver, item.pool, item.device) for item in allocation.devices.results}
            for nomination in holders[:-1]:
                for held in nomination.results:
                    devices = {(item.driver, item.pool, item.device) for item in held.allocation.devices.results}
                    if devices <= awaited and not base.holds(held.claim_uid):
                        ledger = ledger.release(held.claim_uid)
            return ledger, ignored

        return with_holds

    patches.replace(forks, "with_holds", make)


def victim_claims_dropped_with_their_preemptor(patches: Patches) -> None:
    """When a nomination ends, what its victims are to release is not awaited any more."""

    def make(original: Any) -> Any:
        def remove(world: World, pod_uid: str, *rest: Any) -> Any:
            before = world.nominations.get(pod_uid)
            after, happened = original(world, pod_uid, *rest)
            if before is not None and after.nominations.get(pod_uid) is None:
                left, _ = after.victim_claims.forgotten(Owner(pod_uid, before.generation), lambda _: True)
                after = replace(after, victim_claims=left)
            return after, happened

        return remove

    patches.replace(core, "remove_nominated_pod", make)


def a_settled_claim_unsettles(patches: Patches) -> None:
    """A claim that was released and is allocated again is awaited again."""
    settled: dict[str, str] = {}

    def looking(original: Any) -> Any:
        def look(world: World, claim_uid: str) -> Any:
            after, gone = original(world, claim_uid)
            settled.update({item.uid: item.node for item in gone})
            return after, gone

        return look

    def asking(original: Any) -> Any:
        def eligible(world: World, pod_uid: str, node: str, **options: Any) -> Any:
            for uid, where in settled.items():
                claim = world.claim_by_uid(uid)
                if where == node and claim is not None and claim.status.allocation is not None:
                    return False, "again"
            return original(world, pod_uid, node, **options)

        return eligible

    patches.replace(state, "look_at_victim_claim", looking)
    patches.replace(reserving, "look_at_victim_claim", looking)
    patches.replace(core, "eligible_to_preempt", asking)


def expiry_after_five_minutes(patches: Patches) -> None:
    """After five minutes a nomination counts no more."""
    now: list[datetime] = []

    def filtering_at(original: Any) -> Any:
        def run(cycle: Any, checks: Any, settings: Any, solver: Any, moment: datetime, *, keep: bool) -> Any:
            now[:] = [moment]
            return original(cycle, checks, settings, solver, moment, keep=keep)

        return run

    def asking(original: Any) -> Any:
        def eligible(world: World, pod_uid: str, node: str, **options: Any) -> Any:
            found = world.nominations.get(pod_uid)
            if found is not None and found.at is not None and now and now[0] - found.at > _FIVE_MINUTES:
                return True, ""
            return original(world, pod_uid, node, **options)

        return eligible

    patches.replace(core, "run_filter", filtering_at)
    patches.replace(core, "eligible_to_preempt", asking)


def nothing_restored(patches: Patches) -> None:
    """A restarted plugin knows nothing of what it held."""

    def make(original: Any) -> Any:
        return lambda world, known, solver: original(world, [replace(item, record=None) for item in known], solver)

    patches.replace(core, "reconcile", make)


def proposals_are_not_recomputed(patches: Patches) -> None:
    """The nomination has no results: only the node is nominated, as for other resources."""

    def make(original: Any) -> Any:
        def add(world: World, proposal: Any, solver: Any) -> Any:
            answer = original(world, proposal, solver)
            if answer.nomination is None:
                return answer
            changed = replace(answer.nomination, results=())
            after = replace(answer.world, nominations=answer.world.nominations.propose(changed))
            return replace(answer, world=after, nomination=changed)

        return add

    patches.replace(core, "add_nominated_pod", make)
