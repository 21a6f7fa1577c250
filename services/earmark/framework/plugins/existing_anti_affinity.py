"""InterPodAffinity, the part that protects pods which run already: their required anti-affinity keeps others away.

Such pods are never placed by earmark (see unsupported_features), but another scheduler may have placed them. What
cannot be decided here (namespace selectors, matchLabelKeys) counts as a match: rather no place than a wrong one. The
refusal is no reason to preempt, since removing victims is not followed up here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from earmark.framework import events
from earmark.framework.events import EventObject, Hint
from earmark.framework.node_info import NodeInfo, PodInfo, required_anti_affinity
from earmark.framework.plugins.interface import PreFilterResult
from earmark.framework.status import Code, Status, unresolvable
from earmark.kube import objects
from earmark.kube.selectors import label_selector_matches

REASON = "node(s) didn't satisfy existing pods anti-affinity rules"

Guards = Callable[[], Iterable[tuple[PodInfo, objects.Node]]]
"""Gives the pods with required anti-affinity that are on nodes, with their nodes."""


def _means(term: Mapping[str, Any], owner: objects.Pod, pod: objects.Pod) -> bool:
    """Whether a term of the owner's is about the pod."""
    selector = term.get("labelSelector")
    if selector is None:
        return False
    namespaces = term.get("namespaces") or ()
    if term.get("namespaceSelector") is None:
        allowed = tuple(namespaces) or (owner.metadata.namespace,)
        if pod.metadata.namespace not in allowed:
            return False
    try:
        return label_selector_matches(msgspec.convert(selector, objects.LabelSelector), pod.metadata.labels)
    except msgspec.ValidationError:
        return True


def _protector_gone(_pod: objects.Pod, old: EventObject, _new: EventObject) -> bool:
    return isinstance(old, objects.Pod) and bool(required_anti_affinity(old))


class ExistingAntiAffinity:
    """See the module."""

    name = "InterPodAffinity"
    sees_identity = True
    hints: Mapping[str, Hint] = MappingProxyType(
        {
            events.ASSIGNED_POD_DELETE: _protector_gone,
            events.NODE_ADD: events.always,
            events.NODE_LABEL: events.always,
            events.POD_LABEL: events.always,
        }
    )

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Collect the topology domains, as (key, value), from which the pod is kept away."""
        closed: set[tuple[str, str]] = set()
        for owner, node in self._guards():
            for term in required_anti_affinity(owner.pod):
                key = term.get("topologyKey", "")
                if key in node.metadata.labels and _means(term, owner.pod, pod.pod):
                    closed.add((key, node.metadata.labels[key]))
        return PreFilterResult(state=frozenset(closed)) if closed else PreFilterResult(Status(Code.SKIP))

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Refuse the nodes of those domains."""
        labels = node.node.metadata.labels
        return unresolvable(REASON) if any(labels.get(key) == value for key, value in state) else None
