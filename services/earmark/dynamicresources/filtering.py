"""Filter: both passes for many nodes, their statuses, and the results that Score and Reserve use.

The two passes are one question: a device must be free in the ledger with nominated pods and in the one without, so that
the result of pass 1 is valid in pass 2 by construction (KEP: Holding capacity; F4, F5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from earmark.dynamicresources.allocator import AllocationError, NodeFacts
from earmark.dynamicresources.bindingconditions import Readiness, readiness
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.forks import Passes, passes
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.solving import Fit, Question, Solver
from earmark.dynamicresources.statuses import (
    CANNOT_ALLOCATE,
    NOT_AVAILABLE,
    SUCCESS,
    WAITING_FOR_DEVICES,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from earmark.kube.objects import AllocationResult, ResourceClaim
from earmark.kube.selectors import node_selector_matches

_OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"


@dataclass(frozen=True, slots=True)
class NodeCheck:
    """One node of a Filter call: pods taken away, nominated pods added (UIDs)."""

    node: str
    removed: tuple[str, ...] = ()
    nominated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A node's status. `with_nominated`: it is that of pass 1, run with nominated pods."""

    status: Status
    with_nominated: bool = False


_Answer = Fit | AllocationError | None
_YES = Fit((), tuple)


@dataclass(slots=True)
class _Work:
    """A node that the allocator has to answer for."""

    index: int
    check: NodeCheck
    node: NodeFacts
    passes: Passes
    unavailable: list[str] = field(default_factory=list)


def run_filter(
    cycle: Cycle, checks: Sequence[NodeCheck], settings: Settings, solver: Solver, now: datetime, *, keep: bool
) -> list[Verdict]:
    """Check the cycle's pod against nodes, in order.

    keep: results and unavailable claims go into the cycle (Filter); otherwise nothing does (FilterForks).
    """
    verdicts: list[Verdict] = [Verdict(SUCCESS)] * len(checks)
    if not cycle.claims:
        return verdicts
    own = cycle.own_claims
    works: list[_Work] = []
    for index, check in enumerate(checks):
        if keep:
            # F4: a result of an earlier call must not outlive this one.
            cycle.results.pop(check.node, None)
        node = cycle.world.nodes.get(check.node) or NodeFacts(check.node)
        ledgers = passes(
            cycle.world,
            check.node,
            # Without the gate nothing is released (E2); a pod of a PodGroup gets nothing by preemption (F45).
            removed=check.removed if settings.preemption and not cycle.pod.in_group else (),
            nominated=check.nominated,
            pod_uid=cycle.pod.uid,
            own_claims=own,
            releases=cycle.releases,
        )
        for item in ledgers.ignored:
            cycle.ignored_holds[item.pod.uid] = item
        works.append(_Work(index, check, node, ledgers, _unavailable_claims(cycle, node, settings, now)))
    answers = _answers(cycle, works, solver, stored_first=settings.preemption) if keep else _fits(cycle, works, solver)
    for work, answer in zip(works, answers, strict=True):
        status = _status(cycle, work, answer, settings, solver, dry_run=not keep)
        nominated = bool(work.check.nominated) and not status.success
        verdicts[work.index] = Verdict(status, nominated)
        if not keep:
            continue
        if isinstance(answer, Fit):
            if status.success and cycle.to_allocate:
                cycle.results[work.check.node] = answer
            # Upstream B7.9: where the allocator fails, unavailable claims are not remembered.
            cycle.unavailable.update(dict.fromkeys(work.unavailable))
    return verdicts


def _answers(cycle: Cycle, works: Sequence[_Work], solver: Solver, *, stored_first: bool) -> list[_Answer]:
    problem = cycle.problem
    if problem is None:
        return [_YES] * len(works)
    answers: list[_Answer] = [None] * len(works)
    open_works: list[int] = []
    for position, work in enumerate(works):
        stored = stored_results(cycle, work.check.node) if stored_first else None
        if stored is not None:
            answer = solver.ask(problem, Question(work.node, work.passes.ledgers), stored)
            if isinstance(answer, tuple):
                answers[position] = _fixed(cycle, answer)
                continue
        open_works.append(position)
    questions = [Question(works[position].node, works[position].passes.ledgers) for position in open_works]
    found = solver.ask_many(problem, cycle.to_allocate, questions)
    for position, outcome in zip(open_works, found, strict=True):
        answers[position] = outcome
    return answers


