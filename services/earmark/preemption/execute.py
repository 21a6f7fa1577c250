"""Makes a confirmed nomination happen: the victims' conditions are set and the victims deleted (upstream B7, B9).

Each order runs once, however often it is given. It survives the call that asked for it, as far as a write that has
begun is finished; victims that were not begun by then are left alone, because nobody counts on them any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from earmark.kube.api import ApiError, ApiUnavailable, KubeApi, PatchType
from earmark.kube.objects import Pod
from earmark.kube.recorder import NORMAL, WARNING, EventRecorder, pod_reference
from earmark.preemption.execution import (
    Order,
    Outcome,
    VictimResult,
    all_not_attempted,
    any_failed,
    disruption_patch,
    preempted_note,
)
from earmark.preemption.loops import EvictionLoops
from earmark.preemption.metrics import PreemptionMetrics
from earmark.preemption.peers import Framework, PeerError
from earmark.preemption.settings import PreemptionSettings
from earmark.preemption.trace import WindowSpans
from earmark.preemption.values import PodId
from earmark.runtime.component import Environment
from earmark.runtime.retry import retrying

T = TypeVar("T")

_log = logging.getLogger(__name__)

ABANDONED = "whoever asked for the execution is gone"

# The server asks for patience.
_BUSY = 429


class _Abandoned(Exception):
    """Whoever asked for the execution is gone, and this victim has not been touched."""


class _Execution:
    """One order while it runs and afterwards."""

    def __init__(self, task: asyncio.Task[tuple[VictimResult, ...]]) -> None:
        self.task = task
        self.callers = 0
        # Schedulers of pods that it has deleted, other than the preemptor's own.
        self.foreign: dict[str, None] = {}

    @property
    def abandoned(self) -> bool:
        """Whether it ended early because nobody waited for it any more."""
        return (
            self.task.done()
            and not self.task.cancelled()
            and any(result.error == ABANDONED for result in self.task.result())
        )


class _Turn:
    """Whose turn it is with a victim, and how many orders want one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.orders = 0


