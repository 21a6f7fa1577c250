"""Values of metrics by name, as expectations ask for them."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry


def metric_value(registries: Iterable[CollectorRegistry], name: str) -> float | None:
    """Return a counter's or gauge's value, or a histogram's count, summed over labels and services.

    Args: `name` is the metric's name as on /metrics, a counter's with or without "_total". None: nobody has it.
    """
    total: float | None = None
    for registry in registries:
        for family in registry.collect():
            if name not in (family.name, f"{family.name}_total"):
                continue
            wanted = {"counter": "_total", "histogram": "_count", "summary": "_count"}.get(family.type, "")
            samples = [sample.value for sample in family.samples if sample.name == family.name + wanted]
            total = (total or 0.0) + sum(samples)
    return total
