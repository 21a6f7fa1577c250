"""Shows settling windows: spans, metrics, an Event on the preemptor, and whoever watches.

Phases are exported when they end, with explicit times and derived ids (design: Telemetry). What a window is and how it
changes is settlement.py's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from earmark.dynamicresources import windowrecord
from earmark.dynamicresources.happened import Happened, NominationEnded, NominationRecorded
from earmark.dynamicresources.nominating import OUTCOMES
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.settlement import Window, WindowChange, Windows
from earmark.dynamicresources.settlementwatch import SettlementWatch
from earmark.dynamicresources.state import World
from earmark.kube.clock import Clock
from earmark.kube.recorder import NORMAL, EventRecorder, pod_reference
from earmark.kube.spawner import Spawner
from earmark.runtime import semconv
from earmark.runtime.component import AttributeValue, SpanIdentity, Telemetry
from earmark.runtime.settling_trace import MOST_CLAIMS, MOST_VICTIMS, claim_span, settling_trace, victim_span

_log = logging.getLogger(__name__)

_BUCKETS = tuple(0.1 * 2.0**power for power in range(15))


class NominationMetrics(Collector):
    """The gauge earmark_claim_nominations and the counter earmark_claim_nominations_total.

    The client library takes the two for one name, so they are collected here.
    """

    def __init__(self) -> None:
        self._held = 0
        # All are shown from the beginning: what grows from nothing to one is no growth to Prometheus.
        self._ended = dict.fromkeys(OUTCOMES.values(), 0)

    def set(self, held: int) -> None:
        """Say how many nominations are held or proposed."""
        self._held = held

    def ended(self, outcome: str) -> None:
        """Count a nomination that ended."""
        self._ended[outcome] = self._ended.get(outcome, 0) + 1

    def collect(self) -> Iterator[Metric]:
        """Yield both families."""
        yield GaugeMetricFamily(
            "earmark_claim_nominations", "Claim nominations that are held or proposed.", value=self._held
        )
        family = CounterMetricFamily(
            "earmark_claim_nominations_total", "Claim nominations that ended, by how.", labels=["outcome"]
        )
        for outcome in sorted(self._ended):
            family.add_metric([outcome], self._ended[outcome])
        yield family


class Metrics:
    """The plugin's own metrics. All are additional to the scheduler's and begin with `earmark_` (E98)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.nominations = NominationMetrics()
        registry.register(self.nominations)
        self.victim_claims = Gauge(
            "earmark_victim_claims", "Victim claims that are still to be deallocated.", registry=registry
        )
        self.window = Histogram(
            "earmark_settling_window_seconds",
            "Settling windows from t0 to their end, by how they ended.",
            ["outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.terminating = Histogram(
            "earmark_settling_terminating_seconds", "t0 to t1: victims terminate.", buckets=_BUCKETS, registry=registry
        )
        self.deallocating = Histogram(
            "earmark_settling_deallocating_seconds",
            "t1 to t3: victims are gone, their claims are allocated.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self.held = Histogram(
            "earmark_settling_held_seconds",
            "t3 to t4: the capacity is free and held.",
            buckets=_BUCKETS,
            registry=registry,
        )


class SettlementTracker:
    """Follows what happens and shows it."""

    def __init__(
        self,
        settings: Settings,
        clock: Clock,
        telemetry: Telemetry,
        metrics: Metrics,
        recorder: EventRecorder,
        tasks: Spawner,
    ) -> None:
        """Keep the windows that the settings say; `tasks` writes Events in the background."""
        self._settings = settings
        self._clock = clock
        self._telemetry = telemetry
        self._metrics = metrics
        self._recorder = recorder
        self._tasks = tasks
        self._windows = Windows(settings.settlements_kept)
        self._watches: dict[SettlementWatch, None] = {}

    def windows(self) -> tuple[Window, ...]:
        """Return the windows, oldest first."""
        return self._windows.all()

    def restore(self, windows: Iterable[Window]) -> None:
        """Take over ended windows that an earlier process has seen."""
        self._windows.restore(windows)

    def watch(self) -> SettlementWatch:
        """Return a watch that gets every window that is open, and changes from now on."""
        watch = SettlementWatch(self._settings.settlements_kept)
        for window in self._windows.all():
            if window.ended is None:
                watch.put(window)
        self._watches[watch] = None
        return watch

    def unwatch(self, watch: SettlementWatch) -> None:
        """End a watch."""
        self._watches.pop(watch, None)

    def happened(self, world: World, events: tuple[Happened, ...]) -> None:
        """Take in what happened to the scheduler's state."""
        now = self._clock.now()
        for event in events:
            if isinstance(event, NominationEnded):
                self._metrics.nominations.ended(event.reason)
            pods = _present(world, event)
            for change in self._windows.apply(event, pods, now):
                self._show(change, restored=isinstance(event, NominationRecorded) and event.restored)
                for watch in self._watches:
                    watch.put(change.after)
        self.count(world)

    def count(self, world: World) -> None:
        """Set the gauges."""
        self._metrics.nominations.set(len(world.nominations.live) + len(world.nominations.proposed))
        self._metrics.victim_claims.set(len(world.victim_claims))

    def _show(self, change: WindowChange, *, restored: bool) -> None:
        before, after = change.before, change.after
        if before is None:
            _log.info("settling window %s", "taken over" if restored else "opened", extra=_fields(after))
            if not restored:
                self._emit(semconv.SETTLING_STARTED, after, after.t0, after.t0, _preemptor(after))
            return
        self._show_victims(before, after)
        self._show_claims(before, after)
        if before.t1 is None and after.t1 is not None:
            self._metrics.terminating.observe((after.t1 - after.t0).total_seconds())
        if before.t3 is None and after.t3 is not None:
            start = after.t1 if after.t1 is not None else after.t3
            self._metrics.deallocating.observe(max(0.0, (after.t3 - start).total_seconds()))
        if before.ended is None and after.ended is not None:
            self._end(after, after.ended)

    def _show_victims(self, before: Window, after: Window) -> None:
        for old, new in tuple(zip(before.victims, after.victims, strict=True))[:MOST_VICTIMS]:
            if old.gone is None and new.gone is not None:
                pod = new.pod
                attributes = {
                    semconv.POD_NAMESPACE: pod.namespace,
                    semconv.POD_NAME: pod.name,
                    semconv.POD_UID: pod.uid,
                }
                span = victim_span(after.preemptor.uid, after.generation, pod.uid)
                self._emit(semconv.VICTIM_TERMINATING, after, after.t0, new.gone, attributes, span)

    def _show_claims(self, before: Window, after: Window) -> None:
        waiting = {claim.uid for claim in before.claims if claim.deallocated is None}
        for claim in after.claims[:MOST_CLAIMS]:
            if claim.deallocated is not None and claim.uid in waiting:
                start = min(after.t1, claim.deallocated) if after.t1 is not None else after.t0
                attributes = {"earmark.claim": "/".join(claim.key), "earmark.claim.uid": claim.uid}
                span = claim_span(after.preemptor.uid, after.generation, claim.uid)
                self._emit(semconv.CLAIM_DEALLOCATING, after, start, claim.deallocated, attributes, span)

    def _end(self, window: Window, ended: datetime) -> None:
        if window.t4 is not None and window.t3 is not None:
            free = window.t3 if window.t1 is None else max(window.t1, window.t3)
            self._metrics.held.observe(max(0.0, (window.t4 - free).total_seconds()))
            self._emit(semconv.CAPACITY_HELD, window, free, window.t4, _preemptor(window))
        self._metrics.window.labels(window.outcome).observe((ended - window.t0).total_seconds())
        _log.info("settling window ended: %s", window.outcome, extra=_fields(window))
        trace, root = settling_trace(window.preemptor.uid, window.generation)
        error = "" if window.outcome == "scheduled" else f"the nomination ended: {window.outcome}"
        self._telemetry.emit(
            semconv.SETTLING,
            window.t0,
            ended,
            {**_about(window), **_preemptor(window), "earmark.outcome": window.outcome},
            identity=SpanIdentity(trace, root),
            links=self._links(window),
            error=error,
        )
        if self._settings.settlement_events:
            pod = window.preemptor
            writing = self._recorder.record(
                pod_reference(pod.namespace, pod.name, pod.uid),
                type_=NORMAL,
                reason=windowrecord.REASON,
                action="Settling",
                note=summary(window),
                annotations={windowrecord.ANNOTATION: text} if (text := windowrecord.write(window)) else None,
            )
            self._tasks.spawn(writing, f"event settled {pod.name}")

    def _emit(
        self,
        name: str,
        window: Window,
        start: datetime,
        end: datetime,
        attributes: Mapping[str, AttributeValue],
        span: int | None = None,
    ) -> None:
        trace, root = settling_trace(window.preemptor.uid, window.generation)
        identity = SpanIdentity(trace, self._telemetry.span_id() if span is None else span, root)
        links = self._links(window) if name == semconv.SETTLING_STARTED else ()
        about = {**_about(window), **attributes}
        self._telemetry.emit(name, start, max(start, end), about, identity=identity, links=links)

    def _links(self, window: Window) -> tuple[SpanIdentity, ...]:
        """The windows that this one follows: the preemptor's one before it, and those of preemptors that it evicts."""
        victims = frozenset(victim.pod.uid for victim in window.victims)
        before: dict[str, Window] = {}
        for other in self._windows.all():
            uid = other.preemptor.uid
            if other.generation < window.generation and (uid == window.preemptor.uid or uid in victims):
                before[uid] = max(before.get(uid, other), other, key=lambda item: item.generation)
        return tuple(SpanIdentity(*settling_trace(item.preemptor.uid, item.generation)) for item in before.values())


def _present(world: World, event: Happened) -> dict[str, bool]:
    if not isinstance(event, NominationRecorded):
        return {}
    return {
        victim.uid: (pod := world.pods.get(victim.uid)) is not None and not pod.finished
        for victim in event.nomination.victims
    }


def _fields(window: Window) -> dict[str, str]:
    """What the log says of a window: its trace is found by it."""
    trace, _ = settling_trace(window.preemptor.uid, window.generation)
    pod = f"{window.preemptor.namespace}/{window.preemptor.name}"
    return {"trace_id": f"{trace:032x}", "pod": pod, "node": window.node}


def _preemptor(window: Window) -> dict[str, AttributeValue]:
    pod = window.preemptor
    return {semconv.POD_NAMESPACE: pod.namespace, semconv.POD_NAME: pod.name, semconv.POD_UID: pod.uid}


def _about(window: Window) -> dict[str, AttributeValue]:
    return {
        semconv.NODE_NAME: window.node,
        "earmark.preemptor": f"{window.preemptor.namespace}/{window.preemptor.name}",
        "earmark.preemptor.uid": window.preemptor.uid,
        "earmark.generation": window.generation,
        "earmark.victims": [f"{victim.pod.namespace}/{victim.pod.name}" for victim in window.victims[:MOST_VICTIMS]],
        "earmark.victims.count": len(window.victims),
        "earmark.claims": ["/".join(claim.key) for claim in window.claims[:MOST_CLAIMS]],
        "earmark.claims.count": len(window.claims),
        "earmark.devices": list(window.devices),
    }


def summary(window: Window) -> str:
    """Return a window in one sentence, for the Event on the preemptor."""

    def since(moment: datetime | None) -> str:
        return "never" if moment is None else f"after {(moment - window.t0).total_seconds():.1f}s"

    return (
        f"Settling window on node {window.node} {window.outcome} {since(window.ended)}: "
        f"victims gone {since(window.t1)}, claims deallocated {since(window.t3)}"
    )
