"""Which status a scenario's disruption budget has: the one it is given, but for what no cluster would let stand.

Kubernetes counts `maxUnavailable` from what the pods' controllers want. Where a pod has no controller it cannot count,
and allows no disruption (the disruption controller's fail-safe). Recordings from real clusters show it: their manifests
have other numbers, and the recorded choices are those of budgets that allow nothing. Nothing else of that controller is
emulated; a budget's status that a step patches stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from earmark.kube import objects
from earmark.kube.selectors import label_selector_matches


def allows_nothing(budget: objects.PodDisruptionBudget, pods: Iterable[objects.Pod]) -> bool:
    """Whether the budget is one by `maxUnavailable` over a pod without a controller."""
    return budget.spec.max_unavailable is not None and any(
        not any(owner.controller for owner in pod.metadata.owner_references) for pod in _covered(budget, pods)
    )


def fail_safe(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a budget that allows nothing."""
    return {**status, "disruptionsAllowed": 0}


def _covered(budget: objects.PodDisruptionBudget, pods: Iterable[objects.Pod]) -> Iterator[objects.Pod]:
    selector = budget.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return
    for pod in pods:
        same_namespace = pod.metadata.namespace == budget.metadata.namespace
        if same_namespace and label_selector_matches(selector, pod.metadata.labels):
            yield pod
