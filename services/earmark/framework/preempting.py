"""PostFilter: the plugins', then preemption (upstream A9, B1): decide, and later execute what was confirmed.

Who has to go is decided by the preemption service; this module asks it, and sees to what its answers mean here.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import grpc

from earmark.framework import hooks, wire
from earmark.framework.core import Core
from earmark.framework.cycle import AttemptError, Cycle
from earmark.framework.dry_runs import DryRuns
from earmark.framework.gate import NAME as DEFAULT_PREEMPTION
from earmark.framework.hooks import NominationHook
from earmark.framework.nominator import NominatedPod, Victim
from earmark.framework.pod_status import CLEAR, KEEP, Nominating
from earmark.framework.status import Code
from earmark.framework.writer import PodWriter
from earmark.runtime.retry import retrying
from earmark.v1 import framework_pb2, preemption_pb2, scheduler_plugin_pb2

_DELETED = (
    preemption_pb2.VICTIM_OUTCOME_DELETED,
    preemption_pb2.VICTIM_OUTCOME_ALREADY_TERMINATING,
    preemption_pb2.VICTIM_OUTCOME_GONE,
)
_NOT_DELETED = (preemption_pb2.VICTIM_OUTCOME_FAILED, preemption_pb2.VICTIM_OUTCOME_NOT_ATTEMPTED)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """The text for the condition, what happens to the nomination, and preemption's reasons per node."""

    message: str
    nominating: Nominating = KEEP
    node_reasons: tuple[framework_pb2.NodeReason, ...] = field(default=())


