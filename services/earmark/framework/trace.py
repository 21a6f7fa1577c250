"""This service's part of a settling window's trace: what the preemptor tried while it waited (design: Telemetry)."""

from __future__ import annotations

from datetime import datetime

from earmark.framework.nominator import NominatedPod
from earmark.kube.clock import Clock
from earmark.runtime import semconv
from earmark.runtime.component import SpanIdentity, Telemetry
from earmark.runtime.settling_trace import MOST_ATTEMPTS, settling_trace

_WINDOWS_REMEMBERED = 1_000


class WindowSpans:
    """Emits a span for each attempt of a pod that a preemption has nominated, linked to that of the attempt itself."""

    def __init__(self, telemetry: Telemetry, clock: Clock) -> None:
        self._telemetry = telemetry
        self._clock = clock
        # How many attempts of a window were told; a window is known by the preemptor's UID and the generation.
        self._told: dict[tuple[str, int], int] = {}

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
        key = (held.uid, held.generation)
        told = self._told.pop(key, 0)
        if outcome != "scheduled":
            # A pod that waits for hours is tried at every event: the first attempts tell what there is to tell.
            self._told[key] = told + 1
            if len(self._told) > _WINDOWS_REMEMBERED:
                del self._told[next(iter(self._told))]
            if told >= MOST_ATTEMPTS - 1:
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
