"""All metrics of all services, read from their registries, and the table of docs/observability.md made from them.

`python tests/support/telemetry_metrics.py` writes the tables of metrics and of span attributes into the document.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.metrics import MetricWrapperBase

from earmark.claimcontroller.metrics import ClaimMetrics
from earmark.dynamicresources.metrics import AllocatorMetrics, WindowGauges
from earmark.dynamicresources.settling import Metrics as SettlingMetrics
from earmark.framework.metrics import Metrics as FrameworkMetrics
from earmark.preemption.metrics import PreemptionMetrics
from earmark.runtime import semconv

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "observability.md"


@dataclass(frozen=True, order=True)
class Metric:
    """A metric as /metrics shows it."""

    service: str
    name: str
    type: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...]
    help: str


def registries() -> dict[str, CollectorRegistry]:
    """A registry for each service, as its component fills it."""
    made = {name: CollectorRegistry() for name in ("framework", "preemption", "dynamicresources", "claimcontroller")}
    FrameworkMetrics(made["framework"], "default-scheduler")
    PreemptionMetrics(made["preemption"])
    SettlingMetrics(made["dynamicresources"])
    AllocatorMetrics(made["dynamicresources"], lambda: 0.0)
    made["dynamicresources"].register(WindowGauges(tuple))
    ClaimMetrics(made["claimcontroller"], tuple)
    # The API's one is made when it listens.
    made["apiserver"] = CollectorRegistry()
    Gauge("earmark_apiserver_objects", "Stored objects.", ("kind",), registry=made["apiserver"])
    return made


def described(service: str, registry: CollectorRegistry) -> Iterator[Metric]:
    """What is on a registry."""
    for collector in [*registry._collector_to_names]:
        if isinstance(collector, MetricWrapperBase):
            bounds = tuple(float(bound) for bound in getattr(collector, "_upper_bounds", ())[:-1])
            kind = collector._type
            name = f"{collector._name}_total" if kind == "counter" else collector._name
            labels = tuple(collector._labelnames)
            yield Metric(service, name, kind, labels, bounds, collector._documentation)
            continue
        for family in collector.collect():
            labels = tuple(getattr(family, "_labelnames", ()))
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield Metric(service, name, family.type, labels, (), family.documentation)


def all_metrics() -> list[Metric]:
    """Every metric, sorted by service and name."""
    return sorted(metric for service, registry in registries().items() for metric in described(service, registry))


def names_in_the_sources() -> set[str]:
    """The names that services give to metrics, whether or not `registries` knows of them."""
    makers = {"Counter", "Gauge", "Histogram", "Summary", "GaugeMetricFamily", "CounterMetricFamily"}
    found = set()
    for file in sorted((ROOT / "services/earmark").rglob("*.py")):
        if "/v1/" in str(file):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in makers):
                continue
            first = node.args[0] if node.args else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                counter = node.func.id.startswith("Counter")
                found.add(f"{first.value.removesuffix('_total')}_total" if counter else first.value)
    return found


def buckets_text(bounds: tuple[float, ...]) -> str:
    """Buckets as start, factor and number."""
    if not bounds:
        return ""
    factor = round(bounds[1] / bounds[0], 6)
    return f"{bounds[0]:g} × {factor:g}^k, {len(bounds)}"


def metrics_table() -> str:
    """The table of the document."""
    lines = ["| service | metric | type | labels | buckets | meaning |", "| --- | --- | --- | --- | --- | --- |"]
    for metric in all_metrics():
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(
            f"| {metric.service} | `{metric.name}` | {metric.type} | {labels} | {buckets_text(metric.buckets)} "
            f"| {metric.help.rstrip('.')} |"
        )
    return "\n".join(lines)


def spans_table() -> str:
    """Spans, attributes and events, with their meaning."""
    lines = ["| name | kind | meaning |", "| --- | --- | --- |"]
    for kind, names in (("span", semconv.SPANS), ("attribute", semconv.ATTRIBUTES), ("event", semconv.EVENTS)):
        lines += [f"| `{name}` | {kind} | {meaning} |" for name, meaning in names.items()]
    return "\n".join(lines)


TABLES: dict[str, Any] = {"metrics": metrics_table, "spans": spans_table}


def table_of(text: str, name: str) -> str:
    """The table that stands in the document between its marks."""
    _, _, rest = text.partition(f"<!-- {name} -->\n")
    return rest.partition(f"\n<!-- end of {name} -->")[0].strip("\n")


def write() -> None:
    """Write the tables into the document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(write())
