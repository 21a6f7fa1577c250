"""Cycles that are open for dry runs: what preemption decides on, and its rounds of filters.

The scheduling cycle's own dry run works on the snapshot of its attempt; a what-if gets a frozen snapshot and sandbox
sessions of its own, and leaves nothing behind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from earmark.framework import wire
from earmark.framework.core import Core
from earmark.framework.cycle import Cycle, CycleRunner
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.remote import PluginError
from earmark.framework.status import SUCCESS, Code
from earmark.framework.timing import Timing
from earmark.kube import objects
from earmark.kube.wellknown import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from earmark.v1 import common_pb2, framework_pb2, scheduler_plugin_pb2

# A sandbox that nobody has asked for this many seconds was opened for a caller that is gone.
SILENCE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class UnknownCycle(Exception):
    """No such cycle is open."""


class BadQuery(ValueError):
    """A query names what the tables do not have; the text names the field."""


class DryRuns:
    """See the module."""

    def __init__(self, core: Core, runner: CycleRunner) -> None:
        self._core = core
        self._runner = runner
        self._open: dict[str, Cycle] = {}
        # The table of pods that the preemption was given, by cycle.
        self._pods: dict[str, list[str]] = {}
        self._sandboxes = 0
        # When a sandbox was last asked, by cycle.
        self._asked: dict[str, float] = {}

    # --- what preemption is given ------------------------------------------------------------------------------------

    def preemption_input(self, cycle: Cycle) -> framework_pb2.PreemptionInput:
        """Return what a preemption for the cycle's pod is decided on."""
        assert cycle.filter is not None
        pod = cycle.pod.pod
        message = framework_pb2.PreemptionInput(
            cycle_id=cycle.id,
            preemptor=wire.pod_input(pod),
            preemption_policy=pod.spec.preemption_policy or "",
            nominated_node_name=cycle.nominated_node,
            pre_filter_rejected_by=cycle.diagnosis.pre_filter_rejected_by,
            nominated_node_missing=bool(cycle.nominated_node) and cycle.nominated_node not in cycle.snapshot.nodes,
            plugin_cycles=[
                framework_pb2.PluginCycle(plugin=remote.plugin.name, session=remote.session, cycle_id=remote.cycle_id)
                for remote in cycle.remotes
                if remote.plugin.extends_nominations
            ],
        )
        message.now.FromDatetime(self._core.env.clock.now())
        statuses = wire.StatusTable()
        uids: list[str] = []
        feasible = frozenset(cycle.feasible)
        for name in cycle.snapshot.order:
            info = cycle.snapshot.nodes[name]
            status = SUCCESS if name in feasible else cycle.diagnosis.status_of(name)
            node = message.nodes.add(
                name=name, status=statuses.index(status), unschedulable=info.node.spec.unschedulable
            )
            if status.code is not Code.UNSCHEDULABLE and name != cycle.nominated_node:
                continue
            node.nominated_pod_uids.extend(cycle.filter.nominated(name))
            for victim in _lower(info, cycle.pod.priority):
                node.pods.append(len(uids))
                uids.append(victim.uid)
                message.pods.append(_candidate(victim, leaving=self._core.cache.leaving(victim.uid)))
        message.statuses.extend(statuses.messages)
        self._pods[cycle.id] = uids
        return message

    # --- rounds ------------------------------------------------------------------------------------------------------

    def open(self, cycle: Cycle) -> None:
        """Let DryRunFilter find a cycle."""
        self._open[cycle.id] = cycle

    def close(self, cycle_id: str) -> Cycle | None:
        """End a cycle's dry run."""
        self._pods.pop(cycle_id, None)
        self._asked.pop(cycle_id, None)
        return self._open.pop(cycle_id, None)

    async def dry_run_filter(self, cycle_id: str, queries: Sequence[common_pb2.NodeQuery]) -> common_pb2.NodeVerdicts:
        """Answer one round.

        Raises:
            UnknownCycle: if the cycle is not open.
            BadQuery: for an index beyond its table.
            PluginError, AttemptError: if a plugin cannot answer.
        """
        cycle = self._open.get(cycle_id)
        if cycle is None:
            raise UnknownCycle(cycle_id)
        if cycle_id in self._asked:
            self._asked[cycle_id] = self._core.now()
        names, uids = cycle.snapshot.order, self._pods[cycle_id]
        rounds: list[tuple[str, Sequence[str]]] = []
        for number, query in enumerate(queries):
            if query.node >= len(names):
                raise BadQuery(f"queries[{number}].node: {query.node} is beyond the {len(names)} nodes of the input")
            try:
                removed = list(map(uids.__getitem__, query.removed))
            except IndexError:
                beyond = max(query.removed)
                text = f"queries[{number}].removed: {beyond} is beyond the {len(uids)} pods of the input"
                raise BadQuery(text) from None
            rounds.append((names[query.node], removed))
        statuses = wire.StatusTable()
        verdicts = common_pb2.NodeVerdicts()
        for status, with_nominated in await self._runner.filter_forks(cycle, rounds):
            if status is not None:
                cycle.diagnosis.reject_dry_run(status)
            verdicts.verdicts.append(statuses.index(status or SUCCESS))
            verdicts.with_nominated.append(with_nominated)
        verdicts.statuses.extend(statuses.messages)
        return verdicts

    # --- what-if -----------------------------------------------------------------------------------------------------

    async def open_sandbox(self, pod: objects.Pod, manifest: str) -> tuple[framework_pb2.PreemptionInput, str]:
        """Run an attempt for a pod beside the scheduler; return preemption's input and the node where it fits, or "".

        Raises:
            PluginError, AttemptError: if a plugin cannot answer.
        """
        core = self._core
        await self._sweep()
        self._sandboxes += 1
        if core.idle:
            core.take_snapshot()
        names = tuple(plugin.name for plugin in core.filters)
        cycle = Cycle(
            f"dry-run-{self._sandboxes}",
            PodInfo.of(pod),
            core.snapshot.frozen(),
            Timing(core.metrics, core.env.clock, names, sampled=False),
            core.nominated_node(pod),
            manifest,
        )
        sessions = []
        try:
            for plugin in core.remotes:
                request = plugin.session_request(scheduler_plugin_pb2.SESSION_KIND_SANDBOX)
                answer = await plugin.call(plugin.stub.OpenSession, request)
                sessions.append((plugin, answer.session))
            if await self._runner.pre_filter(cycle, sessions):
                await self._runner.find_feasible(cycle)
            fits_on = await self._runner.choose(cycle) if cycle.feasible else ""
        except Exception:
            await self._close_sessions(cycle, sessions)
            raise
        message = self.preemption_input(cycle)
        if manifest:
            message.preemptor.manifest = manifest
        self.open(cycle)
        self._asked[cycle.id] = core.now()
        return message, fits_on

    async def _sweep(self) -> None:
        # Looked at whenever another one is opened: an idle process needs no timer for it.
        silent = self._core.now() - SILENCE_SECONDS
        for cycle_id in [cycle_id for cycle_id, asked in self._asked.items() if asked < silent]:
            await self.close_sandbox(cycle_id)

    async def close_sandbox(self, cycle_id: str) -> None:
        """End what open_sandbox opened. Idempotent; the scheduling cycle's own dry run is left alone."""
        cycle = self._open.get(cycle_id)
        if cycle is None or not cycle_id.startswith("dry-run-"):
            return
        self.close(cycle_id)
        await self._close_sessions(cycle, [(remote.plugin, remote.session) for remote in cycle.remotes])

    async def _close_sessions(
        self, cycle: Cycle, sessions: Sequence[tuple[object, common_pb2.SessionReference]]
    ) -> None:
        for plugin, session in sessions:
            remote = next((p for p in self._core.remotes if p is plugin), None)
            if remote is None:
                continue
            try:
                request = scheduler_plugin_pb2.CloseSessionRequest(session=session)
                await remote.call(remote.stub.CloseSession, request)
            except PluginError as error:
                # The plugin ends a silent sandbox by itself.
                _log.info("sandbox session of cycle %s: %s", cycle.id, error)


