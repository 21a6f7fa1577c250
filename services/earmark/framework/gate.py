"""The gate "preemption running": a preemptor is not tried while its victims are still being made to go (B9.4)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.status import Status, unresolvable
from earmark.kube import objects

REASON = "waiting for the preemption for this pod to be finished"
NAME = "DefaultPreemption"


class PreemptionGate:
    """A PreEnqueue plugin. `begin` and `end` bracket the execution of a preemption."""

    name = NAME

    def __init__(self) -> None:
        self._running: dict[str, int] = {}
        self.hints: Mapping[str, Hint] = MappingProxyType({events.ASSIGNED_POD_DELETE: self._ended})

    def _ended(self, pod: objects.Pod, old: EventObject, _new: EventObject) -> bool:
        """Whether a pod has ended that the preemptor may have waited for, on its nominated node.

        While the gate is closed a victim's end may open it but is no reason by itself to try the pod again.
        """
        if pod.metadata.uid in self._running or not isinstance(old, objects.Pod):
            return False
        return old.spec.node_name != "" and old.spec.node_name == pod.status.nominated_node_name

    def begin(self, uid: str, generation: int) -> None:
        """A preemption for the pod begins to be executed."""
        self._running[uid] = generation

    def end(self, uid: str, generation: int) -> None:
        """It is over; a newer one keeps the gate closed."""
        if self._running.get(uid) == generation:
            del self._running[uid]

    def pre_enqueue(self, pod: objects.Pod) -> Status | None:
        """Refuse a pod whose preemption is running."""
        return unresolvable(REASON).by(NAME) if pod.metadata.uid in self._running else None
