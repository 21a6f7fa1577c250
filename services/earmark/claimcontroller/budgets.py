"""The one thing of the disruption controller that is emulated: budgets that it cannot count allow no disruption.

A budget with maxUnavailable (or a percentage) is counted from the scale of its pods' controllers. Where a pod has none,
kube-controller-manager gives up and sets status.disruptionsAllowed to 0, whatever stood there. Scenarios recorded from
a real control plane depend on it. A status that has nothing but disruptionsAllowed is somebody's intention and is kept.
Pure; budgetcontroller.py acts on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from earmark.kube.objects import Pod, PodDisruptionBudget
from earmark.kube.selectors import label_selector_matches


def fails_safe(budget: PodDisruptionBudget, pods: Iterable[Pod]) -> bool:
    """Whether the real controller would take the allowance away. `pods` are those of the budget's namespace."""
    status = budget.status
    if status.disruptions_allowed <= 0 or status.expected_pods <= 0 or not _needs_scale(budget):
        return False
    return any(
        label_selector_matches(budget.spec.selector, pod.metadata.labels)
        and not any(owner.controller for owner in pod.metadata.owner_references)
        for pod in pods
    )


def _needs_scale(budget: PodDisruptionBudget) -> bool:
    return budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)


def fail_safe_patch(budget: PodDisruptionBudget) -> dict[str, Any]:
    """Return the merge patch of the status, conditional on the budget as it was looked at."""
    return {
        "metadata": {"resourceVersion": budget.metadata.resource_version},
        "status": {"disruptionsAllowed": 0},
    }
