"""TaintToleration: taints keep pods away (filter), or make nodes less welcome (score)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult, default_normalize
from earmark.framework.status import Status, unresolvable
from earmark.kube import objects
from earmark.kube.selectors import tolerates, untolerated

REASON = "node(s) had untolerated taint(s)"
_HARD = ("NoSchedule", "NoExecute")
_SOFT = "PreferNoSchedule"


def _kept_away(pod: objects.Pod, node: objects.Node) -> bool:
    return untolerated(node.spec.taints, pod.spec.tolerations, _HARD) is not None


def _welcome(pod: objects.Pod, old: EventObject, new: EventObject) -> bool:
    if not isinstance(new, objects.Node):
        return True
    before = isinstance(old, objects.Node) and not _kept_away(pod, old)
    return not before and not _kept_away(pod, new)


class TaintToleration:
    """See the module."""

    name = "TaintToleration"
    sees_identity = False
    weight = 3
    hints: Mapping[str, Hint] = MappingProxyType(
        {events.NODE_ADD: _welcome, events.NODE_TAINT: _welcome, events.POD_TOLERATION: _welcome}
    )

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Nothing to prepare."""
        return PreFilterResult()

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse a node with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        if not node.node.spec.taints:
            return None
        return unresolvable(REASON) if _kept_away(pod.pod, node.node) else None

    def pre_score(self, pod: PodInfo) -> tuple[Any, bool]:
        """Keep the tolerations that can cover a soft taint."""
        return [t for t in pod.pod.spec.tolerations if t.effect in ("", _SOFT)], True

    def score(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        """Count the soft taints that the pod does not tolerate."""
        return sum(
            taint.effect == _SOFT and not any(tolerates(toleration, taint) for toleration in state)
            for taint in node.node.spec.taints
        )

    def normalize(self, scores: Sequence[int]) -> Sequence[int]:
        """The fewer, the better."""
        return default_normalize(scores, reverse=True)
