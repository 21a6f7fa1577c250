"""Reading data as a Kubernetes type."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.apiserver import schemagen
from earmark.apiserver.schema import SchemaError, kubernetes


def read(kind: str, value: Any) -> Any:
    return kubernetes().read(kind, value)[0]


def test_nulls_and_empty_collections_are_left_out_but_empty_structs_stay() -> None:
    data = {
        "metadata": {"labels": {}, "name": None},
        "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]},
    }
    assert read("Pod", data) == {"metadata": {}, "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ("2026-01-01T02:00:00.75+02:00", "2026-01-01T00:00:00Z"),
        ("0999-01-01T00:00:00Z", "0999-01-01T00:00:00Z"),
    ],
)
def test_times_are_utc_with_whole_seconds(given: str, want: str) -> None:
    assert read("Pod", {"status": {"startTime": given}})["status"]["startTime"] == want


def test_micro_times_keep_microseconds() -> None:
    assert read("Event", {"eventTime": "2026-01-01T00:00:00.5Z"})["eventTime"] == "2026-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"spec": []}, "spec"),
        ({"spec": {"containers": {}}}, "spec.containers"),
        ({"spec": {"containers": [None]}}, "spec.containers[0]"),
        ({"spec": {"priority": True}}, "spec.priority"),
        ({"spec": {"priority": 1.5}}, "spec.priority"),
        ({"spec": {"priority": 2**63}}, "spec.priority"),
        ({"spec": {"hostNetwork": 1}}, "spec.hostNetwork"),
        ({"spec": {"nodeSelector": {"a": 1}}}, "spec.nodeSelector.a"),
        ({"spec": {"overhead": {"cpu": "x"}}}, "spec.overhead.cpu"),
        ({"spec": {"overhead": {"cpu": {}}}}, "spec.overhead.cpu"),
        ({"status": {"startTime": "yesterday"}}, "status.startTime"),
        ({"status": {"startTime": "2026-01-01t00:00:00z"}}, "status.startTime"),
        ({"status": {"startTime": "2026-13-01T00:00:00Z"}}, "status.startTime"),
        ({"status": {"startTime": "0001-01-01T00:00:00+14:00"}}, "status.startTime"),
        ({"metadata": "x"}, "metadata"),
        (3, ""),
    ],
)
def test_a_wrong_type_is_found_with_its_path(data: Any, field: str) -> None:
    with pytest.raises(SchemaError) as caught:
        read("Pod", data)
    assert caught.value.field == field


def test_unknown_fields_are_all_named_and_dropped() -> None:
    data = {"spec": {"x": 1, "containers": [{"name": "c", "y": 2}]}, "z": 3}
    value, unknown = kubernetes().read("Pod", data)
    assert unknown == ["spec.x", "spec.containers[0].y", "z"]
    assert value == {"spec": {"containers": [{"name": "c"}]}}


def test_the_committed_schema_is_what_would_be_generated(repository: Any) -> None:
    path = repository / "services" / "earmark" / "apiserver" / "schema.json"
    assert path.read_text(encoding="utf-8") == schemagen.render()
