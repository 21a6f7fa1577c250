"""Rounds over all nodes in step find what a search of one node after the other finds (upstream B4, written plainly)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption.dryrun import DryRun
from earmark.preemption.values import SUCCESS, Code, Node, PodId, PotentialVictim, Status
from earmark.preemption.victims import most_important_first, split_by_budgets

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FULL = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",))
PREEMPTOR_PRIORITY = 5

# (cpu, priority, started minutes ago, app); nodes are lists of pods.
pods = st.tuples(st.integers(1, 4), st.integers(0, 6), st.integers(0, 3), st.sampled_from(["", "a", "b"]))
clusters = st.lists(st.lists(pods, max_size=6), min_size=1, max_size=5)


def build(cluster: list[list[tuple[int, int, int, str]]]) -> tuple[list[Node], dict[int, int]]:
    nodes, cpu = [], {}
    index = 0
    for number, members in enumerate(cluster):
        victims = []
        for size, priority, age, app in members:
            cpu[index] = size
            pod = PodId("default", f"v{index}", f"uid-{index}")
            labels = {"app": app} if app else {}
            victims.append(PotentialVictim(index, pod, priority, NOW - timedelta(minutes=age), labels))
            index += 1
        nodes.append(Node(number, f"n{number}", FULL, tuple(victims)))
    return nodes, cpu


def nodewise(
    node: Node, cpu: dict[int, int], wanted: int, budgets: list[PodDisruptionBudget]
) -> tuple[list[int], int] | None:
    """One node, as upstream goes through it; None if it is no candidate."""
    potential = [pod for pod in node.pods if pod.priority < PREEMPTOR_PRIORITY]
    free = sum(cpu[pod.index] for pod in potential)
    if not potential or free < wanted:
        return None
    violating, others = split_by_budgets(most_important_first(potential), budgets)
    victims, violations = [], 0
    for pod in (*violating, *others):
        if free - cpu[pod.index] >= wanted:
            free -= cpu[pod.index]
        else:
            victims.append(pod)
            violations += pod in violating
    return ([pod.index for pod in most_important_first(victims)], violations) if victims else None


@settings(max_examples=300, deadline=None)
@given(clusters, st.integers(0, 8), st.integers(0, 2), st.integers(0, 2))
def test_rounds_and_nodewise_search_agree(
    cluster: list[list[tuple[int, int, int, str]]], wanted: int, allowed_a: int, allowed_b: int
) -> None:
    nodes, cpu = build(cluster)
    budgets = [
        msgspec.convert(
            {
                "metadata": {"namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed},
            },
            PodDisruptionBudget,
        )
        for app, allowed in (("a", allowed_a), ("b", allowed_b))
    ]
    run = DryRun(nodes, PREEMPTOR_PRIORITY, budgets, len(nodes))
    rounds = 0
    while not run.done:
        rounds += 1
        run.apply(
            [SUCCESS if sum(cpu[pod.index] for pod in query.removed) >= wanted else FULL for query in run.queries()]
        )
    found = {
        candidate.node.name: ([pod.index for pod in candidate.victims], candidate.pdb_violations)
        for candidate in run.result().candidates
    }
    expected = {node.name: nodewise(node, cpu, wanted, budgets) for node in nodes}
    assert found == {name: result for name, result in expected.items() if result is not None}
    assert rounds <= max(len(node.pods) for node in nodes) + 1
