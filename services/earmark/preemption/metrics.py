"""The scheduler's preemption metrics, with upstream's names, types and buckets (upstream B12)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram


class PreemptionMetrics:
    """What this service counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._attempts = Counter(
            "scheduler_preemption_attempts_total",
            "Total preemption attempts in the cluster till now",
            registry=registry,
        )
        self._victims = Histogram(
            "scheduler_preemption_victims",
            "Number of selected preemption victims",
            buckets=tuple(2.0**exponent for exponent in range(7)),
            registry=registry,
        )
        self._executions = Counter(
            "scheduler_preemption_goroutines_execution_total",
            "Number of preemption executions, by result",
            ("result",),
            registry=registry,
        )
        self._execution_seconds = Histogram(
            "scheduler_preemption_goroutines_duration_seconds",
            "Duration of preemption executions in seconds, by result",
            ("result",),
            buckets=tuple(0.01 * 2.0**exponent for exponent in range(20)),
            registry=registry,
        )

    def attempted(self) -> None:
        """An attempt has ended, whatever came of it (upstream B1.2)."""
        self._attempts.inc()

    def chosen(self, victims: int) -> None:
        """A candidate was chosen; victims that are terminating already count, and the execution may still fail."""
        self._victims.observe(victims)

    def executed(self, *, failed: bool, seconds: float) -> None:
        """An execution has ended."""
        result = "error" if failed else "success"
        self._executions.labels(result).inc()
        self._execution_seconds.labels(result).observe(seconds)
