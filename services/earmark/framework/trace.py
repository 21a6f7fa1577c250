"""This service's part of a settling window's trace: what the preemptor tried while it waited (design: Telemetry)."""

from __future__ import annotations

from datetime import datetime

from earmark.framework.nominator import NominatedPod
from earmark.kube.clock import Clock
from earmark.runtime import semconv
from earmark.runtime.component import SpanIdentity, Telemetry
from earmark.runtime.settling_trace import settling_trace


class WindowSpans:
    """Emits a span for each attempt of a pod that a preemption has nominated, linked to that of the attempt itself."""

    def __init__(self, telemetry: Telemetry, clock: Clock) -> None:
        self._telemetry = telemetry
        self._clock = clock

    def attempted(self, held: NominatedPod | None, attempt: int, begun: datetime, outcome: str, reason: str) -> None:
        """Emit an attempt that ends now.

        Args:
            held: the nomination at its beginning; nothing is emitted without one that a preemption made.
            attempt: its number.
            begun: when it began.
            outcome: "scheduled", "unschedulable" or "error".
            reason: why not, in words.
        """
        if held is None or held.generation <= 0:
            return
        trace, root = settling_trace(held.uid, held.generation)
        current = self._telemetry.current()
        self._telemetry.emit(
            semconv.SCHEDULING_ATTEMPT,
            begun,
            self._clock.now(),
            {
                semconv.POD_NAMESPACE: held.namespace,
                semconv.POD_NAME: held.name,
                semconv.POD_UID: held.uid,
                semconv.NODE_NAME: held.node,
                "earmark.generation": held.generation,
                "earmark.attempt": attempt,
                "earmark.outcome": outcome,
                "earmark.reason": reason,
            },
            identity=SpanIdentity(trace, self._telemetry.span_id(), root),
            links=() if current is None else (current,),
        )
