"""One scheduling attempt (upstream A3): from a popped pod to a binding that runs in the background, or to a failure."""

from __future__ import annotations

import logging

from earmark.framework import events, fit, hooks
from earmark.framework.binding import Binder, Binding, rejection_of
from earmark.framework.core import Core
from earmark.framework.cycle import AttemptError, Cycle, CycleRunner
from earmark.framework.events import ClusterEvent
from earmark.framework.failure import Failure, FailureHandler
from earmark.framework.history import Histories
from earmark.framework.hooks import NominationHook
from earmark.framework.node_info import PodInfo
from earmark.framework.pod_status import CLEAR
from earmark.framework.preempting import Preempting
from earmark.framework.queue.entry import QueuedPod
from earmark.framework.remote import PluginError
from earmark.framework.sessions import Sessions
from earmark.framework.timing import Timing
from earmark.framework.trace import WindowSpans
from earmark.kube.quantity import QuantityError
from earmark.kube.recorder import WARNING
from earmark.runtime import semconv
from earmark.v1 import scheduler_plugin_pb2

_log = logging.getLogger(__name__)


class Scheduler:
    """Runs attempts, one after the other."""

    def __init__(
        self,
        core: Core,
        runner: CycleRunner,
        sessions: Sessions,
        preempting: Preempting,
        failures: FailureHandler,
        binder: Binder,
        hook: NominationHook,
        histories: Histories,
    ) -> None:
        self._core = core
        self._runner = runner
        self._sessions = sessions
        self._preempting = preempting
        self._failures = failures
        self._binder = binder
        self._hook = hook
        self._histories = histories
        self._spans = WindowSpans(core.env.telemetry, core.env.clock)
        self._filter_names = tuple(plugin.name for plugin in core.filters)

    async def attempt(self, queued: QueuedPod) -> None:
        """Try to schedule a pod that was popped."""
        core = self._core
        pod = core.current(queued.pod)
        if pod is None or pod.spec.node_name or core.cache.node_of(queued.uid):
            core.queue.done(queued)
            return
        queued.pod = pod
        if pod.metadata.deletion_timestamp is not None:
            note = f"skip schedule deleting pod: {pod.metadata.namespace}/{pod.metadata.name}"
            core.record(pod, WARNING, "FailedScheduling", "Scheduling", note)
            core.queue.done(queued)
            return
        attributes: dict[str, str | int] = {
            semconv.POD_NAMESPACE: pod.metadata.namespace,
            semconv.POD_NAME: pod.metadata.name,
            semconv.POD_UID: queued.uid,
            "earmark.attempt": queued.attempts,
        }
        held, since = core.nominator.get(queued.uid), core.env.clock.now()
        core.idle = False
        try:
            with core.env.telemetry.span(semconv.SCHEDULING_ATTEMPT, attributes):
                failure = await self._attempt(queued)
                outcome, reason = ("scheduled", "") if failure is None else (failure.result, failure.message)
                self._spans.attempted(held, queued.attempts, since, outcome, reason)
        finally:
            core.idle = True

    async def _attempt(self, queued: QueuedPod) -> Failure | None:
        """Place the pod and begin to bind it; return why not if it could not be."""
        core = self._core
        begun = core.now()
        core.take_snapshot()
        sampled = core.env.ids.below(100) < core.settings.plugin_metrics_sample_percent
        timing = Timing(core.metrics, core.env.clock, self._filter_names, sampled=sampled)
        try:
            info = PodInfo.of(queued.pod)
        except QuantityError as reason:
            cycle = Cycle(core.next_cycle(), _bare(queued), core.snapshot, timing)
            return await self._fail(queued, cycle, begun, Failure(f"pod's resources: {reason}", rejected=False))
        cycle = Cycle(core.next_cycle(), info, core.snapshot, timing, nominated_node=core.nominated_node(queued.pod))
        try:
            node, failure = await self._place(cycle)
        except (AttemptError, PluginError) as reason:
            # The nomination stays: it is not known to be of no use (unlike upstream A3.5, a remote plugin may be away).
            node, failure = "", Failure(str(reason), rejected=False)
        core.metrics.algorithm_duration.observe(core.now() - begun)
        if failure is not None:
            return await self._fail(queued, cycle, begun, failure)
        return await self._commit(queued, cycle, node, begun)

    async def _place(self, cycle: Cycle) -> tuple[str, Failure | None]:
        """Find a node; return it, or why there is none."""
        core = self._core
        total = len(cycle.snapshot.order)
        sessions = await self._sessions.current()
        with cycle.timing.extension_point("PreFilter"):
            goes_on = await self._runner.pre_filter(cycle, sessions)
        if total == 0:
            # Upstream A2.7: no plugin is to blame; a new node wakes the pod.
            cycle.diagnosis.unschedulable_plugins = dict.fromkeys(plugin.name for plugin in core.filters)
            return "", Failure(fit.NO_NODES, rejected=True, nominating=CLEAR)
        if goes_on:
            with cycle.timing.extension_point("Filter"):
                await self._runner.find_feasible(cycle)
        if cycle.feasible:
            return await self._runner.choose(cycle), None
        result = await self._preempting.post_filter(cycle)
        cycle.diagnosis.post_filter_message = result.message
        self._histories.remember(cycle, result.node_reasons)
        return "", Failure(fit.fit_error(cycle.diagnosis, total), rejected=True, nominating=result.nominating)

    async def _commit(self, queued: QueuedPod, cycle: Cycle, node: str, begun: float) -> Failure | None:
        """Assume, Reserve, and bind in the background (upstream A11, A13)."""
        core = self._core
        if core.current(queued.pod) is None or core.cache.node_of(queued.uid):
            await self._runner.end(cycle, scheduler_plugin_pb2.CYCLE_OUTCOME_POD_DELETED)
            core.queue.done(queued)
            return Failure("the pod is gone or placed already", rejected=False)
        core.cache.assume(cycle.pod, node)
        change = core.nominator.clear(queued.uid)
        nomination = change.old if change.old is not None and change.old.generation > 0 else None
        if nomination is not None:
            # F8: the hold moves to "assigned"; Reserve's in-flight allocation takes its place.
            self._hook.removed(nomination, hooks.ASSUMED)
            await self._hook.delivered()
        try:
            with cycle.timing.extension_point("Reserve"):
                status = await self._binder.reserve(cycle, node)
        except PluginError as reason:
            _log.warning("pod %s/%s: %s", queued.pod.metadata.namespace, queued.pod.metadata.name, reason)
            self._binder.undo(Binding(queued, cycle, node, begun, nomination), reason)
            return Failure(str(reason), rejected=False)
        if status is None:
            self._histories.forget(queued.uid)
            self._binder.begin(Binding(queued, cycle, node, begun, nomination))
            return None
        core.cache.forget(queued.uid)
        if nomination is not None:
            self._hook.removed(nomination, hooks.CLEARED)
        failure = rejection_of(cycle, node, status)
        core.queue.move(
            ClusterEvent(events.ASSIGNED_POD_DELETE, old=queued.pod), core.now(), lambda p: p.metadata.uid != queued.uid
        )
        return await self._fail(queued, cycle, begun, failure)

    async def _fail(self, queued: QueuedPod, cycle: Cycle, begun: float, failure: Failure) -> Failure:
        """Handle a failure and return it."""
        core = self._core
        if not failure.rejected:
            _log.warning("pod %s/%s: %s", queued.pod.metadata.namespace, queued.pod.metadata.name, failure.message)
        nomination = await self._failures.handle(queued, cycle, failure)
        core.metrics.attempt_duration.labels(failure.result, core.metrics.profile).observe(core.now() - begun)
        if nomination is not None:
            core.spawn(self._preempting.execute(nomination), f"execute {nomination.name} {nomination.generation}")
        return failure


def _bare(queued: QueuedPod) -> PodInfo:
    """A pod whose resources cannot be read, with none."""
    return PodInfo(queued.pod, queued.uid, queued.pod.priority, {}, 0, 0, ())
