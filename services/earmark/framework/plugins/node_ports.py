"""NodePorts: two pods cannot have one host port."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult
from earmark.framework.requests import host_ports, ports_conflict
from earmark.framework.status import Code, Status, unschedulable
from earmark.kube import objects

REASON = "node(s) didn't have free ports for the requested pod ports"


def _port_freed(pod: objects.Pod, old: EventObject, _new: EventObject) -> bool:
    if not isinstance(old, objects.Pod):
        return False
    freed = host_ports(old)
    return any(ports_conflict(wanted, port) for wanted in host_ports(pod) for port in freed)


class NodePorts:
    """See the module."""

    name = "NodePorts"
    sees_identity = False
    hints: Mapping[str, Hint] = MappingProxyType(
        {events.ASSIGNED_POD_DELETE: _port_freed, events.NODE_ADD: events.always}
    )

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Skip pods without host ports."""
        return PreFilterResult() if pod.ports else PreFilterResult(Status(Code.SKIP))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse a node on which a wanted port is taken."""
        if any(ports_conflict(wanted, taken) for wanted in pod.ports for taken in node.ports):
            return unschedulable(REASON)
        return None
