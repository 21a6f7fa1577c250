"""NodeUnschedulable: cordoned nodes are for pods that tolerate the taint of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult
from earmark.framework.status import Status, unresolvable
from earmark.kube import objects
from earmark.kube.selectors import tolerates

REASON = "node(s) were unschedulable"
_TAINT = objects.Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def _tolerated(pod: objects.Pod) -> bool:
    return any(tolerates(toleration, _TAINT) for toleration in pod.spec.tolerations)


def _schedulable(pod: objects.Pod, old: EventObject, new: EventObject) -> bool:
    if not isinstance(new, objects.Node):
        return isinstance(new, objects.Pod) and _tolerated(new)
    if isinstance(old, objects.Node) and not old.spec.unschedulable:
        return False
    return not new.spec.unschedulable or _tolerated(pod)


class NodeUnschedulable:
    """See the module."""

    name = "NodeUnschedulable"
    sees_identity = False
    hints: Mapping[str, Hint] = MappingProxyType(
        {
            events.NODE_ADD: _schedulable,
            events.NODE_TAINT: _schedulable,
            events.POD_TOLERATION: _schedulable,
        }
    )

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Remember whether the pod may go to cordoned nodes."""
        return PreFilterResult(state=_tolerated(pod.pod))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse a cordoned node."""
        return unresolvable(REASON) if node.node.spec.unschedulable and not state else None
