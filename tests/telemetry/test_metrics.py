"""Every metric is what the scheduler's one of this name is, has a help text, and stands in the document."""

from __future__ import annotations

import pytest

from earmark.runtime import semconv
from earmark.simulation import fleet
from earmark.simulation.player import play
from support import telemetry_metrics as described
from support.simulation_player import OWN, scenario

# Upstream's: type, labels, and of buckets the first, the factor and the number.
UPSTREAM: dict[str, tuple[str, tuple[str, ...], tuple[float, float, int] | None]] = {
    "scheduler_preemption_victims": ("histogram", (), (1, 2, 7)),
    "scheduler_preemption_attempts_total": ("counter", (), None),
    "scheduler_schedule_attempts_total": ("counter", ("result", "profile"), None),
    "scheduler_scheduling_attempt_duration_seconds": ("histogram", ("result", "profile"), (0.001, 2, 15)),
    "scheduler_scheduling_algorithm_duration_seconds": ("histogram", (), (0.001, 2, 15)),
    "scheduler_pod_scheduling_sli_duration_seconds": ("histogram", ("attempts",), (0.01, 2, 20)),
    "scheduler_pod_scheduling_attempts": ("histogram", (), (1, 2, 5)),
    "scheduler_pod_scheduled_after_flush_total": ("counter", (), None),
    "scheduler_framework_extension_point_duration_seconds": (
        "histogram",
        ("extension_point", "status", "profile"),
        (0.0001, 2, 12),
    ),
    "scheduler_plugin_execution_duration_seconds": (
        "histogram",
        ("plugin", "extension_point", "status"),
        (0.00001, 1.5, 20),
    ),
    "scheduler_plugin_evaluation_total": ("counter", ("plugin", "extension_point", "profile"), None),
    "scheduler_pending_pods": ("gauge", ("queue",), None),
    "scheduler_queue_incoming_pods_total": ("counter", ("queue", "event"), None),
    "scheduler_unschedulable_pods": ("gauge", ("plugin", "profile"), None),
    "scheduler_inflight_events": ("gauge", ("event",), None),
    "scheduler_event_handling_duration_seconds": ("histogram", ("event",), (0.0001, 2, 12)),
    "scheduler_queueing_hint_execution_duration_seconds": (
        "histogram",
        ("plugin", "event", "hint"),
        (0.00001, 1.5, 20),
    ),
    "scheduler_preemption_goroutines_duration_seconds": ("histogram", ("result",), (0.01, 2, 20)),
    "scheduler_preemption_goroutines_execution_total": ("counter", ("result",), None),
}
CONTROLLER = {
    "dynamic_resource_allocation_resource_claims",
    "dynamic_resource_allocation_resourceclaim_creates_total",
}


def test_the_schedulers_metrics_have_its_types_labels_and_buckets() -> None:
    found = {
        metric.name: (
            metric.type,
            metric.labels,
            (metric.buckets[0], round(metric.buckets[1] / metric.buckets[0], 6), len(metric.buckets))
            if metric.buckets
            else None,
        )
        for metric in described.all_metrics()
        if metric.name.startswith("scheduler_")
    }
    assert found == UPSTREAM


@pytest.mark.kep("E98")
def test_whatever_is_not_upstreams_begins_with_earmark() -> None:
    names = [metric.name for metric in described.all_metrics() if metric.name not in {*UPSTREAM, *CONTROLLER}]
    assert [name for name in names if not name.startswith("earmark_")] == []


def test_every_metric_has_a_help_text_and_a_name_of_its_own() -> None:
    metrics = described.all_metrics()
    assert [metric.name for metric in metrics if len(metric.help.split()) < 2] == []
    names = [metric.name for metric in metrics]
    assert len(names) == len(set(names))


def test_every_metric_of_the_sources_is_in_the_table() -> None:
    assert described.names_in_the_sources() == {metric.name for metric in described.all_metrics()}


@pytest.mark.parametrize("name", sorted(described.TABLES))
def test_the_documents_tables_are_true(name: str) -> None:
    """`python tests/support/telemetry_metrics.py` writes them."""
    text = described.DOCUMENT.read_text(encoding="utf-8")
    assert described.table_of(text, name) == described.TABLES[name]()


def test_everything_declared_for_spans_has_a_meaning() -> None:
    for names in (semconv.SPANS, semconv.ATTRIBUTES, semconv.EVENTS):
        assert [name for name, meaning in names.items() if not meaning] == []


def test_a_preemption_moves_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    original = fleet.in_process_environment

    def remembered(name, **parts):  # type: ignore[no-untyped-def]
        made = original(name, **parts)
        found[name] = made[0].metrics
        return made

    monkeypatch.setattr(fleet, "in_process_environment", remembered)
    assert play(scenario(OWN / "window.yaml", "window")).ok

    def value(service: str, name: str, **labels: str) -> float:
        return found[service].get_sample_value(name, labels) or 0.0

    framework, plugin = "framework", "dynamicresources"
    assert value("preemption", "scheduler_preemption_victims_sum") == 1
    assert value(framework, "scheduler_pod_scheduling_attempts_count") == 2
    assert value(framework, "scheduler_event_handling_duration_seconds_count", event="NodeAdd") >= 1
    assert value(plugin, "earmark_claim_nominations_total", outcome="scheduled") == 1
    assert value(plugin, "earmark_allocator_searches_total", kind="dry_run", outcome="found") >= 1
    assert value(plugin, "earmark_allocator_searches_total", kind="filter", outcome="none") >= 1
    assert value(plugin, "earmark_settling_deallocating_seconds_sum") == 10
    names = {sample.name for registry in found.values() for family in registry.collect() for sample in family.samples}
    assert "earmark_settling_windows" in names
