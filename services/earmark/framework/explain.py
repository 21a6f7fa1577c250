"""Says for people where a pod is and why."""

from __future__ import annotations

from datetime import timedelta

from earmark.framework import wire
from earmark.framework.binding import Binder
from earmark.framework.core import Core
from earmark.framework.history import Histories
from earmark.framework.pod_status import POD_SCHEDULED
from earmark.framework.queue.entry import Place, QueuedPod
from earmark.v1 import framework_pb2

# On its way past PreEnqueue a pod is as good as gated for people.
_PLACES = {place: place.value for place in Place} | {Place.ENTERING: Place.GATED.value}


class Explanations:
    """See the module."""

    def __init__(self, core: Core, binder: Binder, histories: Histories) -> None:
        self._core = core
        self._binder = binder
        self._histories = histories

    def explain(self, namespace: str, name: str, uid: str) -> framework_pb2.ExplainPodResponse:
        """Explain the pod of this name, or of this UID if one is given."""
        core = self._core
        pod = core.pods.get(namespace, name)
        if pod is None or (uid and pod.metadata.uid != uid):
            return framework_pb2.ExplainPodResponse(pod=wire.reference(namespace, name, uid), where="unknown")
        uid = pod.metadata.uid
        message = framework_pb2.ExplainPodResponse(
            pod=wire.pod_reference(pod), nominated_node_name=core.nominated_node(pod)
        )
        queued = core.queue.get(uid)
        binding = self._binder.get(uid)
        if pod.spec.node_name:
            message.where = "bound"
            message.message = f"bound to node {pod.spec.node_name}"
            message.nominated_node_name = ""
        elif binding is not None:
            message.where = "pre_bind"
            message.attempts = binding.queued.attempts
            message.message = f"being bound to node {binding.node}"
        elif queued is not None:
            self._queued(message, queued)
        elif not core.responsible(pod):
            message.where = "unknown"
            message.message = f"the pod is scheduled by {pod.spec.scheduler_name!r}"
        else:
            message.where = "unknown"
        if not message.HasField("since"):
            condition = next((c for c in pod.status.conditions if c.type == POD_SCHEDULED), None)
            if condition is not None and condition.last_transition_time is not None:
                message.since.FromDatetime(condition.last_transition_time)
        return message

    def _queued(self, message: framework_pb2.ExplainPodResponse, queued: QueuedPod) -> None:
        message.where = _PLACES[queued.place]
        message.since.FromDatetime(self._core.env.clock.now() - timedelta(seconds=self._core.now() - queued.since))
        message.message = _text(queued)
        message.attempts = queued.attempts
        waits_for = dict.fromkeys((*queued.unschedulable_plugins, *queued.pending_plugins))
        if queued.gating_plugin:
            waits_for[queued.gating_plugin] = None
        message.waits_for.extend(waits_for)
        history = self._histories.get(queued.uid)
        if history is not None:
            message.reasons.extend(history.node_reasons())

    def queue(self) -> list[framework_pb2.QueuedPod]:
        """List all pending pods, higher priority first."""
        now, clock = self._core.now(), self._core.env.clock.now()
        pods = sorted(self._core.queue.pods(), key=lambda q: (-q.pod.priority, q.timestamp, q.pod.key))
        messages = []
        for queued in pods:
            message = framework_pb2.QueuedPod(
                pod=wire.pod_reference(queued.pod),
                queue=_PLACES[queued.place],
                priority=queued.pod.priority,
                attempts=queued.attempts,
                unschedulable_plugins=list(queued.unschedulable_plugins),
                nominated_node_name=self._core.nominated_node(queued.pod),
                message=_text(queued),
            )
            message.since.FromDatetime(clock - timedelta(seconds=now - queued.since))
            messages.append(message)
        return messages


def _text(queued: QueuedPod) -> str:
    return queued.gated_by.message if queued.gated_by is not None else queued.message
