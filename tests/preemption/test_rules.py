"""The pure rules of a preemption: eligibility, candidates, victims, rounds, the choice, the words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption.candidates import number_of_candidates, potential_nodes, rotated
from earmark.preemption.choose import choose
from earmark.preemption.decision import NominationChange, decide
from earmark.preemption.dryrun import DryRun, DryRunResult, Query
from earmark.preemption.eligibility import (
    NEVER_REASON,
    TERMINATING_REASON,
    Next,
    after_plugins,
    before_plugins,
)
from earmark.preemption.messages import BEING_RECLAIMED, NO_VICTIMS, fit_error
from earmark.preemption.values import (
    SUCCESS,
    Candidate,
    Code,
    Node,
    PodId,
    PotentialVictim,
    Preemptor,
    Situation,
    Status,
)
from earmark.preemption.victims import most_important_first, split_by_budgets

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")
NEVER_FITS = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",), "NodeUnschedulable")
PLUGINS = ("DynamicResources",)


def victim(name: str, priority: int = 0, *, started: int = 0, app: str = "", **fields: Any) -> PotentialVictim:
    """A pod that started so many minutes after NOW."""
    index = fields.pop("index", 0)
    labels = {"app": app} if app else {}
    return PotentialVictim(
        index, PodId("default", name, f"uid-{name}"), priority, NOW + timedelta(minutes=started), labels, **fields
    )


def node(name: str, *pods: PotentialVictim, index: int = 0, status: Status = FULL, **fields: Any) -> Node:
    return Node(index, name, status, pods, **fields)


def situation(*nodes: Node, nominated: str = "", policy: str = "", priority: int = 100, **fields: Any) -> Situation:
    indexed = tuple(replace(item, index=number) for number, item in enumerate(nodes))
    preemptor = Preemptor(PodId("default", "p", "uid-p"), priority, policy, nominated)
    return Situation("cycle", preemptor, indexed, **fields)


def budget(app: str, allowed: int, *, namespace: str = "default", disrupted: Iterable[str] = ()) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": f"pdb-{app}", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


# --- eligibility (B2) ------------------------------------------------------------------------------------------------

GOING = victim("v", terminating=True, preempted_by_scheduler=True)


def test_a_pod_that_must_never_preempt_is_not_eligible() -> None:
    verdict = before_plugins(situation(node("n1"), policy="Never", nominated="n1"), PLUGINS)
    assert (verdict.next, verdict.reason) == (Next.INELIGIBLE, NEVER_REASON)


def test_a_pod_without_nomination_is_eligible() -> None:
    assert before_plugins(situation(node("n1", GOING)), PLUGINS).next is Next.ELIGIBLE


@pytest.mark.kep("F3")
@pytest.mark.parametrize(
    "nodes", [(node("n2"),), (node("n1", GOING, status=NEVER_FITS, unschedulable=True),)], ids=["gone", "cordoned"]
)
def test_a_nominated_node_that_is_gone_or_cordoned_is_no_reason_to_wait(nodes: tuple[Node, ...]) -> None:
    assert before_plugins(situation(*nodes, nominated="n1"), PLUGINS).next is Next.ELIGIBLE


@pytest.mark.kep("F2", "F3")
def test_plugins_are_asked_when_pre_filter_has_rejected_all_nodes() -> None:
    rejected = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("claim is being deleted",), "DynamicResources")
    asked = situation(node("n1", status=rejected), nominated="n1", pre_filter_rejected_by="DynamicResources")
    assert before_plugins(asked, PLUGINS).next is Next.ASK_PLUGINS
    cordoned = situation(
        node("n1", status=rejected, unschedulable=True), nominated="n1", pre_filter_rejected_by="DynamicResources"
    )
    assert before_plugins(cordoned, PLUGINS).next is Next.ELIGIBLE


@pytest.mark.kep("F3")
def test_plugins_are_asked_when_one_of_them_has_ruled_the_nominated_node_out() -> None:
    elsewhere = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("claim is allocated elsewhere",), "DynamicResources")
    assert before_plugins(situation(node("n1", status=elsewhere), nominated="n1"), PLUGINS).next is Next.ASK_PLUGINS
    assert before_plugins(situation(node("n1", status=NEVER_FITS), nominated="n1"), PLUGINS).next is Next.ELIGIBLE


@pytest.mark.kep("E82")
def test_a_pod_waits_for_a_pod_that_terminates_by_preemption_on_its_node() -> None:
    verdict = after_plugins(situation(node("n1", GOING), nominated="n1"))
    assert (verdict.next, verdict.reason) == (Next.INELIGIBLE, TERMINATING_REASON)


@pytest.mark.parametrize(
    "pods",
    [
        (victim("v", terminating=True),),
        (victim("v", preempted_by_scheduler=True),),
        (victim("v", 100, terminating=True, preempted_by_scheduler=True),),
        (),
    ],
    ids=["other cause", "not terminating", "same priority", "none"],
)
def test_a_pod_does_not_wait_for_others(pods: tuple[PotentialVictim, ...]) -> None:
    assert after_plugins(situation(node("n1", *pods), nominated="n1")).next is Next.ELIGIBLE


def test_a_ruled_out_nominated_node_is_eligible_before_the_terminating_pod_is_looked_at() -> None:
    assert after_plugins(situation(node("n1", GOING, status=NEVER_FITS), nominated="n1")).next is Next.ELIGIBLE


# --- candidates (B3) -------------------------------------------------------------------------------------------------


def test_only_unschedulable_nodes_are_tried() -> None:
    wait = Status(Code.ERROR, ("broken",))
    nodes = (node("a"), node("b", status=NEVER_FITS), node("c", status=wait), node("d"))
    assert [item.name for item in potential_nodes(nodes)] == ["a", "d"]


@pytest.mark.parametrize(("nodes", "expected"), [(0, 0), (50, 50), (500, 100), (2000, 200), (2019, 201)])
def test_a_share_of_the_nodes_is_enough_but_not_fewer_than_the_minimum(nodes: int, expected: int) -> None:
    assert number_of_candidates(nodes, min_percentage=10, min_absolute=100) == expected


def test_the_search_begins_at_the_offset_and_goes_round() -> None:
    nodes = tuple(node(name) for name in "abcd")
    assert [item.name for item in rotated(nodes, 6)] == ["c", "d", "a", "b"]
    assert rotated((), 3) == ()


# --- victims (B4.5, B4.6) --------------------------------------------------------------------------------------------


def names(pods: Iterable[PotentialVictim]) -> list[str]:
    return [pod.pod.name for pod in pods]


def test_priority_then_group_then_the_earlier_start_makes_a_pod_more_important() -> None:
    pods = [
        victim("late", 5, started=9),
        victim("low", 1),
        victim("early", 5, started=1),
        victim("member", 5, started=20, in_pod_group=True),
    ]
    assert names(most_important_first(pods)) == ["member", "early", "late", "low"]


def test_equal_pods_keep_the_nodes_order() -> None:
    assert names(most_important_first([victim("b"), victim("a"), victim("c")])) == ["b", "a", "c"]


def test_the_pods_beyond_a_budget_violate_it() -> None:
    pods = [victim("a", app="x"), victim("b", app="x"), victim("c", app="x"), victim("d", app="y")]
    violating, others = split_by_budgets(pods, [budget("x", 2)])
    assert names(violating) == ["c"]
    assert names(others) == ["a", "b", "d"]


def test_a_pod_that_violates_one_budget_is_not_charged_to_the_next() -> None:
    both = {"app": "x", "tier": "t"}
    tier = msgspec.convert(
        {
            "metadata": {"namespace": "default"},
            "spec": {"selector": {"matchLabels": {"tier": "t"}}},
            "status": {"disruptionsAllowed": 1},
        },
        PodDisruptionBudget,
    )
    pods = [replace(victim("a"), labels=both), replace(victim("b"), labels={"tier": "t"})]
    violating, others = split_by_budgets(pods, [budget("x", 0), tier])
    assert names(violating) == ["a"]
    assert names(others) == ["b"]


@pytest.mark.parametrize(
    "harmless",
    [
        budget("x", 0, namespace="other"),
        budget("x", 0, disrupted=["a"]),
        msgspec.convert({"metadata": {"namespace": "default"}, "spec": {"selector": {}}}, PodDisruptionBudget),
        msgspec.convert({"metadata": {"namespace": "default"}}, PodDisruptionBudget),
    ],
    ids=["other namespace", "already disrupted", "empty selector", "no selector"],
)
def test_budgets_that_do_not_count(harmless: PodDisruptionBudget) -> None:
    assert split_by_budgets([victim("a", app="x")], [harmless])[0] == ()


def test_pods_without_labels_violate_nothing() -> None:
    everything = msgspec.convert(
        {
            "metadata": {"namespace": "default"},
            "spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
        },
        PodDisruptionBudget,
    )
    assert split_by_budgets([victim("a")], [everything])[0] == ()


# --- rounds (B4) -----------------------------------------------------------------------------------------------------


def simulate(
    nodes: Sequence[Node],
    fits: Callable[[str, frozenset[str]], bool],
    *,
    budgets: Sequence[PodDisruptionBudget] = (),
    wanted: int = 100,
    priority: int = 100,
) -> tuple[DryRunResult, list[tuple[Query, ...]]]:
    """Run the rounds; `fits(node, removed pods)` is the filter."""
    run = DryRun(nodes, priority, budgets, wanted)
    rounds: list[tuple[Query, ...]] = []
    while not run.done:
        queries = run.queries()
        rounds.append(queries)
        run.apply([SUCCESS if fits(query.node.name, frozenset(names(query.removed))) else FULL for query in queries])
    return run.result(), rounds


def needs(number: int) -> Callable[[str, frozenset[str]], bool]:
    """A filter: the preemptor fits when that many pods are removed."""
    return lambda name, removed: len(removed) >= number


def test_only_as_many_pods_as_needed_go_the_least_important_ones() -> None:
    found, _ = simulate([node("n1", victim("a", 3), victim("b", 1), victim("c", 2))], needs(2))
    assert names(found.candidates[0].victims) == ["c", "b"]


def test_a_pod_of_the_same_priority_is_never_a_victim() -> None:
    found, rounds = simulate([node("n1", victim("equal", 100))], needs(1))
    assert found.candidates == ()
    assert found.statuses == {"n1": NO_VICTIMS}
    assert rounds == []


def test_a_node_where_the_removal_of_all_does_not_help_keeps_the_filters_status() -> None:
    found, rounds = simulate([node("n1", victim("a"))], needs(2))
    assert found.statuses == {"n1": FULL}
    assert len(rounds) == 1


def test_pods_that_violate_a_budget_are_spared_first() -> None:
    pods = [victim("important", 50), victim("guarded", 1, app="x")]
    found, _ = simulate([node("n1", *pods)], needs(1), budgets=[budget("x", 0)])
    assert names(found.candidates[0].victims) == ["important"]
    assert found.candidates[0].pdb_violations == 0


def test_violations_are_counted_over_the_final_victims() -> None:
    pods = [victim("a", 9, app="x"), victim("b", 5, app="x"), victim("c", 1)]
    found, _ = simulate([node("n1", *pods)], needs(2), budgets=[budget("x", 0)])
    assert names(found.candidates[0].victims) == ["b", "c"]
    assert found.candidates[0].pdb_violations == 1


def test_victims_of_both_groups_are_sorted_by_importance() -> None:
    pods = [victim("guarded", 1, app="x"), victim("free", 9)]
    found, _ = simulate([node("n1", *pods)], needs(2), budgets=[budget("x", 0)])
    assert names(found.candidates[0].victims) == ["free", "guarded"]


def test_all_nodes_advance_in_step_and_the_fullest_one_sets_the_number_of_rounds() -> None:
    nodes = [
        node(f"n{number}", *(victim(f"v{number}-{i}", index=i) for i in range(number % 5)), index=number)
        for number in range(40)
    ]
    found, rounds = simulate(nodes, needs(1))
    assert len(rounds) == 4 + 1
    assert len(found.candidates) == 32
    assert [len(queries) for queries in rounds] == [32, 32, 24, 16, 8]


def test_the_first_round_removes_in_the_nodes_order() -> None:
    _, rounds = simulate([node("n1", victim("b", 1), victim("a", 9))], needs(1))
    assert names(rounds[0][0].removed) == ["b", "a"]


@pytest.mark.kep("F21")
def test_a_node_without_victims_waits_for_what_is_being_reclaimed() -> None:
    found, _ = simulate([node("n1", victim("a"))], needs(0))
    assert found.candidates == ()
    assert found.statuses == {"n1": BEING_RECLAIMED}


def test_enough_candidates_end_the_search() -> None:
    nodes = [node(f"n{number}", victim(f"v{number}")) for number in range(10)]
    found, rounds = simulate(nodes, needs(1), wanted=3)
    assert [candidate.node.name for candidate in found.candidates] == ["n0", "n1", "n2"]
    assert [len(queries) for queries in rounds] == [10, 3]


def test_the_search_goes_on_until_one_candidate_violates_no_budget() -> None:
    nodes = [node(f"n{number}", victim(f"v{number}", app="x" if number < 5 else "")) for number in range(8)]
    found, _ = simulate(nodes, needs(1), wanted=2, budgets=[budget("x", 0)])
    assert [candidate.node.name for candidate in found.candidates] == ["n5", "n0", "n1", "n2", "n3", "n4"]


def test_a_filter_that_breaks_while_a_pod_is_spared_makes_it_a_victim() -> None:
    run = DryRun([node("n1", victim("a"))], 100, (), 100)
    run.apply([SUCCESS])
    run.apply([Status(Code.ERROR, ("broken",))])
    assert names(run.result().candidates[0].victims) == ["a"]


def test_wrong_numbers_of_verdicts_are_refused() -> None:
    run = DryRun([node("n1", victim("a"))], 100, (), 100)
    with pytest.raises(ValueError, match="want 1, got 0"):
        run.apply([])
    with pytest.raises(RuntimeError):
        run.result()


# --- the choice (B5) -------------------------------------------------------------------------------------------------


def candidate(index: int, *victims: PotentialVictim, violations: int = 0) -> Candidate:
    return Candidate(node(f"n{index}", index=index), most_important_first(victims), violations)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (candidate(0, victim("a"), violations=1), candidate(1, victim("b", 9))),
        (candidate(0, victim("a", 5)), candidate(1, victim("b", 4), victim("c", 4))),
        (candidate(0, victim("a", 5), victim("b", 4)), candidate(1, victim("c", 5), victim("d", 3))),
        (candidate(0, victim("a", -9), victim("b", -9)), candidate(1, victim("c", -9))),
        (candidate(0, victim("a", 5), victim("b", -(2**31))), candidate(1, victim("c", 5))),
        (candidate(0, victim("a", 5, started=1)), candidate(1, victim("b", 5, started=2))),
        (
            candidate(0, victim("a", 5, started=1), victim("b", 5, started=9)),
            candidate(1, victim("c", 5, started=2), victim("d", 5, started=3)),
        ),
        (candidate(3, victim("a")), candidate(1, victim("b"))),
    ],
    ids=["violations", "highest priority", "sum", "negative priorities", "number", "start", "earliest start", "order"],
)
def test_the_cheaper_node_is_chosen(worse: Candidate, better: Candidate) -> None:
    assert choose([worse, better]) is better
    assert choose([better, worse]) is better


def test_there_is_nothing_to_choose_from_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        choose([])


# --- the answer (B1) -------------------------------------------------------------------------------------------------


def result(*candidates: Candidate, statuses: Mapping[str, Status] | None = None) -> DryRunResult:
    return DryRunResult(candidates, dict(statuses or {}))


def test_a_success_says_where_and_how_many() -> None:
    decision = decide(situation(node("n0")), result(candidate(0, victim("a"), victim("b"))))
    assert decision.status.reasons == ("found a potential placement for pod on node n0, preempting 2 victims",)
    assert decision.change is NominationChange.SET


def test_no_candidate_clears_the_nomination_and_counts_all_nodes() -> None:
    nodes = [node(f"n{number}") for number in range(12)]
    decision = decide(situation(*nodes, nominated="n3"), result(statuses={"n0": NO_VICTIMS, "n1": FULL, "n2": FULL}))
    assert decision.status.code is Code.UNSCHEDULABLE
    assert decision.status.reasons == (
        "0/12 nodes are available: 1 No preemption victims found for incoming pod, 2 Insufficient cpu, "
        "9 Preemption is not helpful for scheduling.",
    )
    assert decision.change is NominationChange.CLEAR


def test_entries_are_sorted_as_text() -> None:
    statuses = {f"n{number}": FULL for number in range(10)}
    text = fit_error([f"n{number}" for number in range(12)], statuses)
    assert text == "0/12 nodes are available: 10 Insufficient cpu, 2 Preemption is not helpful for scheduling."


def test_errors_count_only_without_a_candidate_and_keep_the_nomination() -> None:
    broken = {"n1": Status(Code.ERROR, ("no such cycle",))}
    subject = situation(node("n0"), node("n1"))
    assert decide(subject, result(candidate(0, victim("a")), statuses=broken)).status.success
    decision = decide(subject, result(statuses=broken))
    assert decision.status.code is Code.ERROR
    assert decision.status.reasons == ("n1: no such cycle",)
    assert decision.change is NominationChange.KEEP


@pytest.mark.kep("F21")
def test_a_nomination_is_kept_while_its_node_only_waits() -> None:
    waiting = {"n0": BEING_RECLAIMED}
    assert decide(situation(node("n0"), nominated="n0"), result(statuses=waiting)).change is NominationChange.KEEP
    assert decide(situation(node("n0"), nominated="n9"), result(statuses=waiting)).change is NominationChange.CLEAR