class Preempting:
    """See the module."""

    def __init__(self, core: Core, dry_runs: DryRuns, hook: NominationHook, writer: PodWriter) -> None:
        self._core = core
        self._dry_runs = dry_runs
        self._hook = hook
        self._writer = writer
        # By UID of the preemptor: executions in a row that left a victim undeleted.
        self._in_vain: dict[str, int] = {}

    # --- deciding ----------------------------------------------------------------------------------------------------

    async def post_filter(self, cycle: Cycle) -> PostFilterResult:
        """Run PostFilter: UNSCHEDULABLE_AND_UNRESOLVABLE and SUCCESS stop the chain (upstream A9.2).

        Raises:
            AttemptError: if a plugin or the preemption service answers with an error.
            PluginError: if a plugin cannot be asked.
        """
        messages: list[str] = []
        with cycle.timing.extension_point("PostFilter") as done:
            for remote in cycle.remotes:
                if remote.skipped or not remote.plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_POST_FILTER):
                    continue
                request = scheduler_plugin_pb2.PostFilterRequest(session=remote.session, cycle_id=remote.cycle_id)
                with cycle.timing.plugin(remote.plugin.name, "PostFilter") as measured:
                    answer = await remote.plugin.call(remote.plugin.stub.PostFilter, request)
                    status = wire.to_status(answer.status, remote.plugin.name)
                    measured(status)
                if not status.success and not status.rejected:
                    raise AttemptError(f"running PostFilter plugin {remote.plugin.name}: {status.message}")
                if status.code is not Code.UNSCHEDULABLE:
                    done(status)
                    return PostFilterResult(status.message)
                messages += status.reasons
            with cycle.timing.plugin(DEFAULT_PREEMPTION, "PostFilter"):
                result = await self._preempt(cycle)
        return PostFilterResult(", ".join([*messages, result.message]), result.nominating, result.node_reasons)

    async def _preempt(self, cycle: Cycle) -> PostFilterResult:
        request = preemption_pb2.PreemptRequest(
            input=self._dry_runs.preemption_input(cycle), generation=self._core.next_generation()
        )
        self._dry_runs.open(cycle)
        try:
            answer = await self._core.preemption.Preempt(request, timeout=self._core.settings.filter_timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise AttemptError(f"preemption: {error.code().name}: {error.details()}") from error
        finally:
            self._dry_runs.close(cycle.id)
        status = wire.to_status(answer.status)
        if status.code is Code.ERROR:
            raise AttemptError(f"preemption: {status.message}")
        if not status.success:
            cycle.diagnosis.preemption_failed()
        if not status.success and cycle.nominated_node and answer.mode != preemption_pb2.NOMINATING_MODE_OVERRIDE:
            # It waits for what goes on at its nominated node. Where that is a pod that terminates, and all its claims
            # are released, only the pod's end tells that the wait is over.
            cycle.diagnosis.unschedulable_plugins[DEFAULT_PREEMPTION] = None
        nominating = KEEP
        if answer.mode == preemption_pb2.NOMINATING_MODE_OVERRIDE:
            nominating = CLEAR
            if status.success:
                nominating = Nominating(override=True, nomination=wire.to_nomination(answer.nomination))
        return PostFilterResult(f"preemption: {status.message}", nominating, tuple(answer.node_reasons))

    # --- executing ---------------------------------------------------------------------------------------------------

    def resume(self, nomination: NominatedPod) -> None:
        """Go on with an execution that an earlier process had begun; the pod waits at the gate meanwhile."""
        core = self._core
        core.gate.begin(nomination.uid, nomination.generation)
        core.queue.gate(nomination.uid, core.now())
        core.spawn(self.execute(nomination), f"execute {nomination.name} {nomination.generation}")

    async def execute(self, nomination: NominatedPod) -> None:
        """Make a confirmed nomination happen, and see to what becomes of it. Runs in the background (B9)."""
        core = self._core
        results = await self._victims(nomination)
        for result in results:
            if result.outcome in _DELETED:
                core.cache.leave(result.pod.uid)
        not_deleted = [_victim(result) for result in results if result.outcome in _NOT_DELETED]
        if not_deleted:
            _log.warning(
                "preemption for pod %s/%s: %s",
                nomination.namespace,
                nomination.name,
                "; ".join(f"{r.pod.namespace}/{r.pod.name}: {r.error}" for r in results if r.outcome in _NOT_DELETED),
            )
            await self.give_up(nomination, not_deleted)
        await self._pause_after(nomination.uid, failed=bool(not_deleted))
        in_memory = any(r.outcome == preemption_pb2.VICTIM_OUTCOME_PREEMPTED_IN_MEMORY for r in results)
        core.gate.end(nomination.uid, nomination.generation)
        if not_deleted or in_memory:
            # No deletion will wake the preemptor (B9.5).
            core.queue.activate([nomination.uid], core.now())
        core.queue.ungate(nomination.uid, DEFAULT_PREEMPTION, core.now())
        core.notify()

    async def _pause_after(self, uid: str, *, failed: bool) -> None:
        """Keep the gate closed for a while where executions fail in a row.

        The pod is tried again at once after the first (F14). A victim that cannot be deleted for good would be chosen
        again and again without a pause: its preemptor is activated, and so never backs off.
        """
        if not failed or self._core.queue.get(uid) is None:
            self._in_vain.pop(uid, None)
            return
        before = self._in_vain.get(uid, 0)
        self._in_vain[uid] = before + 1
        if before:
            settings = self._core.settings
            seconds = settings.initial_backoff_seconds * 2.0 ** min(before - 1, 32)
            await self._core.env.clock.sleep(min(settings.max_backoff_seconds, seconds))

    async def _victims(self, nomination: NominatedPod) -> list[preemption_pb2.VictimResult]:
        """Call Execute until it is answered; empty once the nomination no longer stands."""
        request = preemption_pb2.ExecuteRequest(nomination=wire.from_nomination(nomination))
        timeout = self._core.settings.execute_timeout_seconds
        while self._stands(nomination):
            try:
                answer = await retrying(
                    lambda: self._core.preemption.Execute(request, timeout=timeout),
                    clock=self._core.env.clock,
                    ids=self._core.env.ids,
                    attempts=3,
                )
            except grpc.aio.AioRpcError as error:
                _log.warning(
                    "preemption for pod %s/%s: Execute: %s: %s",
                    nomination.namespace,
                    nomination.name,
                    error.code().name,
                    error.details(),
                )
                await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
                continue
            return list(answer.victims)
        return []

    def _stands(self, nomination: NominatedPod) -> bool:
        held = self._core.nominator.get(nomination.uid)
        return held is not None and held.generation == nomination.generation

    async def give_up(self, nomination: NominatedPod, not_deleted: list[Victim]) -> None:
        """Clear a nomination whose victims were not all deleted, and forget those victims' claims (F14, F15)."""
        core = self._core
        stands = self._stands(nomination)
        if stands:
            core.nominator.clear(nomination.uid)
        # Before the API is told, which may take its time: what plugins hold is never more than what is nominated (E42).
        self._hook.removed(nomination, hooks.EXECUTION_FAILED, not_deleted)
        if stands:
            found = core.pods.get(nomination.namespace, nomination.name)
            if found is not None and found.metadata.uid == nomination.uid:
                await self._writer.clear_nomination(found)
                core.nomination_gone(found, nomination.node)
        await self._hook.delivered()


def _victim(result: preemption_pb2.VictimResult) -> Victim:
    return Victim(result.pod.namespace, result.pod.name, result.pod.uid)