def manifest_of(message: common_pb2.PodInput, new_uid: Callable[[], str]) -> objects.Pod:
    """Return the pod of a manifest in JSON.

    A pod that is not in the API has no UID and perhaps neither namespace nor priority yet: what the manifest lacks is
    the message's, and a UID is made, because pods are told apart by it.

    Raises:
        BadQuery: if it is none.
    """
    try:
        pod = msgspec.json.decode(message.manifest, type=objects.Pod)
    except msgspec.DecodeError as error:
        raise BadQuery(f"pod.manifest: {error}") from error
    meta = msgspec.structs.replace(
        pod.metadata,
        namespace=pod.metadata.namespace or message.pod.namespace or "default",
        name=pod.metadata.name or message.pod.name or pod.metadata.generate_name,
        uid=pod.metadata.uid or message.pod.uid or new_uid(),
    )
    priority = message.priority if pod.spec.priority is None else pod.spec.priority
    return msgspec.structs.replace(pod, metadata=meta, spec=msgspec.structs.replace(pod.spec, priority=priority))


def _lower(info: NodeInfo, priority: int) -> list[PodInfo]:
    return [pod for pod in info.pods.values() if pod.priority < priority]


def _candidate(info: PodInfo, *, leaving: bool) -> framework_pb2.CandidatePod:
    pod = info.pod
    target = next((c for c in pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    message = framework_pb2.CandidatePod(
        pod=wire.pod_reference(pod),
        priority=info.priority,
        labels=pod.metadata.labels,
        terminating=leaving or pod.metadata.deletion_timestamp is not None,
        preempted_by_scheduler=leaving
        or (target is not None and (target.status, target.reason) == ("True", PREEMPTION_BY_SCHEDULER)),
        in_pod_group=pod.spec.scheduling_group is not None,
    )
    if pod.status.start_time is not None:
        message.start_time.FromDatetime(pod.status.start_time)
    return message
