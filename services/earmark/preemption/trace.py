"""This service's part of a settling window's trace: the dry run that chose, and the execution (design: Telemetry)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from earmark.preemption.decision import Decision
from earmark.preemption.execution import Order, Outcome, VictimResult, any_failed
from earmark.preemption.values import PodId, Situation
from earmark.runtime import semconv
from earmark.runtime.component import AttributeValue, SpanIdentity, Telemetry
from earmark.runtime.settling_trace import settling_trace

_EVENTS = {
    Outcome.DELETED: "victim.deleted",
    Outcome.PREEMPTED_IN_MEMORY: "victim.gone",
    Outcome.GONE: "victim.gone",
    Outcome.FAILED: "victim.failed",
    Outcome.NOT_ATTEMPTED: "victim.failed",
}


class WindowSpans:
    """Emits the spans, linked to those of the RPCs in which the work was done."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def dry_run(
        self, situation: Situation, decision: Decision, generation: int, rounds: int, start: datetime, end: datetime
    ) -> None:
        """Emit the dry run that ended with a proposal."""
        assert decision.chosen is not None
        preemptor = situation.preemptor.pod
        victims = [str(victim.pod) for victim in decision.chosen.victims]
        self._emit(
            semconv.PREEMPTION_DRY_RUN,
            preemptor,
            generation,
            start,
            end,
            {
                semconv.NODE_NAME: decision.chosen.node.name,
                "earmark.nodes": len(situation.nodes),
                "earmark.candidates": len(decision.candidates),
                "earmark.rounds": rounds,
                "earmark.victims": victims,
                "earmark.victims.count": len(victims),
            },
        )

    def execute(self, order: Order, results: Sequence[VictimResult], start: datetime, end: datetime) -> None:
        """Emit an execution, with an event for each victim."""
        failed = any_failed(results)
        self._emit(
            semconv.PREEMPTION_EXECUTE,
            order.preemptor,
            order.generation,
            start,
            end,
            {
                semconv.NODE_NAME: order.node_name,
                "earmark.victims": [str(victim) for victim in order.victims],
                "earmark.victims.count": len(order.victims),
            },
            events=[
                (_EVENTS[result.outcome], result.at or end, _about(result))
                for result in results
                if result.outcome in _EVENTS
            ],
            error="; ".join(result.error for result in results if result.error) if failed else "",
        )

    def _emit(
        self,
        name: str,
        preemptor: PodId,
        generation: int,
        start: datetime,
        end: datetime,
        attributes: dict[str, AttributeValue],
        *,
        events: Sequence[tuple[str, datetime, dict[str, AttributeValue]]] = (),
        error: str = "",
    ) -> None:
        trace, root = settling_trace(preemptor.uid, generation)
        current = self._telemetry.current()
        self._telemetry.emit(
            name,
            start,
            end,
            {
                "earmark.preemptor": str(preemptor),
                "earmark.preemptor.uid": preemptor.uid,
                "earmark.generation": generation,
                **attributes,
            },
            identity=SpanIdentity(trace, self._telemetry.span_id(), root),
            events=events,
            links=() if current is None else (current,),
            error=error,
        )


def _about(result: VictimResult) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        semconv.POD_NAMESPACE: result.pod.namespace,
        semconv.POD_NAME: result.pod.name,
        semconv.POD_UID: result.pod.uid,
        "earmark.victim.outcome": result.outcome.value,
    }
    if result.error:
        attributes["earmark.reason"] = result.error
    return attributes
