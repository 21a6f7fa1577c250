"""A recorded choice of the stock scheduler as a Situation, and a CPU filter small enough to be obviously right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import structs

from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption.candidates import number_of_candidates, potential_nodes
from earmark.preemption.decision import Decision, decide
from earmark.preemption.dryrun import DryRun
from earmark.preemption.messages import fit_error
from earmark.preemption.values import (
    SUCCESS,
    Code,
    Node,
    PodId,
    PotentialVictim,
    Preemptor,
    Situation,
    Status,
)

NOW = datetime(2026, 11, 25, tzinfo=UTC)

UNSCHEDULABLE = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",), "NodeUnschedulable")
UNTOLERATED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",), "TaintToleration")
NO_AFFINITY = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",), "NodeAffinity"
)
INSUFFICIENT_CPU = Status(Code.UNSCHEDULABLE, ("Insufficient cpu",), "NodeResourcesFit")
CPU_NEVER_ENOUGH = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",), "NodeResourcesFit")


def milli(text: str) -> int:
    """Millicores of a cpu quantity of these files."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def fail_safe(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """The budget as the recorded scheduler saw it.

    The recording's control plane ran a disruption controller. It cannot tell how many pods maxUnavailable is counted
    from where the pods have no controller, and then allows no disruption, whatever status the manifest came with. With
    the written numbers 14 of the recorded choices would be other ones.
    """
    if budget.spec.max_unavailable is None:
        return budget
    return structs.replace(budget, status=structs.replace(budget.status, disruptions_allowed=0))


@dataclass(frozen=True)
class Case:
    """A cluster, a preemptor and what happened."""

    name: str
    objects: Sequence[dict[str, Any]]
    preemptor: dict[str, Any]
    expected: dict[str, Any]

    @property
    def evicted(self) -> set[str]:
        return set(self.expected.get("evicted", ()))


def case_of(document: dict[str, Any]) -> Case:
    """Read a scenario document that applies one pod and then has one expectation."""
    timeline = document["spec"]["timeline"]
    (preemptor,) = next(step["apply"] for step in timeline if "apply" in step)
    expected = next(step["expect"] for step in timeline if "expect" in step)
    return Case(document["metadata"]["name"], document["spec"]["objects"], preemptor, expected)


class CpuCluster:
    """Nodes that are filtered by cordon, taints, selector and CPU, in upstream's order."""

    def __init__(self, case: Case) -> None:
        kinds: dict[str, list[dict[str, Any]]] = {}
        for manifest in case.objects:
            kinds.setdefault(manifest["kind"], []).append(manifest)
        self._priorities = {item["metadata"]["name"]: item["value"] for item in kinds["PriorityClass"]}
        self._nodes = sorted(kinds["Node"], key=lambda item: str(item["metadata"]["name"]))
        self._pods = sorted(kinds.get("Pod", []), key=lambda item: str(item["metadata"]["name"]))
        self._preemptor = case.preemptor
        self.budgets = [
            fail_safe(msgspec.convert(item, PodDisruptionBudget)) for item in kinds.get("PodDisruptionBudget", [])
        ]

    @staticmethod
    def cpu(pod: dict[str, Any]) -> int:
        return sum(milli(item["resources"]["requests"]["cpu"]) for item in pod["spec"]["containers"])

    def priority(self, pod: dict[str, Any]) -> int:
        return int(self._priorities.get(pod["spec"].get("priorityClassName", ""), 0))

    def filter(self, node: dict[str, Any], removed: Iterable[int] = ()) -> Status:
        gone = set(removed)
        spec, tolerations = node["spec"], self._preemptor["spec"].get("tolerations", [])
        if spec.get("unschedulable"):
            return UNSCHEDULABLE
        for taint in spec.get("taints", []):
            if not any(toleration.get("key") in (None, taint["key"]) for toleration in tolerations):
                return UNTOLERATED
        selector = self._preemptor["spec"].get("nodeSelector", {})
        if any(node["metadata"]["labels"].get(key) != value for key, value in selector.items()):
            return NO_AFFINITY
        allocatable, wanted = milli(node["status"]["allocatable"]["cpu"]), self.cpu(self._preemptor)
        if wanted > allocatable:
            return CPU_NEVER_ENOUGH
        used = sum(
            self.cpu(pod)
            for index, pod in enumerate(self._pods)
            if pod["spec"]["nodeName"] == node["metadata"]["name"] and index not in gone
        )
        return SUCCESS if used + wanted <= allocatable else INSUFFICIENT_CPU

    def situation(self) -> Situation:
        priority = self.priority(self._preemptor)
        nodes = []
        for index, node in enumerate(self._nodes):
            name = node["metadata"]["name"]
            victims = tuple(
                self._victim(position, pod)
                for position, pod in enumerate(self._pods)
                if pod["spec"]["nodeName"] == name and self.priority(pod) < priority
            )
            nodes.append(Node(index, name, self.filter(node), victims))
        return Situation("cycle", Preemptor(PodId("default", "preemptor", "uid-preemptor"), priority), tuple(nodes))

    def _victim(self, index: int, pod: dict[str, Any]) -> PotentialVictim:
        metadata = pod["metadata"]
        start = pod.get("status", {}).get("startTime")
        return PotentialVictim(
            index,
            PodId(metadata["namespace"], metadata["name"], f"uid-{metadata['name']}"),
            self.priority(pod),
            datetime.fromisoformat(str(start).replace("Z", "+00:00")) if start else NOW,
            metadata.get("labels", {}),
        )

    def decide(self) -> tuple[Decision, str, int]:
        """Return the decision, the condition's whole text and the number of rounds."""
        situation = self.situation()
        potential = potential_nodes(situation.nodes)
        wanted = number_of_candidates(len(potential), min_percentage=10, min_absolute=100)
        run = DryRun(potential, situation.preemptor.priority, self.budgets, wanted)
        rounds = 0
        while not run.done:
            rounds += 1
            run.apply(
                [
                    self.filter(self._nodes[query.node.index], (pod.index for pod in query.removed))
                    for query in run.queries()
                ]
            )
        decision = decide(situation, run.result())
        text = fit_error([node.name for node in situation.nodes], {node.name: node.status for node in situation.nodes})
        return decision, f"{text} preemption: {', '.join(decision.status.reasons)}", rounds
