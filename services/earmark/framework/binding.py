"""The binding cycle: PreBind, bind, and what undoes them (upstream A13). One background task a pod."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from earmark.framework import events, hooks, metrics, wire
from earmark.framework.core import Core
from earmark.framework.cycle import Cycle, CycleRunner
from earmark.framework.events import ClusterEvent
from earmark.framework.failure import Failure, FailureHandler
from earmark.framework.fit import Diagnosis, fit_error
from earmark.framework.hooks import NominationHook
from earmark.framework.nominator import NominatedPod
from earmark.framework.pod_status import CLEAR, KEEP
from earmark.framework.queue.entry import QueuedPod
from earmark.framework.remote import PluginError, RemoteCycle
from earmark.framework.status import SUCCESS, Status, error
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.recorder import NORMAL
from earmark.runtime import semconv
from earmark.v1 import scheduler_plugin_pb2

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Binding:
    """A pod on its way to a node."""

    queued: QueuedPod
    cycle: Cycle
    node: str
    # When the attempt began, in seconds.
    begun: float
    # The nomination that it had when it was assumed.
    nomination: NominatedPod | None = None
    # PreBind is running and may be given up; False once the pod is being bound.
    cancellable: bool = True
    preempted_by: str = ""
    # A call to a plugin broke: nothing speaks against the node, and what is held there may still be of use.
    broken: bool = False
    pre_bind: asyncio.Task[Status | None] | None = None


class Binder:
    """Reserves and binds, and undoes both."""

    def __init__(self, core: Core, runner: CycleRunner, failures: FailureHandler, hook: NominationHook) -> None:
        self._core = core
        self._runner = runner
        self._failures = failures
        self._hook = hook
        self._bindings: dict[str, Binding] = {}

    def get(self, uid: str) -> Binding | None:
        """Return a pod's binding."""
        return self._bindings.get(uid)

    # --- Reserve -----------------------------------------------------------------------------------------------------

    async def reserve(self, cycle: Cycle, node: str) -> Status | None:
        """Run Reserve of all plugins; where one says no everything is unreserved again (upstream A11.3).

        Raises:
            PluginError: if a plugin cannot be asked. Nothing is unreserved then: that waits until the plugin is there
                again, and the session with it is opened by the loop that this runs in. See `undo`.
        """
        for remote in cycle.remotes:
            if remote.skipped or not remote.plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_RESERVE):
                continue
            request = scheduler_plugin_pb2.ReserveRequest(
                session=remote.session, cycle_id=remote.cycle_id, node_name=node
            )
            remote.reserved = True
            with cycle.timing.plugin(remote.plugin.name, "Reserve"):
                answer = await remote.plugin.call(remote.plugin.stub.Reserve, request)
            remote.reservation = answer.reservation
            status = wire.to_status(answer.status, remote.plugin.name)
            if not status.success:
                await self.unreserve(cycle, node, preempted=False)
                return status
        return None

    async def unreserve(self, cycle: Cycle, node: str, *, preempted: bool) -> None:
        """Undo Reserve, in reverse order. A plugin that is away gets it when it is there again."""
        for remote in reversed(cycle.remotes):
            if remote.reserved:
                remote.reserved = False
                await self._unreserve(remote, cycle, node, preempted=preempted)

    async def _unreserve(self, remote: RemoteCycle, cycle: Cycle, node: str, *, preempted: bool) -> None:
        plugin = remote.plugin
        request = scheduler_plugin_pb2.UnreserveRequest(
            session=plugin.session or remote.session,
            pod=wire.pod_reference(cycle.pod.pod),
            node_name=node,
            reservation=remote.reservation,
            preempted=preempted,
        )
        while True:
            while plugin.refresh:
                # First it has to hear what is nominated: it must not give away what this pod gives back.
                self._core.notify()
                await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
            if plugin.session is not None:
                # A new session of a restarted plugin takes it as well: it needs no cycle.
                request.session.CopyFrom(plugin.session)
            try:
                await plugin.call(plugin.stub.Unreserve, request, self._core.settings.filter_timeout_seconds)
            except PluginError as failure:
                _log.warning("pod %s/%s: %s", request.pod.namespace, request.pod.name, failure)
                if not (failure.transient or plugin.doubtful):
                    return
                self._core.notify()
                await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
                continue
            return

    # --- binding -----------------------------------------------------------------------------------------------------

    def begin(self, binding: Binding) -> None:
        """Bind in the background."""
        uid = binding.queued.uid
        self._bindings[uid] = binding
        self._core.queue.binding(binding.queued)
        self._core.spawn(self._run(binding), f"binding {binding.queued.pod.metadata.name}")

    def undo(self, binding: Binding, failure: PluginError) -> None:
        """Give back in the background what a broken Reserve may have taken; then the pod is queued again."""
        binding.cancellable, binding.broken = False, True
        self._bindings[binding.queued.uid] = binding
        self._core.queue.binding(binding.queued)
        status = error(str(failure)).by(failure.plugin)
        self._core.spawn(self._failed(binding, status), f"undoing {binding.queued.pod.metadata.name}")

    def preempt(self, uid: str, by: str) -> bool:
        """Take a pod out of PreBind; False if it has none, or is being bound already (upstream A13.4)."""
        binding = self._bindings.get(uid)
        if binding is None or not binding.cancellable or binding.preempted_by:
            return False
        binding.preempted_by = by
        if binding.pre_bind is not None:
            binding.pre_bind.cancel()
        return True

    def pod_deleted(self, uid: str) -> None:
        """A pod that is being bound is gone or terminating: its PreBind ends."""
        binding = self._bindings.get(uid)
        if binding is not None and binding.cancellable and binding.pre_bind is not None:
            binding.pre_bind.cancel()

    async def _run(self, binding: Binding) -> None:
        meta = binding.queued.pod.metadata
        attributes = {
            semconv.POD_NAMESPACE: meta.namespace,
            semconv.POD_NAME: meta.name,
            semconv.POD_UID: meta.uid,
            semconv.NODE_NAME: binding.node,
        }
        with self._core.env.telemetry.span(semconv.SCHEDULING_BINDING, attributes):
            with binding.cycle.timing.extension_point("PreBind") as done:
                failure = await self._pre_bind(binding)
                if failure is not None:
                    done(failure)
            if failure is None:
                binding.cancellable = False
                with binding.cycle.timing.extension_point("Bind") as done:
                    failure = await self._bind(binding)
                    if failure is not None:
                        done(failure)
        if failure is None:
            await self._bound(binding)
        else:
            await self._failed(binding, failure)

    async def _pre_bind(self, binding: Binding) -> Status | None:
        """Run PreBind; it can be cancelled by `preempt`."""
        for remote in binding.cycle.remotes:
            if remote.skipped or not remote.plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_PRE_BIND):
                continue
            if not binding.preempted_by:
                call = self._pre_bind_of(remote, binding)
                task = binding.pre_bind = asyncio.ensure_future(call)
                try:
                    await asyncio.wait({task})
                finally:
                    # The component ends: the call ends with it.
                    task.cancel()
                binding.pre_bind = None
                if not task.cancelled():
                    status = task.result()
                    if status is not None:
                        return status
                    if not binding.preempted_by:
                        continue
                elif not binding.preempted_by:
                    return error("the pod is being deleted")
            break
        if binding.preempted_by:
            return error(f"preempted by {binding.preempted_by}")
        return None

    async def _pre_bind_of(self, remote: RemoteCycle, binding: Binding) -> Status | None:
        request = scheduler_plugin_pb2.PreBindRequest(
            session=remote.session, cycle_id=remote.cycle_id, node_name=binding.node
        )
        try:
            with binding.cycle.timing.plugin(remote.plugin.name, "PreBind"):
                timeout = self._core.settings.pre_bind_timeout_seconds
                answer = await remote.plugin.call(remote.plugin.stub.PreBind, request, timeout)
        except PluginError as failure:
            binding.broken = True
            return error(str(failure)).by(remote.plugin.name)
        status = wire.to_status(answer.status, remote.plugin.name)
        return None if status.success else status

    async def _bind(self, binding: Binding) -> Status | None:
        meta = binding.queued.pod.metadata
        while True:
            refused: ApiError | None = None
            try:
                await self._core.env.api.bind(meta.namespace, meta.name, meta.uid, binding.node)
                return None
            except ApiError as refusal:
                refused = refusal
                if self._bound_here(binding):
                    return None
                if not refusal.uncertain:
                    return error(f"binding rejected: {refusal}")
            except ApiUnavailable as failure:
                _log.warning("binding pod %s/%s: the API is away: %s", meta.namespace, meta.name, failure)
                self._core.api_away = True
                await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
            # What came of it is not known: nothing may be given back before it is.
            outcome = await self._look(binding)
            if outcome is not None:
                return None if outcome.success else outcome
            if refused is not None:
                return error(f"binding rejected: {refused}")

    async def _look(self, binding: Binding) -> Status | None:
        """Look at the pod in the API, however long that is away.

        Returns success if the pod is bound here, an error if it cannot be any more, None if it is not bound.
        """
        meta = binding.queued.pod.metadata
        while True:
            try:
                found = await self._core.env.api.get(objects.Pod, meta.name, meta.namespace)
                break
            except ApiError as refusal:
                if not refusal.uncertain:
                    return error(f"binding rejected: {refusal}")
            except ApiUnavailable:
                self._core.api_away = True
            await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
        if found.metadata.uid != meta.uid or found.spec.node_name not in ("", binding.node):
            return error("binding rejected: the pod is another one or bound elsewhere")
        return SUCCESS if found.spec.node_name else None

    def _bound_here(self, binding: Binding) -> bool:
        found = self._core.current(binding.queued.pod)
        return found is not None and found.spec.node_name == binding.node

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _bound(self, binding: Binding) -> None:
        core, queued = self._core, binding.queued
        meta = queued.pod.metadata
        self._bindings.pop(queued.uid, None)
        note = f"Successfully assigned {meta.namespace}/{meta.name} to {binding.node}"
        core.record(queued.pod, NORMAL, "Scheduled", "Binding", note)
        now = core.now()
        core.metrics.attempt_ended(metrics.SCHEDULED, now - binding.begun)
        waited = now - queued.first_active if queued.first_active is not None else None
        core.metrics.scheduled(queued.attempts, waited, flushed=queued.flushed)
        if binding.nomination is not None:
            self._hook.removed(binding.nomination, hooks.BOUND)
            await self._hook.delivered()
        await self._runner.end(binding.cycle, scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND)

    async def _failed(self, binding: Binding, status: Status) -> None:
        """Undo, tell the queue that there is room, and put the pod back (upstream A13.6)."""
        core, queued = self._core, binding.queued
        keeps = binding.broken and not binding.preempted_by and self._nominate_again(binding)
        await self.unreserve(binding.cycle, binding.node, preempted=bool(binding.preempted_by))
        assumed = core.cache.pod(queued.uid)
        core.cache.forget(queued.uid)
        if binding.nomination is not None and not keeps:
            self._hook.removed(binding.nomination, hooks.CLEARED)
        freed = ClusterEvent(events.ASSIGNED_POD_DELETE, old=assumed)
        if not status.rejected:
            core.move(freed)
        failure = rejection_of(binding.cycle, binding.node, status)
        if keeps:
            failure = replace(failure, nominating=KEEP)
        await self._failures.handle_binding(queued, binding.cycle, failure)
        self._bindings.pop(queued.uid, None)
        if status.rejected:
            # The pod itself is not moved by its own room (upstream A13.6).
            core.queue.move(freed, core.now(), lambda pod: pod.metadata.uid != queued.uid)
        core.notify()

    def _nominate_again(self, binding: Binding) -> bool:
        """Put back the nomination that the pod was assumed with; return whether there is one.

        A plugin that is restarted while it reserves or writes has not refused anything. With its nomination the pod
        would lose what was freed for it, to whoever is tried next. At once, so that the handshake carries it (F44).
        """
        nomination = binding.nomination
        if nomination is None or self._core.current(binding.queued.pod) is None:
            return False
        self._core.nominator.nominate(nomination)
        for remote in binding.cycle.remotes:
            if remote.plugin.extends_nominations:
                remote.plugin.doubtful = remote.plugin.refresh = True
        return True


def rejection_of(cycle: Cycle, node: str, status: Status) -> Failure:
    """Return the failure of a pod that was refused on its way to a node; its text is of that node (upstream A2.6)."""
    if not status.rejected:
        return Failure(status.message, rejected=False, nominating=CLEAR)
    one = Diagnosis(unschedulable_plugins=cycle.diagnosis.unschedulable_plugins)
    one.reject_node(node, status)
    cycle.diagnosis = one
    return Failure(fit_error(one, 1), rejected=True, nominating=CLEAR)