def _fits(cycle: Cycle, works: Sequence[_Work], solver: Solver) -> list[_Answer]:
    """Answer for a dry run, which asks for yes or no only: nobody reads these results."""
    if cycle.problem is None:
        return [_YES] * len(works)
    questions = [Question(work.node, work.passes.ledgers) for work in works]
    return [
        _YES if answer is True else None if answer is False else answer
        for answer in solver.fit_many(cycle.problem, questions)
    ]


def _fixed(cycle: Cycle, results: tuple[AllocationResult, ...]) -> Fit:
    return Fit(cycle.to_allocate, lambda: results)


def stored_results(cycle: Cycle, node: str) -> tuple[AllocationResult, ...] | None:
    """Return the pod's nominated results on its nominated node, one per claim to allocate (E55).

    None where there are none, or not for every claim: all or nothing (F22, F24, F25).
    """
    nomination = cycle.world.nominations.holding(cycle.pod.uid, node)
    if nomination is None or not nomination.results:
        return None
    results = [nomination.result_for(claim.metadata.uid) for claim in cycle.to_allocate]
    found = tuple(result for result in results if result is not None)
    return found if len(found) == len(results) else None


def _status(cycle: Cycle, work: _Work, answer: _Answer, settings: Settings, solver: Solver, *, dry_run: bool) -> Status:
    """Translate an answer (upstream B7.8, in its order). The split of F1 applies with the gate on only."""
    if isinstance(answer, AllocationError):
        if answer.kind == "timeout":
            return error(f"node {work.node.name}: timed out trying to allocate devices")
        if answer.kind == "node":
            return unresolvable(answer.text)
        return error(answer.text)
    if answer is None:
        if not settings.preemption or cycle.pod.in_group:
            return unresolvable(CANNOT_ALLOCATE)
        if work.unavailable:
            # Removing pods cannot bring a claim here that is allocated elsewhere.
            return unresolvable(CANNOT_ALLOCATE)
        if dry_run and _would_fit_after_reclaiming(cycle, work, solver):
            return unschedulable(WAITING_FOR_DEVICES)
        return unschedulable(CANNOT_ALLOCATE)
    if work.unavailable:
        return unresolvable(NOT_AVAILABLE)
    return SUCCESS


def _would_fit_after_reclaiming(cycle: Cycle, work: _Work, solver: Solver) -> bool:
    """Whether the pod would fit once the node's victim claims are free: then it waits and nobody has to go (F21)."""
    victim_claims = cycle.world.victim_claims.on(work.check.node)
    if not victim_claims or cycle.problem is None:
        return False
    base = work.passes.without.release_all([item.uid for item in victim_claims])
    if base is work.passes.without:
        return False
    ledger = work.passes.with_nominated if work.passes.with_nominated is not None else base
    return isinstance(solver.ask(cycle.problem, Question(work.node, (ledger,))), tuple)


def _unavailable_claims(cycle: Cycle, node: NodeFacts, settings: Settings, now: datetime) -> list[str]:
    return [claim.metadata.uid for claim in cycle.claims if not claim_available_on(claim, node, settings, now)]


def claim_available_on(claim: ResourceClaim, node: NodeFacts, settings: Settings, now: datetime) -> bool:
    """Whether a claim can be used on a node as it is; one that is not allocated can (upstream B7.2 to B7.4)."""
    allocation = claim.status.allocation
    if allocation is None:
        return True
    selector = allocation.node_selector
    if selector is not None and not node_selector_matches(selector, node.labels, node.name):
        return False
    needs_optional = any(result.skip_node_operations for result in allocation.devices.results)
    if needs_optional and _OPTIONAL_NODE_OPERATIONS not in node.declared_features:
        return False
    if settings.gate("DRADeviceBindingConditions") and settings.gate("DRAResourceClaimDeviceStatus"):
        verdict = readiness(claim, now, settings.binding_timeout_seconds)
        return verdict.readiness in (Readiness.READY, Readiness.WAITING)
    return True
