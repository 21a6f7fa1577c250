"""Which status a scenario's disruption budget has: the one it is given, but for what no cluster would let stand.

Kubernetes counts `maxUnavailable`, and a `minAvailable` in percent, from what the pods' controllers want. Where a pod
has no controller it cannot count, and allows no disruption (the disruption controller's fail-safe). Recordings from
real clusters show it: their manifests have other numbers, and the recorded choices are those of budgets that allow
nothing.

Only a status that claims to have been counted (`expectedPods` above 0) is corrected: one that has nothing but
`disruptionsAllowed` is what its author wants. Nothing else of that controller is emulated, and nothing of it outside of
scenarios; a budget's status that a step patches stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from earmark.kube import objects
from earmark.kube.selectors import label_selector_matches


def allows_nothing(budget: objects.PodDisruptionBudget, pods: Iterable[objects.Pod]) -> bool:
    """Whether the budget's status is one that the disruption controller, unable to count, would have set to 0.

    Args:
        budget: with the status that it is given.
        pods: of all namespaces.
    """
    if budget.status.expected_pods <= 0 or not _is_counted_from_controllers(budget):
        return False
    return any(_covers(budget, pod) and not _has_controller(pod) for pod in pods)


def fail_safe(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status of a budget that allows nothing."""
    return {**status, "disruptionsAllowed": 0}


def _is_counted_from_controllers(budget: objects.PodDisruptionBudget) -> bool:
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def _has_controller(pod: objects.Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references)


def _covers(budget: objects.PodDisruptionBudget, pod: objects.Pod) -> bool:
    selector = budget.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return False
    same_namespace = pod.metadata.namespace == budget.metadata.namespace
    return same_namespace and label_selector_matches(selector, pod.metadata.labels)
