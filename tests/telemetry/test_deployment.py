"""Dashboard, alerts, scrape configuration and compose file: they parse, fit together, and name metrics that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.runtime.process import SERVICES
from support import telemetry_metrics as described

# What Prometheus and every process's collector give besides.
ELSEWHERE = {"up": ("job", "service", "instance"), "process_resident_memory_bytes": ("job", "service", "instance")}
KINDS = {"stat", "table", "timeseries"}


def series() -> dict[str, tuple[str, ...]]:
    """Every series by name, with its labels."""
    found: dict[str, tuple[str, ...]] = dict(ELSEWHERE)
    for metric in described.all_metrics():
        if metric.type == "histogram":
            found |= {f"{metric.name}_{end}": metric.labels for end in ("sum", "count")}
            found[f"{metric.name}_bucket"] = (*metric.labels, "le")
        else:
            found[metric.name] = metric.labels
    return found


def check_expression(expression: str) -> None:
    """Every metric exists and has the labels that are asked for."""
    known = series()
    names = re.findall(r"\b((?:scheduler|earmark|dynamic|process)_[a-z0-9_]+|up)\b(\{[^}]*\})?", expression)
    assert names, f"{expression}: no metric"
    labels: set[str] = {"job", "instance", "service"}
    for name, selector in names:
        assert name in known, f"{expression}: no metric {name}"
        labels |= set(known[name])
        wanted = re.findall(r"(\w+)\s*(?:=|!=|=~|!~)\s*\"", selector)
        assert set(wanted) <= {*known[name], "job", "instance", "service"}, f"{expression}: labels of {name}"
    for group in re.findall(r"\bby \(([^)]*)\)", expression):
        assert {label.strip() for label in group.split(",")} <= labels, f"{expression}: by ({group})"
    assert expression.count("(") == expression.count(")")


@pytest.fixture
def deploy(repository: Path) -> Path:
    return repository / "deploy"


@pytest.fixture
def dashboard(deploy: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((deploy / "grafana/dashboards/earmark.json").read_text(encoding="utf-8"))
    return loaded


def alerts(deploy: Path) -> Iterator[dict[str, Any]]:
    for file in sorted((deploy / "alerts").glob("*.yml")):
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            assert set(group) <= {"name", "rules", "interval"}
            yield from group["rules"]


def test_the_dashboard_has_what_grafana_wants_of_one(dashboard: dict[str, Any]) -> None:
    assert {"uid", "title", "schemaVersion", "panels", "templating", "time"} <= set(dashboard)
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["type"] in KINDS
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, f"{panel['title']} lies over another one"
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(set(references)) == len(references)
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])


def test_the_dashboard_asks_only_for_metrics_that_exist(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            check_expression(target["expr"])


def test_the_dashboard_names_the_claim_that_is_awaited_the_pod_and_since_when(dashboard: dict[str, Any]) -> None:
    (panel,) = [panel for panel in dashboard["panels"] if panel["type"] == "table"]
    assert "earmark_awaited_claim_since_timestamp_seconds" in panel["targets"][0]["expr"]
    assert {"claim", "preemptor", "node"} <= set(series()["earmark_awaited_claim_since_timestamp_seconds"])


def test_the_alerts_ask_only_for_metrics_that_exist(deploy: Path) -> None:
    rules = list(alerts(deploy))
    for rule in rules:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
        check_expression(rule["expr"])
        known = series()
        for label in re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])):
            names = re.findall(r"\b(?:earmark|scheduler)_[a-z0-9_]+|\bup\b", rule["expr"])
            assert any(label in known[name] for name in names), f"{rule['alert']}: label {label}"
    assert {"EarmarkWindowStuck", "EarmarkClaimNotDeallocated", "EarmarkVictimsWithoutScheduledPreemptors"} <= {
        rule["alert"] for rule in rules
    }


def test_a_metric_that_does_not_exist_is_found() -> None:
    with pytest.raises(AssertionError, match="no metric earmark_nothing"):
        check_expression("rate(earmark_nothing[5m])")
    with pytest.raises(AssertionError, match="labels of"):
        check_expression('earmark_claim_nominations_total{colour="blue"}')
    with pytest.raises(AssertionError, match="by"):
        check_expression("sum by (colour) (earmark_victim_claims)")


def test_prometheus_scrapes_the_ports_that_the_compose_file_gives(deploy: Path) -> None:
    prometheus = yaml.safe_load((deploy / "prometheus/prometheus.yml").read_text(encoding="utf-8"))
    (job,) = prometheus["scrape_configs"]
    scraped = {entry["labels"]["service"]: entry["targets"] for entry in job["static_configs"]}
    compose = yaml.safe_load((deploy / "compose.yaml").read_text(encoding="utf-8"))["services"]
    given = {name: [compose[name]["environment"]["EARMARK_RUNTIME_METRICS_ADDRESS"]] for name in SERVICES}
    assert scraped == given
    mounts = compose["prometheus"]["volumes"]
    assert any(mount.startswith("./alerts:") for mount in mounts)
    assert prometheus["rule_files"] == ["/etc/prometheus/alerts/*.yml"]


def test_the_compose_file_runs_every_service_with_as_little_as_it_needs(deploy: Path) -> None:
    compose = yaml.safe_load((deploy / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    known = {
        "image", "build", "command", "init", "restart", "read_only", "user", "cap_drop", "security_opt", "volumes",
        "ports", "network_mode", "tmpfs", "depends_on", "environment", "healthcheck",
    }  # fmt: skip
    for name, service in services.items():
        assert set(service) <= known, name
        assert all(other in services for other in service.get("depends_on", {}))
        for mount in service.get("volumes", ()):
            source = mount.partition(":")[0]
            exists = (deploy / source).exists() if source.startswith(".") else source in compose["volumes"]
            assert exists, f"{name}: {mount}"
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    for name in SERVICES:
        service = services[name]
        assert service["command"] == ["python", "-m", f"earmark.{name}"]
        assert service["read_only"]
        assert service["user"] == "65532:65532"
        assert service["cap_drop"] == ["ALL"]


def test_the_image_runs_as_nobody_in_particular(repository: Path) -> None:
    text = (repository / "deploy/Containerfile").read_text(encoding="utf-8")
    instructions = re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE)
    users = [value for name, value in instructions if name == "USER"]
    assert users == ["65532:65532"]
    assert "--require-hashes" in text
    for name, value in instructions:
        if name == "COPY" and not value.startswith("--from"):
            *sources, _ = value.split()
            assert [source for source in sources if not (repository / source).exists()] == []
