"""What is written into a pod: condition, nominatedNodeName and the record of the nomination."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from earmark.framework import record
from earmark.framework.nominator import NominatedPod, Victim
from earmark.framework.pod_status import CLEAR, KEEP, Nominating, clear_patch, failure_patch
from support.framework_objects import pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NOMINATION = NominatedPod(
    "uid-p", "default", "p", "n1", 7, 12, (Victim("default", "v", "uid-v"),), {"DynamicResources": '{"a":[1,2]}'}
)


def annotated(text: str, nominated: str = "n1", **fields: object) -> object:
    return pod("p", nominated=nominated, priority=7, metadata={"annotations": {record.ANNOTATION: text}}, **fields)


def test_a_record_is_read_as_it_was_written() -> None:
    text = record.write(NOMINATION, "lease-1")
    assert text == (
        '{"version":1,"deployment":"lease-1","node":"n1","generation":12,"victims":[{"namespace":"default","name":"v","uid":"uid-v"}],'
        '"plugins":{"DynamicResources":{"a":[1,2]}}}'
    )
    assert record.read(annotated(text), "lease-1") == NOMINATION  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("not json", {}),
        ('{"version":1,"node":"n1","generation":1}', {}),
        ('{"version":1,"deployment":"lease-2","node":"n1","generation":1}', {}),
        ('{"version":2,"deployment":"lease-1","node":"n1","generation":1}', {}),
        ('{"version":1,"deployment":"lease-1","node":"n1","generation":0}', {}),
        ('{"version":1,"deployment":"lease-1","node":"n1","generation":9223372036854775807}', {}),
        ('{"version":1,"deployment":"lease-1","node":"n2","generation":1}', {}),
        ('{"version":1,"deployment":"lease-1","node":"n1","generation":1}', {"nominated": ""}),
        ('{"version":1,"deployment":"lease-1","node":"n1","generation":1}', {"node": "n1"}),
    ],
    ids=[
        "no-json",
        "nobody's",
        "another-deployment's",
        "other-version",
        "no-generation",
        "impossible-generation",
        "other-node",
        "not-nominated",
        "bound",
    ],
)
def test_a_record_that_does_not_count_is_ignored(text: str, fields: dict[str, str]) -> None:
    assert record.read(annotated(text, **fields), "lease-1") is None  # type: ignore[arg-type]


def test_condition_nomination_and_record_go_in_one_patch() -> None:
    nominating = Nominating(override=True, nomination=NOMINATION)
    patch = failure_patch(pod("p"), "Unschedulable", "text", nominating, NOW, deployment="lease-1")
    assert patch == {
        "metadata": {"uid": "uid-p", "annotations": {record.ANNOTATION: record.write(NOMINATION, "lease-1")}},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "text",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "nominatedNodeName": "n1",
        },
    }


@pytest.mark.kep("F44")
def test_without_persistence_no_record_is_written() -> None:
    nominating = Nominating(override=True, nomination=NOMINATION)
    patch = failure_patch(pod("p"), "Unschedulable", "text", nominating, NOW, deployment=None)
    assert patch is not None
    assert "annotations" not in patch["metadata"]


CONDITION = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "text",
    "lastTransitionTime": "2025-01-01T00:00:00Z",
}


def test_nothing_is_written_where_nothing_changes() -> None:
    told = pod("p", nominated="n1", status={"conditions": [CONDITION]})
    assert failure_patch(told, "Unschedulable", "text", KEEP, NOW, deployment="lease-1") is None


def test_the_time_of_the_condition_stays_while_its_status_does() -> None:
    told = pod("p", status={"conditions": [CONDITION]})
    patch = failure_patch(told, "Unschedulable", "other", KEEP, NOW, deployment="lease-1")
    assert patch is not None
    assert patch["status"]["conditions"][0]["lastTransitionTime"] == "2025-01-01T00:00:00Z"


def test_clearing_takes_node_and_record_out() -> None:
    patch = clear_patch(annotated(record.write(NOMINATION, "lease-1")))  # type: ignore[arg-type]
    assert patch == {
        "metadata": {"uid": "uid-p", "annotations": {record.ANNOTATION: None}},
        "status": {"nominatedNodeName": None},
    }
    assert clear_patch(pod("p")) is None


def test_a_stale_record_goes_with_the_next_patch() -> None:
    patch = failure_patch(annotated("rubbish"), "Unschedulable", "text", KEEP, NOW, deployment="lease-1")  # type: ignore[arg-type]
    assert patch is not None
    assert patch["metadata"]["annotations"] == {record.ANNOTATION: None}


def test_a_cleared_nomination_is_cleared_in_the_api() -> None:
    patch = failure_patch(pod("p", nominated="n1"), "Unschedulable", "text", CLEAR, NOW, deployment="lease-1")
    assert patch is not None
    assert patch["status"]["nominatedNodeName"] is None
