"""NodeName: a pod that names its node goes nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult
from earmark.framework.status import Code, Status, unresolvable
from earmark.kube import objects

REASON = "node(s) didn't match the requested node name"


def _named(pod: objects.Pod, _old: EventObject, new: EventObject) -> bool:
    return isinstance(new, objects.Node) and new.metadata.name == pod.spec.node_name


class NodeName:
    """See the module."""

    name = "NodeName"
    sees_identity = True
    hints: Mapping[str, Hint] = MappingProxyType({events.NODE_ADD: _named})

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Skip pods that name no node."""
        return PreFilterResult() if pod.pod.spec.node_name else PreFilterResult(Status(Code.SKIP))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse every node but the named one."""
        return None if pod.pod.spec.node_name == node.name else unresolvable(REASON)
