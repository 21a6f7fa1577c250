"""The scheduler's metrics, with upstream's names, labels and buckets (B12). Those of preemption are preemption's."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from earmark.framework.queue.entry import Place

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"

_MOST_ATTEMPTS = 15


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**step for step in range(count))


class Metrics:
    """All metrics of the framework, on one registry."""

    def __init__(self, registry: CollectorRegistry, profile: str) -> None:
        """Register. `profile` is the scheduler name that is the label of most."""
        self.profile = profile
        self.schedule_attempts = Counter(
            "scheduler_schedule_attempts",
            "Attempts to schedule pods, by result",
            ["result", "profile"],
            registry=registry,
        )
        self.attempt_duration = Histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "Latency of a scheduling attempt (algorithm and binding)",
            ["result", "profile"],
            buckets=_exponential(0.001, 2, 15),
            registry=registry,
        )
        self.algorithm_duration = Histogram(
            "scheduler_scheduling_algorithm_duration_seconds",
            "Latency of the scheduling algorithm, PostFilter included",
            buckets=_exponential(0.001, 2, 15),
            registry=registry,
        )
        self.sli_duration = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the active queue until it is bound",
            ["attempts"],
            buckets=_exponential(0.01, 2, 20),
            registry=registry,
        )
        self.pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts until a pod was scheduled",
            buckets=_exponential(1, 2, 5),
            registry=registry,
        )
        self.after_flush = Counter(
            "scheduler_pod_scheduled_after_flush",
            "Pods scheduled after they were flushed from the unschedulable pool",
            registry=registry,
        )
        self.extension_point = Histogram(
            "scheduler_framework_extension_point_duration_seconds",
            "Latency of all plugins of an extension point",
            ["extension_point", "status", "profile"],
            buckets=_exponential(0.0001, 2, 12),
            registry=registry,
        )
        self.plugin_execution = Histogram(
            "scheduler_plugin_execution_duration_seconds",
            "Latency of one plugin at an extension point, sampled",
            ["plugin", "extension_point", "status"],
            buckets=_exponential(0.00001, 1.5, 20),
            registry=registry,
        )
        self.plugin_evaluation = Counter(
            "scheduler_plugin_evaluation",
            "Attempts to schedule pods in which a plugin took part",
            ["plugin", "extension_point", "profile"],
            registry=registry,
        )
        self.pending_pods = Gauge("scheduler_pending_pods", "Pending pods, by queue", ["queue"], registry=registry)
        self.incoming_pods = Counter(
            "scheduler_queue_incoming_pods",
            "Pods that entered a queue, by event",
            ["queue", "event"],
            registry=registry,
        )
        for place in ("active", "backoff", "unschedulable", "gated"):
            self.pending_pods.labels(place)

    def attempt_ended(self, result: str, seconds: float) -> None:
        """Count an attempt."""
        self.schedule_attempts.labels(result, self.profile).inc()
        self.attempt_duration.labels(result, self.profile).observe(seconds)

    def scheduled(self, attempts: int, seconds: float | None, *, flushed: bool) -> None:
        """Count a pod that is bound; `seconds` is the time since it first entered the active queue."""
        self.pod_attempts.observe(attempts)
        if seconds is not None:
            label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
            self.sli_duration.labels(label).observe(seconds)
        if flushed:
            self.after_flush.inc()

    def incoming(self, place: Place, event: str) -> None:
        """Count a pod that entered a queue."""
        self.incoming_pods.labels(place.value, event.replace("/", "")).inc()

    def pending(self, counts: dict[Place, int]) -> None:
        """Show how many pods are where."""
        for place in (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE):
            self.pending_pods.labels(place.value).set(counts[place])
        self.pending_pods.labels(Place.GATED.value).set(counts[Place.GATED] + counts[Place.ENTERING])
