"""NodeAffinity: nodeSelector and node affinity, required (filter) and preferred (score)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import PreFilterResult, default_normalize
from earmark.framework.status import Code, Status, unresolvable
from earmark.kube import objects
from earmark.kube.selectors import node_selector_matches, node_selector_term_matches

REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


def _affinity(pod: objects.Pod) -> objects.NodeAffinity:
    affinity = pod.spec.affinity
    return (affinity.node_affinity if affinity else None) or objects.NodeAffinity()


def matches(pod: objects.Pod, node: objects.Node) -> bool:
    """Whether a node has what the pod's nodeSelector and required affinity ask for."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = _affinity(pod).required
    return required is None or node_selector_matches(required, labels, node.metadata.name)


def _matches_now(pod: objects.Pod, old: EventObject, new: EventObject) -> bool:
    if not isinstance(new, objects.Node) or not matches(pod, new):
        return False
    return not (isinstance(old, objects.Node) and matches(pod, old))


def _named_nodes(required: objects.NodeSelector | None) -> frozenset[str] | None:
    """The nodes that the terms name by metadata.name; None if a term names none, so that any node can match."""
    if required is None or not required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in required.node_selector_terms:
        of_term: set[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == "metadata.name" and requirement.operator == "In":
                values = set(requirement.values)
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names)


class NodeAffinity:
    """See the module."""

    name = "NodeAffinity"
    sees_identity = True
    weight = 2
    hints: Mapping[str, Hint] = MappingProxyType({events.NODE_ADD: _matches_now, events.NODE_LABEL: _matches_now})

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Skip pods that ask for nothing; narrow to the nodes that are named."""
        required = _affinity(pod.pod).required
        if required is None and not pod.pod.spec.node_selector:
            return PreFilterResult(Status(Code.SKIP))
        names = _named_nodes(required)
        if names is not None and not names:
            return PreFilterResult(unresolvable(CONFLICT))
        return PreFilterResult(nodes=names)

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse nodes that do not match."""
        return None if matches(pod.pod, node.node) else unresolvable(REASON)

    def pre_score(self, pod: PodInfo) -> tuple[Any, bool]:
        """Rank only for pods with preferences."""
        preferred = _affinity(pod.pod).preferred
        return preferred, bool(preferred)

    def score(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        """Sum the weights of the preferred terms that match."""
        labels, name = node.node.metadata.labels, node.name
        return sum(term.weight for term in state if node_selector_term_matches(term.preference, labels, name))

    def normalize(self, scores: Sequence[int]) -> Sequence[int]:
        """The more, the better."""
        return default_normalize(scores, reverse=False)
