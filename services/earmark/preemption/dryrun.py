"""The simulation that finds each node's victims, as a driver without I/O: it asks filter questions and takes verdicts.

All nodes advance in step: the first round removes all potential victims everywhere, each following round tries to spare
one pod on every node that is still undecided. So there are at most (pods on the fullest node + 1) rounds, however many
nodes there are. The filters themselves, both passes of them, run elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption.messages import BEING_RECLAIMED, NO_VICTIMS
from earmark.preemption.values import Candidate, Node, PotentialVictim, Status
from earmark.preemption.victims import most_important_first, split_by_budgets


@dataclass(frozen=True, slots=True)
class Query:
    """Does the preemptor fit on this node with these pods removed?"""

    node: Node
    removed: tuple[PotentialVictim, ...]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One node in the simulation: pods are spared in `order`, those that cannot be are victims."""

    node: Node
    potential: tuple[PotentialVictim, ...]
    # Pods whose disruption violates a budget first, each group with the most important pod first (upstream B4.7).
    order: tuple[PotentialVictim, ...] = ()
    violating: int = 0
    position: int = 0
    victims: tuple[PotentialVictim, ...] = ()
    violations: int = 0

    @property
    def undecided(self) -> bool:
        return self.position < len(self.order)

    def removed(self) -> tuple[PotentialVictim, ...]:
        """What is removed while the pod at `position` is spared for a try."""
        return self.victims + self.order[self.position + 1 :]

    def after(self, fits: bool) -> _Trial:
        """The pod at `position` stays, or is a victim."""
        # One is made for each pod and node: not by replace().
        victims, violations = self.victims, self.violations
        if not fits:
            victims = (*victims, self.order[self.position])
            violations += self.position < self.violating
        return _Trial(
            self.node, self.potential, self.order, self.violating, self.position + 1, victims, violations
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """The candidates, those that violate no budget first, and why other examined nodes are none."""

    candidates: tuple[Candidate, ...]
    statuses: dict[str, Status]


class DryRun:
    """The state of one simulation. Ask `queries()`, hand the verdicts to `apply()`, until `done`."""

    def __init__(
        self,
        nodes: Sequence[Node],
        preemptor_priority: int,
        budgets: Sequence[PodDisruptionBudget],
        wanted: int,
    ) -> None:
        """Simulate on `nodes`, in this order; `wanted` candidates are enough if one of them violates no budget."""
        self._budgets = tuple(budgets)
        self._wanted = wanted
        self._statuses: dict[str, Status] = {}
        self._candidates: list[Candidate] = []
        self._removing = True
        self._trials: list[_Trial] = []
        for node in nodes:
            potential = tuple(pod for pod in node.pods if pod.priority < preemptor_priority)
            if potential:
                self._trials.append(_Trial(node, potential))
            else:
                self._statuses[node.name] = NO_VICTIMS

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask."""
        return not self._trials

    def queries(self) -> tuple[Query, ...]:
        """Return the questions of the next round, one for each undecided node; none if done."""
        if self._removing:
            return tuple(Query(trial.node, trial.potential) for trial in self._trials)
        return tuple(Query(trial.node, trial.removed()) for trial in self._trials)

    def apply(self, verdicts: Sequence[Status]) -> None:
        """Take the answers to `queries()`, in their order.

        Raises ValueError if there are more or fewer.
        """
        if len(verdicts) != len(self._trials):
            raise ValueError(f"verdicts: want {len(self._trials)}, got {len(verdicts)}")
        if self._removing:
            self._removing = False
            advanced = self._after_removal(verdicts)
        else:
            # Whatever the filters say that is not a success, the pod cannot be spared (upstream B4.7).
            advanced = [trial.after(verdict.success) for trial, verdict in zip(self._trials, verdicts, strict=True)]
        self._trials = [trial for trial in advanced if trial.undecided]
        for trial in advanced:
            if not trial.undecided:
                self._decide(trial)

    def result(self) -> DryRunResult:
        """Return what was found.

        Raises RuntimeError before `done`.
        """
        if not self.done:
            raise RuntimeError("the dry run is not done")
        ordered = sorted(self._candidates, key=lambda candidate: candidate.pdb_violations > 0)
        return DryRunResult(tuple(ordered), dict(self._statuses))

    def _after_removal(self, verdicts: Sequence[Status]) -> list[_Trial]:
        """Keep the nodes where the removal of all potential victims helps, as many as are needed.

        Upstream stops when it has enough candidates of which one violates no budget (B3.5). In step that is known
        beforehand only of nodes where no budget can be violated, so nodes are taken until there is such a one.
        """
        feasible: list[_Trial] = []
        harmless = False
        for trial, verdict in zip(self._trials, verdicts, strict=True):
            if not verdict.success:
                self._statuses[trial.node.name] = verdict
                continue
            if harmless and len(feasible) >= self._wanted:
                continue
            violating, others = split_by_budgets(most_important_first(trial.potential), self._budgets)
            harmless = harmless or not violating
            feasible.append(replace(trial, order=violating + others, violating=len(violating)))
        return feasible

    def _decide(self, trial: _Trial) -> None:
        if trial.victims:
            victims = most_important_first(trial.victims)
            self._candidates.append(Candidate(trial.node, victims, trial.violations))
        else:
            self._statuses[trial.node.name] = BEING_RECLAIMED
