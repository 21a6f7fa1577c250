"""Translates the RPCs of PreemptionService."""

from __future__ import annotations

import logging
from typing import Any

import grpc

from earmark.kube.informer import Informer
from earmark.kube.objects import PodDisruptionBudget
from earmark.preemption import wire
from earmark.preemption.decision import Decision, NominationChange, not_eligible
from earmark.preemption.evaluate import Evaluation, Evaluator, propose
from earmark.preemption.execute import Executor
from earmark.preemption.loops import EvictionLoops
from earmark.preemption.metrics import PreemptionMetrics
from earmark.preemption.peers import Framework, NominationPlugins, PeerError
from earmark.preemption.trace import WindowSpans
from earmark.preemption.values import SUCCESS, Situation
from earmark.runtime import semconv
from earmark.runtime.component import AttributeValue, Environment
from earmark.v1 import framework_pb2, preemption_pb2, preemption_pb2_grpc

_log = logging.getLogger(__name__)


class PreemptionService(preemption_pb2_grpc.PreemptionServiceServicer):
    """Preempt, Execute and DryRun."""

    def __init__(
        self,
        *,
        env: Environment,
        framework: Framework,
        plugins: NominationPlugins,
        evaluator: Evaluator,
        executor: Executor,
        loops: EvictionLoops,
        budgets: Informer[PodDisruptionBudget],
        metrics: PreemptionMetrics,
        spans: WindowSpans,
    ) -> None:
        self._env = env
        self._framework = framework
        self._plugins = plugins
        self._evaluator = evaluator
        self._executor = executor
        self._loops = loops
        self._budgets = budgets
        self._metrics = metrics
        self._spans = spans

    async def Preempt(self, request: preemption_pb2.PreemptRequest, context: Any) -> preemption_pb2.PreemptResponse:
        """Decide, and propose the chosen candidate to the plugins. Nothing is written to the API."""
        situation = await self._situation(request.input, context)
        if request.generation <= 0:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "generation: want a positive number")
        begin = self._env.clock.now()
        try:
            loop = self._loops.holding_off(situation.preemptor.pod.uid, self._env.clock.monotonic())
            evaluation = await self._evaluate(situation) if loop is None else Evaluation(not_eligible(loop.reason))
            decision = evaluation.decision
            records: dict[str, str] = {}
            if decision.change is NominationChange.SET:
                decision, records = await propose(self._plugins, situation, decision, request.generation)
            if decision.chosen is not None:
                self._metrics.chosen(len(decision.chosen.victims))
                self._spans.dry_run(
                    situation, decision, request.generation, evaluation.rounds, begin, self._env.clock.now()
                )
        finally:
            self._metrics.attempted()
        return wire.preempt_response(situation, decision, evaluation.rounds, request.generation, records)

    async def Execute(self, request: preemption_pb2.ExecuteRequest, context: Any) -> preemption_pb2.ExecuteResponse:
        """Make a confirmed proposal happen."""
        try:
            order = wire.order_of(request.nomination)
        except wire.InvalidInput as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        attributes: dict[str, AttributeValue] = {
            semconv.NODE_NAME: order.node_name,
            "earmark.preemptor": str(order.preemptor),
            "earmark.preemptor.uid": order.preemptor.uid,
            "earmark.generation": order.generation,
            "earmark.victims.count": len(order.victims),
        }
        with self._env.telemetry.span(semconv.PREEMPTION_EXECUTE, attributes):
            results = await self._executor.execute(order)
        return wire.execute_response(results)

    async def DryRun(self, request: preemption_pb2.DryRunRequest, context: Any) -> preemption_pb2.DryRunResponse:
        """Decide for a pod that is not being scheduled, in a sandbox of the framework's."""
        try:
            opened = await self._framework.open_dry_run(request.pod)
        except PeerError as error:
            # What the framework says of the request holds for this call too: same fields, and no retry helps.
            known = error.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
            await context.abort(
                error.code if known else grpc.StatusCode.UNAVAILABLE, error.details if known else str(error)
            )
        try:
            if opened.fits_on:
                return preemption_pb2.DryRunResponse(status=wire.status_message(SUCCESS), fits_on=opened.fits_on)
            situation = await self._situation(opened.input, context)
            return _dry_run_response(situation, (await self._evaluate(situation)).decision)
        finally:
            await self._close(opened.input.cycle_id)

    async def _situation(self, message: framework_pb2.PreemptionInput, context: Any) -> Situation:
        if not self._budgets.synced:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "disruption budgets have not been listed yet")
        try:
            return wire.situation_of(message)
        except wire.InvalidInput as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    async def _evaluate(self, situation: Situation) -> Evaluation:
        preemptor = situation.preemptor
        attributes: dict[str, AttributeValue] = {
            semconv.POD_NAMESPACE: preemptor.pod.namespace,
            semconv.POD_NAME: preemptor.pod.name,
            semconv.POD_UID: preemptor.pod.uid,
            "earmark.priority": preemptor.priority,
            "earmark.nodes": len(situation.nodes),
            "earmark.cycle": situation.cycle_id,
        }
        with self._env.telemetry.span(semconv.PREEMPTION_DRY_RUN, attributes):
            return await self._evaluator.evaluate(situation, self._budgets.items())

    async def _close(self, cycle_id: str) -> None:
        try:
            await self._framework.close_dry_run(cycle_id)
        except PeerError as error:
            # The framework drops a sandbox that nobody talks to.
            _log.warning("the dry run %s was not closed: %s", cycle_id, error)


def _dry_run_response(situation: Situation, decision: Decision) -> preemption_pb2.DryRunResponse:
    response = preemption_pb2.DryRunResponse(
        status=wire.status_message(decision.status),
        candidates=[wire.candidate_message(candidate) for candidate in decision.candidates],
        node_reasons=wire.node_reasons(situation, decision),
    )
    if decision.chosen is not None:
        response.chosen.CopyFrom(wire.candidate_message(decision.chosen))
    return response
