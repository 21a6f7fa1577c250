"""What happens after a failed attempt (upstream A14): nomination, condition, event, the end of the cycle, the queue."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from earmark.framework import metrics, pod_status, wire
from earmark.framework.core import Core
from earmark.framework.cycle import Cycle, CycleRunner
from earmark.framework.hooks import NominationHook
from earmark.framework.nominator import NominatedPod, NominationChange
from earmark.framework.pod_status import KEEP, Nominating
from earmark.framework.queue.entry import Place, QueuedPod, Strategy
from earmark.framework.remote import PluginError
from earmark.framework.writer import PodWriter
from earmark.kube import objects
from earmark.kube.recorder import WARNING
from earmark.v1 import nomination_extensions_pb2, scheduler_plugin_pb2

_LONGEST_NOTE = 1024
_LONGEST_WAIT_SECONDS = 30.0

_STRATEGIES = {
    int(scheduler_plugin_pb2.SLEEP_VERDICT_QUEUE): Strategy.AFTER_BACKOFF,
    int(scheduler_plugin_pb2.SLEEP_VERDICT_ACTIVATE): Strategy.IMMEDIATELY,
}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """How an attempt failed.

    `rejected`: plugins said no; otherwise it is an error, which is repeated by backoff alone.
    """

    message: str
    rejected: bool
    nominating: Nominating = KEEP

    @property
    def result(self) -> str:
        """What metrics and spans call it."""
        return metrics.UNSCHEDULABLE if self.rejected else metrics.ERROR


class FailureHandler:
    """See the module."""

    def __init__(self, core: Core, runner: CycleRunner, hook: NominationHook, writer: PodWriter) -> None:
        self._core = core
        self._runner = runner
        self._hook = hook
        self._writer = writer

    async def handle(self, queued: QueuedPod, cycle: Cycle, failure: Failure) -> NominatedPod | None:
        """Handle a failure of a pod in flight; return the nomination that is confirmed by it, to be executed.

        Order: the nominator, one patch, ConfirmNominatedPod, EndCycle, the queue. The gate is closed before the pod is
        queued.
        """
        pod = await self._present(queued, cycle)
        if pod is None:
            self._core.queue.done(queued)
            return None
        queued.pod = pod
        failure, nomination = await self._report(queued, pod, failure)
        verdict = await self._end(cycle, failure)
        plugins = tuple(cycle.diagnosis.unschedulable_plugins) if failure.rejected else ()
        pending = tuple(cycle.diagnosis.pending_plugins) if failure.rejected else ()
        if nomination is not None:
            self._core.gate.begin(nomination.uid, nomination.generation)
        self._core.queue.requeue(queued, plugins, pending, verdict, self._core.now())
        self._core.notify()
        return nomination

    async def handle_binding(self, queued: QueuedPod, cycle: Cycle, failure: Failure) -> None:
        """Handle a failure of a pod that was being bound; it comes back to the queue."""
        pod = await self._present(queued, cycle)
        if pod is None:
            return
        queued.pod = pod
        failure, _ = await self._report(queued, pod, failure)
        verdict = await self._end(cycle, failure)
        plugins = tuple(cycle.diagnosis.unschedulable_plugins) if failure.rejected else ()
        if self._core.current(pod) is not None:
            self._core.queue.back_from_binding(queued, plugins, verdict, self._core.now())
            self._core.notify()

    # --- steps -------------------------------------------------------------------------------------------------------

    async def _present(self, queued: QueuedPod, cycle: Cycle) -> objects.Pod | None:
        """Return the pod as the API has it; None if it is gone, another one, bound or terminating (upstream A14.2)."""
        pod = self._core.current(queued.pod)
        if pod is not None and not pod.spec.node_name and pod.metadata.deletion_timestamp is None:
            return pod
        bound = pod is not None and bool(pod.spec.node_name)
        outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND if bound else scheduler_plugin_pb2.CYCLE_OUTCOME_POD_DELETED
        await self._runner.end(cycle, outcome)
        return None

    async def _report(
        self, queued: QueuedPod, pod: objects.Pod, failure: Failure
    ) -> tuple[Failure, NominatedPod | None]:
        """Write what happened. A nomination that cannot be written or confirmed makes the failure an error."""
        nominating = failure.nominating
        nominator = self._core.nominator
        uid = pod.metadata.uid
        if nominating.nomination is not None:
            self._lost(pod, nominator.nominate(nominating.nomination))
        elif nominating.override:
            self._lost(pod, nominator.clear(uid))
        reason = pod_status.UNSCHEDULABLE if failure.rejected else pod_status.SCHEDULER_ERROR
        queued.message = failure.message
        self._event(pod, failure.message)
        written = await self._writer.failed(pod, reason, failure.message, nominating)
        if not written and nominating.nomination is None:
            later = self._explain_later(queued, reason, failure.message, nominating)
            self._core.spawn(later, f"explain {pod.metadata.namespace}/{pod.metadata.name}")
        nomination = nominating.nomination
        if nomination is not None and (
            not written or nominator.get(uid) is None or not await self._confirm(nomination)
        ):
            # Nobody is evicted for a nomination that is not on record (F7).
            held = nominator.get(uid)
            if held is not None and held.generation == nomination.generation:
                self._lost(pod, nominator.clear(uid))
            current = self._core.current(pod)
            if written and current is not None:
                await self._writer.clear_nomination(_with_nomination(current, nomination))
            failure = Failure("the nomination could not be confirmed", rejected=False)
            nomination = None
        await self._hook.delivered()
        self._core.metrics.schedule_attempts.labels(failure.result, self._core.metrics.profile).inc()
        return failure, nomination

    def _lost(self, pod: objects.Pod, change: NominationChange) -> None:
        self._hook.changed(change)
        if change.lost is not None:
            self._core.nomination_gone(pod, change.lost.node)

    async def _explain_later(self, queued: QueuedPod, reason: str, message: str, nominating: Nominating) -> None:
        """Write what the API has not taken, until it does or a later attempt has something else to say.

        Otherwise a pod that sleeps would show no reason, or a nomination that nobody stands by, until its next attempt.
        """
        core = self._core
        wait = core.settings.reconnect_seconds
        while True:
            await core.env.clock.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
            pod = core.current(queued.pod)
            if pod is None or pod.spec.node_name or core.cache.node_of(queued.uid) or queued.message is not message:
                return
            if nominating.override and core.nominator.get(queued.uid) is not None:
                return
            if queued.place is Place.IN_FLIGHT:
                continue
            if await self._writer.failed(pod, reason, message, nominating):
                return

    async def _confirm(self, nomination: NominatedPod) -> bool:
        for plugin in self._core.remotes:
            if not plugin.extends_nominations or plugin.session is None:
                continue
            request = nomination_extensions_pb2.ConfirmNominatedPodRequest(
                session=plugin.session,
                pod=wire.nominated_reference(nomination),
                generation=nomination.generation,
            )
            try:
                await plugin.call(plugin.nominations.ConfirmNominatedPod, request)
            except PluginError as error:
                _log.warning("nomination of pod %s/%s: %s", nomination.namespace, nomination.name, error)
                return False
        return True

    async def _end(self, cycle: Cycle, failure: Failure) -> Strategy:
        if failure.rejected:
            outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN
        else:
            outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_ERROR
        verdict = await self._runner.end(cycle, outcome)
        return _STRATEGIES.get(verdict, Strategy.SKIP)

    def _event(self, pod: objects.Pod, message: str) -> None:
        note = message if len(message) <= _LONGEST_NOTE else f"{message[: _LONGEST_NOTE - 4]} ..."
        self._core.record(pod, WARNING, "FailedScheduling", "Scheduling", note)


def _with_nomination(pod: objects.Pod, nomination: NominatedPod) -> objects.Pod:
    """The pod with what was just written to it, which the watch may not have delivered yet."""
    status = msgspec.structs.replace(pod.status, nominated_node_name=nomination.node)
    return msgspec.structs.replace(pod, status=status)
