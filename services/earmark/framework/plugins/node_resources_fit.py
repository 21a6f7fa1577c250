"""NodeResourcesFit: requests must fit into what is left (filter); emptier nodes are better (LeastAllocated)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import MAX_SCORE, PreFilterResult
from earmark.framework.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, amounts, pod_requests
from earmark.framework.status import Code, Status
from earmark.kube import objects

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


def _ordered(requests: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Requests in the order of the reasons: upstream's fixed ones, then extended resources by name."""
    names = [name for name in _FIRST if name in requests]
    names += sorted(name for name in requests if name not in _FIRST and name != PODS)
    return tuple((name, requests[name]) for name in names if requests[name] > 0)


def _could_fit(pod: objects.Pod, node: objects.Node) -> bool:
    allocatable = amounts(node.status.allocatable or node.status.capacity)
    return all(amount <= allocatable.get(name, 0) for name, amount in pod_requests(pod).items())


def _room_made(_pod: objects.Pod, old: EventObject, _new: EventObject) -> bool:
    # An unbound pod that lost its nomination makes room too (upstream A15.8).
    return isinstance(old, objects.Pod) and bool(old.spec.node_name or old.status.nominated_node_name)


def _node_grew(pod: objects.Pod, old: EventObject, new: EventObject) -> bool:
    if not isinstance(new, objects.Node) or not _could_fit(pod, new):
        return False
    if not isinstance(old, objects.Node):
        return True
    before, after = amounts(old.status.allocatable), amounts(new.status.allocatable)
    wanted = (PODS, *pod_requests(pod))
    return any(after.get(name, 0) > before.get(name, 0) for name in wanted)


class NodeResourcesFit:
    """See the module."""

    name = "NodeResourcesFit"
    sees_identity = False
    weight = 1
    hints: Mapping[str, Hint] = MappingProxyType(
        {
            events.ASSIGNED_POD_DELETE: _room_made,
            events.NODE_ADD: _node_grew,
            events.NODE_ALLOCATABLE: _node_grew,
            events.POD_SCALE_DOWN: events.always,
        }
    )

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Put the requests into the order of the reasons."""
        return PreFilterResult(state=_ordered(pod.requests))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse a node with too little left. Beyond all that is allocatable there, removing pods does not help."""
        reasons: list[str] = []
        code = Code.UNSCHEDULABLE
        allowed = node.allocatable.get(PODS, 0)
        if len(node.pods) + 1 > allowed:
            reasons.append("Too many pods")
        for name, amount in state:
            total = node.allocatable.get(name, 0)
            if amount > total - node.requested.get(name, 0):
                reasons.append(f"Insufficient {name}")
                if amount > total:
                    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Status(code, tuple(reasons)) if reasons else None

    def pre_score(self, pod: PodInfo) -> tuple[Any, bool]:
        """Always ranks."""
        return None, True

    def score(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        """LeastAllocated over CPU and memory, equally weighted."""
        parts = (
            (node.scoring_cpu + pod.scoring_cpu, node.allocatable.get(CPU, 0)),
            (node.scoring_memory + pod.scoring_memory, node.allocatable.get(MEMORY, 0)),
        )
        scores = [_free_share(requested, total) for requested, total in parts if total > 0]
        return sum(scores) // len(scores) if scores else 0

    def normalize(self, scores: Sequence[int]) -> Sequence[int]:
        """They are 0..100 already."""
        return scores


def _free_share(requested: int, total: int) -> int:
    return 0 if requested > total else (total - requested) * MAX_SCORE // total
