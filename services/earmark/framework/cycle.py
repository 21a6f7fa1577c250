"""One cycle: the filters over in-process and remote plugins, for an attempt or for a dry run.

Used by the scheduling attempt, and by DryRunFilter while preemption looks for victims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from earmark.framework import filtering, sampling, scoring, wire
from earmark.framework.cache import Snapshot
from earmark.framework.core import Core
from earmark.framework.filtering import NodeFilter, RemoteVerdict, Verdict
from earmark.framework.fit import Diagnosis
from earmark.framework.node_info import PodInfo
from earmark.framework.remote import PluginError, RemoteCycle, RemotePlugin
from earmark.framework.status import Code, Status, unresolvable
from earmark.framework.timing import Timing
from earmark.v1 import common_pb2, scheduler_plugin_pb2


class AttemptError(Exception):
    """The attempt cannot be finished; it is repeated by backoff."""


@dataclass(slots=True)
class Cycle:
    """What belongs to one cycle. `nominated_node` is tried first; `manifest`: of a pod that is not in the API."""

    id: str
    pod: PodInfo
    snapshot: Snapshot
    timing: Timing
    nominated_node: str = ""
    manifest: str = ""
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    remotes: list[RemoteCycle] = field(default_factory=list)
    filter: NodeFilter | None = None
    # The nodes that PreFilter left, in the snapshot's order.
    candidates: list[str] = field(default_factory=list)
    feasible: list[str] = field(default_factory=list)


class CycleRunner:
    """Runs PreFilter, Filter and Score of a cycle.

    Every method raises PluginError where a plugin cannot be asked and AttemptError where one answers with an error.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    # --- PreFilter ---------------------------------------------------------------------------------------------------

    async def pre_filter(
        self, cycle: Cycle, sessions: Sequence[tuple[RemotePlugin, common_pb2.SessionReference]]
    ) -> bool:
        """Open the cycle in all plugins; return whether any node is left (upstream A4)."""
        local = filtering.pre_filter(self._core.filters, cycle.pod)
        rejection, nodes = local.rejection, local.nodes
        narrowed = list(local.narrowed_by)
        if rejection is None or rejection.code is Code.UNSCHEDULABLE:
            for plugin, session in sessions:
                status, names = await self._remote_pre_filter(cycle, plugin, session)
                if names:
                    nodes = names if nodes is None else nodes & names
                    narrowed.append(plugin.name)
                if status.success or status.code is Code.SKIP:
                    continue
                if not status.rejected:
                    raise AttemptError(f"running PreFilter plugin {plugin.name}: {status.message}")
                cycle.diagnosis.add_plugin(status)
                if status.code is not Code.UNSCHEDULABLE:
                    rejection = status
                    break
                rejection = rejection or status
        if rejection is None and nodes is not None and not nodes:
            rejection = unresolvable(filtering.narrowed_text(narrowed, nothing_left=True)).by(narrowed[0])
        cycle.filter = NodeFilter(local.active, cycle.pod, cycle.snapshot, self._core.nominator, self._core.pending_pod)
        if rejection is not None:
            cycle.diagnosis.absent = rejection
            cycle.diagnosis.pre_filter_message = rejection.message
            cycle.diagnosis.pre_filter_rejected_by = rejection.plugin
            cycle.diagnosis.add_plugin(rejection)
            return False
        if nodes is None:
            cycle.candidates = list(cycle.snapshot.order)
        else:
            cycle.candidates = [name for name in cycle.snapshot.order if name in nodes]
            outside = unresolvable(filtering.narrowed_text(narrowed, nothing_left=False))
            cycle.diagnosis.absent = outside
            for name in narrowed:
                cycle.diagnosis.unschedulable_plugins.setdefault(name, None)
        return True

    async def _remote_pre_filter(
        self, cycle: Cycle, plugin: RemotePlugin, session: common_pb2.SessionReference
    ) -> tuple[Status, frozenset[str]]:
        if not plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER):
            cycle.remotes.append(RemoteCycle(plugin, session, ""))
            return Status(Code.SUCCESS), frozenset()
        pod = wire.pod_input(cycle.pod.pod)
        pod.manifest = cycle.manifest
        request = scheduler_plugin_pb2.PreFilterRequest(
            session=session,
            pod=pod,
            pods_resource_version=cycle.snapshot.pods_version,
            nodes_resource_version=cycle.snapshot.nodes_version,
            nominated_node_name=cycle.nominated_node,
        )
        remote = RemoteCycle(plugin, session, "")
        cycle.remotes.append(remote)
        with cycle.timing.plugin(plugin.name, "PreFilter") as done:
            answer = await plugin.call(plugin.stub.PreFilter, request)
            status = wire.to_status(answer.status, plugin.name)
            done(status)
        remote.cycle_id = answer.cycle_id
        remote.skipped = status.code is Code.SKIP
        return status, frozenset(answer.node_names)

    # --- Filter ------------------------------------------------------------------------------------------------------

    async def find_feasible(self, cycle: Cycle) -> None:
        """Fill `feasible`: the nominated node alone if the pod fits there, else what the search finds (A5, A6)."""
        looked_at = 0
        if cycle.nominated_node in cycle.candidates:
            await self._filter(cycle, [cycle.nominated_node])
            if cycle.feasible:
                return
            looked_at = 1
        rest = [name for name in cycle.candidates if name != cycle.nominated_node or not looked_at]
        order = self._core.search.order(rest)
        target = sampling.feasible_nodes_to_find(len(order), self._core.settings.percentage_of_nodes_to_score)
        begin, size = 0, target
        while begin < len(order) and len(cycle.feasible) < target:
            batch = order[begin : begin + size]
            await self._filter(cycle, batch)
            begin += len(batch)
            size = min(2 * size, max(target, self._core.settings.nodes_per_call))
        # What one batch too many has found is as good as not looked at.
        del cycle.feasible[target:]
        self._core.search.looked_at(begin + looked_at, len(cycle.snapshot.order))

    async def _filter(self, cycle: Cycle, names: Sequence[str]) -> None:
        assert cycle.filter is not None
        with cycle.timing.plugins("Filter"):
            verdicts = {name: cycle.filter.verdict(name) for name in names}
        answers = await self._ask_remotes(cycle, verdicts)
        for name, status in self._decide(verdicts, answers).items():
            if status is None:
                cycle.feasible.append(name)
            else:
                cycle.diagnosis.reject_node(name, status)

    async def _ask_remotes(self, cycle: Cycle, verdicts: dict[str, Verdict]) -> dict[str, list[RemoteVerdict]]:
        """Ask remote filters about the nodes that passed pass 1 so far: one call a plugin."""
        answers: dict[str, list[RemoteVerdict]] = {name: [] for name, v in verdicts.items() if v.first is None}
        for remote in cycle.remotes:
            if not remote.filters:
                continue
            # A node that has failed is not asked about again, unless it is pass 2 that failed in this process.
            names = [name for name, given in answers.items() if all(status is None for status, _ in given)]
            if not names:
                break
            extends = remote.plugin.extends_pre_filter
            queries = [(name, (), verdicts[name].nominated if extends else ()) for name in names]
            with cycle.timing.plugin(remote.plugin.name, "Filter"):
                statuses = await remote.plugin.filter(remote, queries, forks=False)
            for name, answer in zip(names, statuses, strict=True):
                answers[name].append(answer)
        return answers

    @staticmethod
    def _decide(verdicts: dict[str, Verdict], answers: dict[str, list[RemoteVerdict]]) -> dict[str, Status | None]:
        decided: dict[str, Status | None] = {}
        for name, verdict in verdicts.items():
            status = filtering.combine(verdict, answers.get(name, ()))
            if status is not None and not status.rejected:
                raise AttemptError(f"running Filter plugin {status.plugin}: {status.message}")
            decided[name] = status
        return decided

    async def filter_forks(
        self, cycle: Cycle, queries: Sequence[tuple[str, Sequence[str]]]
    ) -> list[tuple[Status | None, bool]]:
        """Answer one round of a dry run: for each (node, UIDs of removed pods) its status and whether it is pass 1's.

        Nothing of it stays. A status of ERROR is an answer here: it concerns that node alone (B4.3).
        """
        assert cycle.filter is not None
        verdicts = [cycle.filter.verdict_without(name, removed) for name, removed in queries]
        answers: list[list[RemoteVerdict]] = [[] for _ in queries]
        for remote in cycle.remotes:
            if not remote.filters:
                continue
            asked = [
                number
                for number, verdict in enumerate(verdicts)
                if verdict.first is None and all(status is None for status, _ in answers[number])
            ]
            if not asked:
                break
            extends = remote.plugin.extends_pre_filter
            remote_queries = [
                (queries[n][0], queries[n][1] if extends else (), verdicts[n].nominated if extends else ())
                for n in asked
            ]
            with cycle.timing.plugin(remote.plugin.name, "Filter"):
                statuses = await remote.plugin.filter(remote, remote_queries, forks=extends)
            for number, answer in zip(asked, statuses, strict=True):
                answers[number].append(answer)
        results = []
        for verdict, given in zip(verdicts, answers, strict=True):
            status = filtering.combine(verdict, given)
            first = verdict.first is not None or any(s is not None and with_nominated for s, with_nominated in given)
            results.append((status, bool(verdict.nominated) and first))
        return results

    # --- Score -------------------------------------------------------------------------------------------------------

    async def choose(self, cycle: Cycle) -> str:
        """Return the best of the feasible nodes (upstream A10)."""
        names = sorted(cycle.feasible)
        if len(names) == 1:
            return names[0]
        with cycle.timing.extension_point("Score"):
            totals = scoring.scores(self._core.scorers, cycle.pod, cycle.snapshot, names)
            for remote in cycle.remotes:
                if remote.skipped or not remote.plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_SCORE):
                    continue
                request = scheduler_plugin_pb2.ScoreRequest(
                    session=remote.session, cycle_id=remote.cycle_id, nodes=names
                )
                with cycle.timing.plugin(remote.plugin.name, "Score"):
                    answer = await remote.plugin.call(remote.plugin.stub.Score, request)
                status = wire.to_status(answer.status, remote.plugin.name)
                if not status.success:
                    raise AttemptError(f"running Score plugin {remote.plugin.name}: {status.message}")
                if len(answer.scores) != len(names):
                    raise remote.plugin.malformed("Score", f"{len(answer.scores)} scores for {len(names)} nodes")
                for name, score in zip(names, answer.scores, strict=True):
                    totals[name] += score * remote.plugin.description.score_weight
        return scoring.best(totals)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def end(self, cycle: Cycle, outcome: scheduler_plugin_pb2.CycleOutcome.ValueType) -> int:
        """Close the cycle in all plugins; return the highest SleepVerdict.

        REJECTED_BY_PLUGIN goes only to plugins that are among those that rejected. A plugin that cannot be told learns
        of its sleepers when the wake-up stream is opened again.
        """
        highest = int(scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP)
        for remote in cycle.remotes:
            name = remote.plugin.name
            of_plugin = outcome
            if outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN and (
                name not in cycle.diagnosis.unschedulable_plugins
            ):
                of_plugin = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_OTHERS
            if remote.skipped and not remote.cycle_id:
                continue
            request = scheduler_plugin_pb2.EndCycleRequest(
                session=remote.session,
                pod=wire.pod_reference(cycle.pod.pod),
                cycle_id=remote.cycle_id,
                outcome=of_plugin,
            )
            try:
                answer = await remote.plugin.call(remote.plugin.stub.EndCycle, request)
            except PluginError:
                # Whatever came of the call: the plugin may not know that the pod sleeps.
                remote.plugin.doubtful = True
                continue
            highest = max(highest, int(answer.verdict))
        return highest