class Executor:
    """Executes orders, each once."""

    def __init__(
        self,
        framework: Framework,
        env: Environment,
        settings: PreemptionSettings,
        metrics: PreemptionMetrics,
        spans: WindowSpans,
        loops: EvictionLoops,
    ) -> None:
        self._framework = framework
        self._env = env
        self._api: KubeApi = env.api
        self._settings = settings
        self._metrics = metrics
        self._spans = spans
        self._loops = loops
        self._recorder = EventRecorder(env.api, env.clock, controller=settings.reporting_controller)
        self._executions: dict[tuple[str, int], _Execution] = {}
        # By UID the victims that an order works on; two preemptors may share one (KEP: Interaction).
        self._victims: dict[str, _Turn] = {}

    async def execute(self, order: Order) -> tuple[VictimResult, ...]:
        """Return what became of the victims, in their order; the same again for a repeated order.

        A repeated order goes on with victims that were left alone while nobody asked.
        """
        execution = self._executions.get(order.key)
        if execution is None or execution.abandoned:
            name = f"execute {order.preemptor} generation {order.generation}"
            execution = _Execution(self._env.tasks.spawn(self._run(order), name))
            self._executions[order.key] = execution
            self._forget_old()
        execution.callers += 1
        try:
            return await asyncio.shield(execution.task)
        finally:
            execution.callers -= 1

    def _forget_old(self) -> None:
        finished = [key for key, execution in self._executions.items() if execution.task.done()]
        for key in finished[: max(0, len(self._executions) - self._settings.remembered_executions)]:
            del self._executions[key]

    async def _run(self, order: Order) -> tuple[VictimResult, ...]:
        begin = self._env.clock.now()
        results = await self._victims_go(order)
        end = self._env.clock.now()
        self._metrics.executed(failed=any_failed(results), seconds=(end - begin).total_seconds())
        self._spans.execute(order, results, begin, end)
        self._look_for_loop(order)
        return results

    async def _victims_go(self, order: Order) -> tuple[VictimResult, ...]:
        try:
            preemptor = await self._retrying(order, lambda: self._get(order.preemptor))
        except _Abandoned:
            return all_not_attempted(order.victims, ABANDONED)
        except (ApiError, ApiUnavailable) as error:
            return all_not_attempted(order.victims, f"preemptor: {error}")
        if preemptor is None:
            return all_not_attempted(order.victims, "the preemptor is gone")
        scheduler_name = preemptor.spec.scheduler_name
        *others, last = order.victims or (None,)
        results = await self._evict_all([pod for pod in others if pod is not None], order, scheduler_name)
        if last is not None:
            # The gate of the preemptor opens when all victims go; upstream keeps the last one for when the others did.
            if any_failed(results):
                results += all_not_attempted([last], "another victim could not be deleted")
            else:
                results += (await self._evict(last, order, scheduler_name),)
        if not any_failed(results):
            await self._clear_lower_nominations(order)
        return results

    async def _evict_all(self, victims: list[PodId], order: Order, scheduler_name: str) -> tuple[VictimResult, ...]:
        limit = asyncio.Semaphore(self._settings.parallel_victims)

        async def evict(victim: PodId) -> VictimResult:
            async with limit:
                return await self._evict(victim, order, scheduler_name)

        return tuple(await asyncio.gather(*(evict(victim) for victim in victims)))

    async def _evict(self, victim: PodId, order: Order, scheduler_name: str) -> VictimResult:
        try:
            async with self._alone_with(victim):
                outcome = await self._make_go(victim, order, scheduler_name)
            return VictimResult(victim, outcome, at=self._env.clock.now())
        except _Abandoned:
            return VictimResult(victim, Outcome.NOT_ATTEMPTED, ABANDONED)
        except (ApiError, ApiUnavailable, PeerError) as error:
            _log.warning("victim %s of %s was not deleted: %s", victim, order.preemptor, error)
            return VictimResult(victim, Outcome.FAILED, str(error), self._env.clock.now())

    @asynccontextmanager
    async def _alone_with(self, victim: PodId) -> AsyncIterator[None]:
        """Wait until no other order works on the victim: whoever comes second finds it terminating (E74)."""
        turn = self._victims.setdefault(victim.uid, _Turn())
        turn.orders += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.orders -= 1
            if not turn.orders:
                del self._victims[victim.uid]

    async def _make_go(self, victim: PodId, order: Order, scheduler_name: str) -> Outcome:
        self._check_wanted(order)
        pod = await self._retrying(order, lambda: self._get(victim))
        if pod is None:
            return Outcome.GONE
        if pod.metadata.deletion_timestamp is not None:
            return Outcome.ALREADY_TERMINATING
        if await self._retrying(order, lambda: self._framework.preempt_pod(victim, order.preemptor)):
            await self._tell(victim, order, in_memory=True)
            return Outcome.PREEMPTED_IN_MEMORY
        self._check_wanted(order)
        outcome = await self._delete(pod, victim, order, scheduler_name)
        if outcome is Outcome.DELETED:
            if pod.spec.scheduler_name != scheduler_name:
                self._executions[order.key].foreign[pod.spec.scheduler_name] = None
            await self._tell(victim, order, in_memory=False)
        return outcome

    async def _delete(self, pod: Pod, victim: PodId, order: Order, scheduler_name: str) -> Outcome:
        """Set the condition and delete. Before each further try a look at the pod shows what came of the last."""
        seen: list[Pod] = [pod]

        async def attempt() -> Outcome:
            present = seen.pop() if seen else await self._get(victim)
            if present is None:
                return Outcome.GONE
            if present.metadata.deletion_timestamp is not None:
                return Outcome.DELETED
            patch = disruption_patch(present, scheduler_name, self._env.clock.now())
            try:
                await self._api.patch(
                    Pod, victim.name, victim.namespace, patch, subresource="status", patch_type=PatchType.STRATEGIC
                )
                await self._api.delete(Pod, victim.name, victim.namespace, uid=victim.uid)
            except ApiError as error:
                if error.not_found:
                    return Outcome.GONE
                raise
            return Outcome.DELETED

        try:
            return await self._retrying(order, attempt)
        except (ApiError, ApiUnavailable) as error:
            if isinstance(error, ApiError) and not error.uncertain:
                raise
            # The last try may have been carried out all the same.
            found = await self._get(victim)
            if found is None:
                return Outcome.GONE
            if found.metadata.deletion_timestamp is not None:
                return Outcome.DELETED
            raise

    async def _get(self, pod: PodId) -> Pod | None:
        """Return the pod; None if it is gone, also if another has taken its name."""
        try:
            found = await self._api.get(Pod, pod.name, pod.namespace)
        except ApiError as error:
            if error.not_found:
                return None
            raise
        return found if found.metadata.uid == pod.uid else None

    def _look_for_loop(self, order: Order) -> None:
        now = self._env.clock.monotonic()
        loop = self._loops.executed(order.preemptor.uid, self._executions[order.key].foreign, now)
        if loop is None:
            return
        note = loop.note(order.node_name, loop.until - now)
        _log.warning("eviction loop of %s: %s", order.preemptor, note)
        preemptor = order.preemptor
        writing = self._recorder.record(
            pod_reference(preemptor.namespace, preemptor.name, preemptor.uid),
            type_=WARNING,
            reason="EvictionLoop",
            action="Preempting",
            note=note,
        )
        self._env.tasks.spawn(writing, f"event EvictionLoop {preemptor}")

    async def _clear_lower_nominations(self, order: Order) -> None:
        try:
            await self._framework.clear_nominations(order.node_name, order.priority)
        except PeerError as error:
            # As upstream: the victims go all the same, and a lower nomination only holds room it will not get.
            _log.warning("nominations below %s on %s were not cleared: %s", order.preemptor, order.node_name, error)

    async def _tell(self, victim: PodId, order: Order, *, in_memory: bool) -> None:
        await self._recorder.record(
            pod_reference(victim.namespace, victim.name, victim.uid),
            type_=NORMAL,
            reason="Preempted",
            action="Preempting",
            note=preempted_note(order, in_memory=in_memory),
            related=pod_reference(order.preemptor.namespace, order.preemptor.name, order.preemptor.uid),
        )

    def _check_wanted(self, order: Order) -> None:
        execution = self._executions.get(order.key)
        if execution is not None and execution.callers == 0:
            raise _Abandoned

    async def _retrying(self, order: Order, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try while the API is away, busy, or says conflict, or the framework is away, a bounded number of times.

        A framework that has died is the one that had asked: then the rest is abandoned, and left for its successor.
        """

        async def unless_abandoned() -> T:
            self._check_wanted(order)
            return await attempt()

        return await retrying(
            unless_abandoned,
            clock=self._env.clock,
            ids=self._env.ids,
            attempts=self._settings.write_attempts,
            first_wait=self._settings.first_retry_seconds,
            retryable=_worth_another_try,
        )


def _worth_another_try(error: BaseException) -> bool:
    if isinstance(error, PeerError):
        return error.away
    return isinstance(error, ApiUnavailable) or (
        isinstance(error, ApiError) and (error.conflict or error.uncertain or error.status == _BUSY)
    )
