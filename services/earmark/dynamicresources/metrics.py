"""Numbers read from the state when somebody looks, and those of the allocator. Windows' ends are settling.py's.

/metrics is served by a thread: what is read here is immutable, or copied in one step.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from earmark.dynamicresources.settlement import Phase, Window

# Each series is one open window or awaited claim; more than these would say nothing more, and cost memory elsewhere.
_MOST_SERIES = 100


class WindowGauges(Collector):
    """The open settling windows: how many, and of the oldest who waits for which claim and since when."""

    def __init__(self, windows: Callable[[], tuple[Window, ...]]) -> None:
        self._windows = windows

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges."""
        windows = [window for window in self._windows() if window.ended is None]
        phases = Tally(window.phase for window in windows)
        count = GaugeMetricFamily(
            "earmark_settling_windows", "Settling windows that are open, by phase.", labels=("phase",)
        )
        for phase in (Phase.TERMINATING, Phase.DEALLOCATING, Phase.HELD):
            count.add_metric((phase.name.lower(),), phases[phase])
        yield count
        opened = GaugeMetricFamily(
            "earmark_settling_window_since_timestamp_seconds",
            f"When a settling window opened (t0), in seconds of the epoch; of the {_MOST_SERIES} oldest that are open.",
            labels=("preemptor", "node", "phase"),
        )
        awaited = GaugeMetricFamily(
            "earmark_awaited_claim_since_timestamp_seconds",
            "Since when a victim claim is awaited, in seconds of the epoch: t1, or t0 while victims terminate; "
            f"of the {_MOST_SERIES} oldest.",
            labels=("claim", "preemptor", "node", "phase"),
        )
        claims = []
        for window in sorted(windows, key=lambda item: (item.t0, item.generation)):
            preemptor = f"{window.preemptor.namespace}/{window.preemptor.name}"
            name = window.phase.name.lower()
            if len(opened.samples) < _MOST_SERIES:
                opened.add_metric((preemptor, window.node, name), window.t0.timestamp())
            since = (window.t1 or window.t0).timestamp()
            claims += [
                (("/".join(claim.key), preemptor, window.node, name), since)
                for claim in window.claims
                if claim.deallocated is None
            ]
        for labels, moment in sorted(claims, key=lambda item: item[1])[:_MOST_SERIES]:
            awaited.add_metric(labels, moment)
        yield opened
        yield awaited


class AllocatorMetrics:
    """What the allocator was asked, and how long that took."""

    def __init__(self, registry: CollectorRegistry, monotonic: Callable[[], float]) -> None:
        """`monotonic` gives seconds."""
        self._monotonic = monotonic
        self._searches = Counter(
            "earmark_allocator_searches",
            "Nodes for which the allocator was asked: by kind (filter: results kept; dry_run: yes or no; one: a single "
            "node) and outcome (found, none, error).",
            ("kind", "outcome"),
            registry=registry,
        )
        self._seconds = Histogram(
            "earmark_allocator_search_duration_seconds",
            "How long one call of the allocator took, for all its nodes, by kind.",
            ("kind",),
            buckets=tuple(0.0001 * 2.0**power for power in range(16)),
            registry=registry,
        )

    def searching(self, kind: str) -> Callable[[int, int, int], None]:
        """A search begins; call what is returned at its end (solving.Searching)."""
        begun = self._monotonic()

        def ended(found: int, none: int, errors: int) -> None:
            self._seconds.labels(kind).observe(self._monotonic() - begun)
            for outcome, number in (("found", found), ("none", none), ("error", errors)):
                if number:
                    self._searches.labels(kind, outcome).inc(number)

        return ended
