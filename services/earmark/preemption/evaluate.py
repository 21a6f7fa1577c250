"""One preemption from its input to a decision: asks the plugins, runs the rounds, has the pure modules decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption import eligibility
from earmark.preemption.candidates import number_of_candidates, potential_nodes, rotated
from earmark.preemption.decision import Decision, NominationChange, decide, failed, not_eligible
from earmark.preemption.dryrun import DryRun, DryRunResult
from earmark.preemption.peers import Framework, NominationPlugins, PeerError
from earmark.preemption.settings import PreemptionSettings
from earmark.preemption.values import Situation, Status
from earmark.runtime.component import Ids


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A decision and the number of DryRunFilter calls that it took."""

    decision: Decision
    rounds: int = 0


class Evaluator:
    """Upstream's Evaluator, up to the choice of the node (upstream B1.4)."""

    def __init__(
        self, framework: Framework, plugins: NominationPlugins, ids: Ids, settings: PreemptionSettings
    ) -> None:
        self._framework = framework
        self._plugins = plugins
        self._ids = ids
        self._settings = settings

    async def evaluate(self, situation: Situation, budgets: Sequence[PodDisruptionBudget]) -> Evaluation:
        """Decide. A peer that fails makes the decision an error, which leaves the nomination as it is."""
        try:
            reason = await self._why_not_eligible(situation)
            if reason is not None:
                return Evaluation(not_eligible(reason))
            found, rounds = await self._dry_run(situation, budgets)
        except PeerError as error:
            return Evaluation(failed(str(error)))
        return Evaluation(decide(situation, found), rounds)

    async def _why_not_eligible(self, situation: Situation) -> str | None:
        first = eligibility.before_plugins(situation, self._plugins.names)
        if first.next is eligibility.Next.ELIGIBLE:
            return None
        if first.next is eligibility.Next.INELIGIBLE:
            return first.reason
        objection = await self._plugins.why_not_eligible(situation)
        if objection is not None:
            return objection
        last = eligibility.after_plugins(situation)
        return last.reason if last.next is eligibility.Next.INELIGIBLE else None

    async def _dry_run(self, situation: Situation, budgets: Sequence[PodDisruptionBudget]) -> tuple[DryRunResult, int]:
        potential = potential_nodes(situation.nodes)
        wanted = number_of_candidates(
            len(potential),
            min_percentage=self._settings.min_candidate_nodes_percentage,
            min_absolute=self._settings.min_candidate_nodes_absolute,
        )
        # Where all nodes are tried anyway there is nothing to spread.
        offset = self._ids.below(len(potential)) if wanted < len(potential) else 0
        run = DryRun(rotated(potential, offset), situation.preemptor.priority, budgets, wanted)
        calls = 0
        while not run.done:
            queries = run.queries()
            verdicts: list[Status] = []
            for start in range(0, len(queries), self._settings.round_chunk_nodes):
                chunk = queries[start : start + self._settings.round_chunk_nodes]
                verdicts += await self._framework.dry_run_filter(situation.cycle_id, chunk)
                calls += 1
            run.apply(verdicts)
        return run.result(), calls


async def propose(
    plugins: NominationPlugins, situation: Situation, decision: Decision, generation: int
) -> tuple[Decision, dict[str, str]]:
    """Propose the chosen candidate to the plugins; return the decision and the plugins' records.

    A plugin that refuses or fails ends the preemption before anything is deleted (decision F7): the decision becomes
    its status and the nomination stays as it was. What other plugins recorded is dropped with the cycle.
    """
    assert decision.chosen is not None
    try:
        refusal, records = await plugins.add_nominated_pod(situation, decision.chosen, generation)
    except PeerError as error:
        return _without_choice(decision, failed(str(error)).status), {}
    if refusal is not None:
        return _without_choice(decision, refusal), {}
    return decision, dict(records)


def _without_choice(decision: Decision, status: Status) -> Decision:
    return replace(decision, status=status, change=NominationChange.KEEP, chosen=None)
