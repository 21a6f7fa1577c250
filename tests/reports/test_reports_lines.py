"""Reports that are one allocation problem, in the form of `earmark allocate`."""

from __future__ import annotations

import time
from typing import Any

import pytest

from earmark.dynamicresources.allocator.jsonlines import allocate_line

G = "gpu.example.com"


def line(
    devices: list[Any], requests: list[Any], *, constraints: list[Any] | None = None, **more: Any
) -> dict[str, Any]:
    """Return a problem: one node with one slice, one claim."""
    return {
        "node": {"metadata": {"name": "n1"}},
        "slices": [
            {
                "metadata": {"name": "s"},
                "spec": {
                    "driver": G,
                    "nodeName": "n1",
                    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                    "devices": devices,
                },
            }
        ],
        "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
        "claims": [
            {
                "metadata": {"name": "c", "namespace": "default", "uid": "c"},
                "spec": {"devices": {"requests": requests, "constraints": constraints or []}},
            }
        ],
        **more,
    }


def exactly(name: str = "r", **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **fields},
    }  # fmt: skip


def devices_of(answer: dict[str, Any]) -> list[str] | None:
    if answer["results"] is None:
        return None
    return [result["device"] for claim in answer["results"] for result in claim["devices"]["results"]]


@pytest.mark.kep("R03")
def test_r03_list_attributes_with_a_common_value_are_found_by_going_back() -> None:
    lists = {"a": [1, 2], "b": [1], "c": [2], "d": [2]}
    devices = [{"name": name, "attributes": {"numa": {"ints": values}}} for name, values in lists.items()]
    problem = line(devices, [exactly(count=3)], constraints=[{"matchAttribute": f"{G}/numa"}])
    assert devices_of(allocate_line(problem)) == ["a", "c", "d"]


@pytest.mark.kep("R03")
def test_r03_without_the_feature_list_attributes_match_nothing() -> None:
    devices = [{"name": name, "attributes": {"numa": {"ints": [1]}}} for name in "ab"]
    problem = line(devices, [exactly(count=2)], constraints=[{"matchAttribute": f"{G}/numa"}])
    answer = allocate_line({**problem, "features": {"ListTypeAttributes": False, "DerivedAttributes": False}})
    assert answer["results"] is None


@pytest.mark.kep("R12")
@pytest.mark.parametrize("value", ["0.3", "9223372036854775808", "1e30", "1n", "1.0000000001"])
def test_r12_precise_capacities_give_the_same_answer_every_time(value: str) -> None:
    device = {"name": "d1", "allowMultipleAllocations": True, "capacity": {"c": {"value": value}}}
    problem = line([device], [exactly(capacity={"requests": {"c": value}})])
    first = allocate_line(problem)
    assert devices_of(first) == ["d1"]
    assert all(allocate_line(problem) == first for _ in range(5))
    assert device["capacity"] == {"c": {"value": value}}


@pytest.mark.kep("R18")
def test_r18_one_device_too_few_is_seen_at_once() -> None:
    started = time.process_time()
    assert allocate_line(line([{"name": f"d{n}"} for n in range(31)], [exactly(count=32)]))["results"] is None
    assert time.process_time() - started < 1


@pytest.mark.kep("R18")
def test_r18_a_constraint_that_cannot_hold_ends_at_once_or_in_time() -> None:
    devices = [{"name": f"d{n:02}", "attributes": {"x": {"int": n % 19}, "y": {"int": n % 7}}} for n in range(60)]
    requests = [exactly(f"r{n}", count=10) for n in range(3)]
    constraints = [{"matchAttribute": f"{G}/x", "requests": [f"r{n}"]} for n in range(3)]
    end = time.process_time() + 2
    answer = allocate_line(
        line(devices, requests, constraints=constraints), expired=lambda: time.process_time() > end
    )  # fmt: skip
    assert answer["results"] is None
    assert answer.get("error_kind") in (None, "timeout")
    assert time.process_time() < end + 1
