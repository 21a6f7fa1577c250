"""The scheduler's metrics, with upstream's names, labels and buckets (B12). Those of preemption are preemption's."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from earmark.framework.queue.entry import Place
from earmark.framework.queue.scheduling_queue import SchedulingQueue

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"

_MOST_ATTEMPTS = 15


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**step for step in range(count))


def _label(event: str) -> str:
    return event.replace("/", "")


class QueueGauges(Collector):
    """What is counted in the queue whenever somebody looks: why pods wait, and events kept for pods in flight."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self.queue: SchedulingQueue | None = None

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield both gauges. Called in the thread of /metrics: what it reads is copied in one step."""
        rejected: Tally[str] = Tally()
        kept: Tally[str] = Tally()
        if self.queue is not None:
            for pod in self.queue.pods():
                rejected.update(dict.fromkeys((*pod.unschedulable_plugins, *pod.pending_plugins)))
                if pod.place is Place.GATED:
                    rejected[pod.gating_plugin] += 1
            kept = self.queue.in_flight.counts()
        plugins = GaugeMetricFamily(
            "scheduler_unschedulable_pods",
            "Pods that a plugin has rejected, or gates; a pod counts for each plugin",
            labels=("plugin", "profile"),
        )
        for plugin in sorted(rejected):
            plugins.add_metric((plugin, self._profile), rejected[plugin])
        yield plugins
        events = GaugeMetricFamily(
            "scheduler_inflight_events",
            "Events that are kept for the pods being scheduled, by event",
            labels=("event",),
        )
        for event in sorted(kept):
            events.add_metric((_label(event),), kept[event])
        yield events


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
        self._event_handling = Histogram(
            "scheduler_event_handling_duration_seconds",
            "Latency of queueing the pods that an event may help, by event",
            ["event"],
            buckets=_exponential(0.0001, 2, 12),
            registry=registry,
        )
        self._hint_execution = Histogram(
            "scheduler_queueing_hint_execution_duration_seconds",
            "Latency of asking a plugin whether an event helps a pod, by plugin, event and answer",
            ["plugin", "event", "hint"],
            buckets=_exponential(0.00001, 1.5, 20),
            registry=registry,
        )
        # Looking up a label costs as much as the hint itself.
        self._hints: dict[tuple[str, str, bool], Histogram] = {}
        self._gauges = QueueGauges(profile)
        registry.register(self._gauges)
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
        self.incoming_pods.labels(place.value, _label(event)).inc()

    def watch(self, queue: SchedulingQueue) -> None:
        """Count in this queue from now on."""
        self._gauges.queue = queue

    def handled(self, event: str, seconds: float) -> None:
        """The pods that an event may help are queued."""
        self._event_handling.labels(_label(event)).observe(seconds)

    def hinted(self, plugin: str, event: str, seconds: float, *, helps: bool) -> None:
        """A plugin was asked whether an event helps a pod."""
        found = self._hints.get((plugin, event, helps))
        if found is None:
            found = self._hint_execution.labels(plugin, _label(event), "Queue" if helps else "QueueSkip")
            self._hints[plugin, event, helps] = found
        found.observe(seconds)

    def pending(self, counts: dict[Place, int]) -> None:
        """Show how many pods are where."""
        for place in (Place.ACTIVE, Place.BACKOFF, Place.UNSCHEDULABLE):
            self.pending_pods.labels(place.value).set(counts[place])
        self.pending_pods.labels(Place.GATED.value).set(counts[Place.GATED] + counts[Place.ENTERING])
