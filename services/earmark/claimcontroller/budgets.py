"""The one thing of the disruption controller that is emulated: budgets that it cannot count allow no disruption.

A budget with maxUnavailable (or a percentage) is counted from the scale of its pods' controllers. Where a pod has none,
kube-controller-manager gives up and sets status.disruptionsAllowed to 0, whatever stood there. Scenarios recorded from
a real control plane depend on it. A status that has nothing but disruptionsAllowed is somebody's intention and is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from earmark.kube.api import ApiError, PatchType
from earmark.kube.informer import Informer, InformerEvent
from earmark.kube.objects import Pod, PodDisruptionBudget
from earmark.kube.selectors import label_selector_matches
from earmark.kube.workqueue import WorkQueue
from earmark.runtime.component import Environment


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


class BudgetFailSafe:
    """Keeps to `fails_safe` while budgets and pods come and change."""

    def __init__(self, env: Environment, pods: Informer[Pod]) -> None:
        self._env = env
        self._pods = pods
        self._budgets = Informer(env.api, PodDisruptionBudget, env.clock)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(env.clock, self._work, "budgets")

    def start(self) -> None:
        """Follow budgets, and pods as far as they are followed already."""
        self._budgets.add_handler(self._on_budget)
        self._pods.add_handler(self._on_pod)
        self._budgets.start(self._env.tasks)
        self._env.tasks.spawn(self._begin(), "begin budgets")

    async def _begin(self) -> None:
        await self._budgets.wait_synced()
        await self._pods.wait_synced()
        self._queue.start(self._env.tasks, 1)

    def _on_budget(self, event: InformerEvent[PodDisruptionBudget]) -> None:
        if event.new is not None:
            self._queue.add(event.new.key)

    def _on_pod(self, event: InformerEvent[Pod]) -> None:
        if event.old is None:
            for budget in self._budgets.items():
                if budget.metadata.namespace == event.object.metadata.namespace:
                    self._queue.add(budget.key)

    async def _work(self, key: tuple[str, str]) -> None:
        budget = self._budgets.get(*key)
        if budget is None:
            return
        pods = (pod for pod in self._pods.items() if pod.metadata.namespace == budget.metadata.namespace)
        if not fails_safe(budget, pods):
            return
        try:
            await self._env.api.patch(
                PodDisruptionBudget,
                budget.metadata.name,
                budget.metadata.namespace,
                fail_safe_patch(budget),
                subresource="status",
                patch_type=PatchType.MERGE,
            )
        except ApiError as error:
            if not error.not_found:
                raise
