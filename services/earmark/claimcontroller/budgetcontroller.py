"""Takes the allowance of budgets that fail safe, as budgets and pods come and change."""

from __future__ import annotations

from earmark.claimcontroller.budgets import fail_safe_patch, fails_safe
from earmark.kube.api import ApiError, KubeApi, PatchType
from earmark.kube.clock import Clock
from earmark.kube.informer import Informer, InformerEvent
from earmark.kube.objects import Pod, PodDisruptionBudget
from earmark.kube.spawner import Spawner
from earmark.kube.workqueue import WorkQueue


class BudgetFailSafe:
    """Keeps to `fails_safe` while budgets and pods come and change."""

    def __init__(self, api: KubeApi, clock: Clock, pods: Informer[Pod]) -> None:
        """Work on budgets and on the pods of an informer that somebody else starts."""
        self._api = api
        self._pods = pods
        self._budgets = Informer(api, PodDisruptionBudget, clock)
        self._queue: WorkQueue[tuple[str, str]] = WorkQueue(clock, self._work, "budgets")

    def start(self, tasks: Spawner) -> None:
        """Follow budgets and pods, and work once both have been listed."""
        self._budgets.add_handler(self._on_budget)
        self._pods.add_handler(self._on_pod)
        self._budgets.start(tasks)
        tasks.spawn(self._begin(tasks), "begin budgets")

    async def _begin(self, tasks: Spawner) -> None:
        await self._budgets.wait_synced()
        await self._pods.wait_synced()
        self._queue.start(tasks, 1)

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
            await self._api.patch(
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
