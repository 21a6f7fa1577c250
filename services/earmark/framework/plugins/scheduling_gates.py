"""SchedulingGates: a pod with scheduling gates waits until they are gone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from earmark.framework import events
from earmark.framework.events import Hint
from earmark.framework.status import Status, unresolvable
from earmark.kube import objects


class SchedulingGates:
    """See the module."""

    name = "SchedulingGates"
    hints: Mapping[str, Hint] = MappingProxyType({events.POD_GATES_ELIMINATED: events.always})

    def pre_enqueue(self, pod: objects.Pod) -> Status | None:
        """Refuse a pod with gates."""
        if not pod.spec.scheduling_gates:
            return None
        names = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{names}]").by(self.name)
