"""Claims and slices in the registry: the rules that the real API server was seen to keep."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.apiserver.errors import StatusError
from earmark.cel.devices import selector_problem
from support.apiserver_registry import Cluster, Data, allocation, causes, claim, consumer, resource_slice

FINALIZER = "resource.kubernetes.io/delete-protection"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def status(cluster: Cluster, value: Data, **metadata: Any) -> Data:
    return cluster.patch("ResourceClaim", "c", {"metadata": metadata, "status": value}, "status")


def refused(cluster: Cluster, value: Data) -> list[tuple[str, str]]:
    with pytest.raises(StatusError) as caught:
        status(cluster, value)
    assert caught.value.code == 422
    return causes(caught.value)


def test_requests_get_their_defaults(cluster: Cluster) -> None:
    exactly = cluster.create(claim("c"))["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


def test_subrequests_get_their_defaults_and_all_has_no_count(cluster: Cluster) -> None:
    data = claim("c")
    data["spec"]["devices"]["requests"] = [
        {"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "x"},
                                         {"name": "b", "deviceClassName": "x", "allocationMode": "All"}]}
    ]  # fmt: skip
    choices = cluster.create(data)["spec"]["devices"]["requests"][0]["firstAvailable"]
    assert [(choice["allocationMode"], choice.get("count")) for choice in choices] == [("ExactCount", 1), ("All", None)]


@pytest.mark.parametrize(
    ("exactly", "field", "kind"),
    [
        ({"deviceClassName": ""}, "spec.devices.requests[0].exactly.deviceClassName", "Required"),
        ({"allocationMode": "Some"}, "spec.devices.requests[0].exactly.allocationMode", "NotSupported"),
        ({"allocationMode": "All", "count": 2}, "spec.devices.requests[0].exactly.count", "Invalid"),
        ({"count": -1}, "spec.devices.requests[0].exactly.count", "Invalid"),
        ({"selectors": [{}]}, "spec.devices.requests[0].exactly.selectors[0].cel", "Required"),
    ],
)
def test_an_invalid_request_is_refused_with_the_field(
    cluster: Cluster, exactly: dict[str, Any], field: str, kind: str
) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create(claim("c", **exactly))
    assert (field, kind) in causes(caught.value)


def test_a_constraint_names_requests_that_exist(cluster: Cluster) -> None:
    data = claim("c")
    data["spec"]["devices"]["constraints"] = [{"requests": ["nope"], "matchAttribute": "nodomain"}]
    with pytest.raises(StatusError) as caught:
        cluster.create(data)
    assert causes(caught.value) == [
        ("spec.devices.constraints[0].requests[0]", "Invalid"),
        ("spec.devices.constraints[0].matchAttribute", "Invalid"),
    ]


def test_the_spec_of_a_claim_is_immutable(cluster: Cluster) -> None:
    data = cluster.create(claim("c"))
    data["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    with pytest.raises(StatusError, match="field is immutable"):
        cluster.update(data)


def test_a_new_claim_has_no_status(cluster: Cluster) -> None:
    assert "status" not in cluster.create({**claim("c"), "status": {"allocation": allocation()}})


def test_reserving_needs_an_allocation(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    assert refused(cluster, {"reservedFor": [consumer("p")]}) == [("status.reservedFor", "Forbidden")]
    made = status(cluster, {"allocation": allocation(), "reservedFor": [consumer("p")]})
    assert made["status"]["reservedFor"] == [consumer("p")]


def test_allocation_and_reservation_go_together(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    status(cluster, {"allocation": allocation(), "reservedFor": [consumer("p")]})
    assert refused(cluster, {"allocation": None}) == [("status.reservedFor", "Forbidden")]
    assert not status(cluster, {"allocation": None, "reservedFor": None}).get("status")


def test_an_allocation_changes_only_through_null(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    status(cluster, {"allocation": allocation("gpu-0")})
    assert refused(cluster, {"allocation": allocation("gpu-1")}) == [("status.allocation", "Invalid")]
    status(cluster, {"allocation": None})
    status(cluster, {"allocation": allocation("gpu-1")})


def test_an_allocation_may_be_there_before_any_consumer(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    assert "reservedFor" not in status(cluster, {"allocation": allocation("nope", "n9")})["status"]


def test_consumers_are_unique_and_at_most_256(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    status(cluster, {"allocation": allocation()})
    assert refused(cluster, {"reservedFor": [consumer("p"), {**consumer("q"), "uid": "uid-p"}]}) == [
        ("status.reservedFor[1].uid", "Duplicate")
    ]
    assert refused(cluster, {"reservedFor": [consumer(f"p{index}") for index in range(257)]}) == [
        ("status.reservedFor", "TooMany")
    ]
    assert (
        len(status(cluster, {"reservedFor": [consumer(f"p{i}") for i in range(256)]})["status"]["reservedFor"]) == 256
    )


def test_a_claim_that_is_being_deleted_takes_no_new_consumers(cluster: Cluster) -> None:
    data = claim("c")
    data["metadata"]["finalizers"] = [FINALIZER]
    cluster.create(data)
    status(cluster, {"allocation": allocation(), "reservedFor": [consumer("p"), consumer("q")]})
    assert not cluster.delete("ResourceClaim", "c")
    assert refused(cluster, {"reservedFor": [consumer("p"), consumer("new")]}) == [("status.reservedFor", "Forbidden")]
    assert status(cluster, {"reservedFor": [consumer("p")]})["status"]["reservedFor"] == [consumer("p")]


def test_a_finalizer_in_a_status_write_is_dropped(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    made = status(cluster, {"allocation": allocation()}, finalizers=[FINALIZER], labels={"a": "b"})
    assert "finalizers" not in made["metadata"]
    assert "labels" not in made["metadata"]


def test_the_last_finalizer_s_end_is_the_object_s(cluster: Cluster) -> None:
    data = claim("c")
    data["metadata"]["finalizers"] = [FINALIZER]
    cluster.create(data)
    cluster.delete("ResourceClaim", "c")
    with pytest.raises(StatusError, match="no new finalizers can be added"):
        cluster.patch("ResourceClaim", "c", {"metadata": {"finalizers": [FINALIZER, "example.com/more"]}})
    cluster.patch("ResourceClaim", "c", {"metadata": {"finalizers": None}})
    assert not cluster.exists("ResourceClaim", "c")


def test_a_stale_version_conflicts_and_none_wins(cluster: Cluster) -> None:
    version = cluster.create(claim("c"))["metadata"]["resourceVersion"]
    status(cluster, {"allocation": allocation()}, resourceVersion=version)
    with pytest.raises(StatusError, match="the object has been modified") as caught:
        status(cluster, {"allocation": None}, resourceVersion=version)
    assert caught.value.code == 409
    status(cluster, {"allocation": None})


def test_device_status_needs_an_allocated_device_and_goes_with_it(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    status(cluster, {"allocation": allocation()})
    reported = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    assert refused(cluster, {"devices": [{**reported, "device": "gpu-9"}]}) == [("status.devices[0]", "Invalid")]
    status(cluster, {"devices": [reported]})
    assert not status(cluster, {"allocation": None}).get("status")


def test_a_result_names_a_request_of_the_claim(cluster: Cluster) -> None:
    cluster.create(claim("c"))
    wrong = allocation()
    wrong["devices"]["results"][0]["request"] = "nope"
    assert refused(cluster, {"allocation": wrong}) == [("status.allocation.devices.results[0].request", "Invalid")]


# --- slices ----------------------------------------------------------------------------------------------------------


@pytest.mark.kep("R27")
def test_a_counter_set_without_counters_is_refused_with_its_path(cluster: Cluster) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create(resource_slice(devices=[], sharedCounters=[{"name": "x"}]))
    assert causes(caught.value) == [("spec.sharedCounters[0].counters", "Required")]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"sharedCounters": [{"name": "x", "counters": {"a": {"value": "1"}}}]}, "spec"),
        ({"nodeName": None}, "spec"),
        ({"allNodes": True}, "spec"),
        ({"pool": {"name": "n1", "generation": 1, "resourceSliceCount": 0}}, "spec.pool.resourceSliceCount"),
        ({"devices": [{"name": "a"}, {"name": "a"}]}, "spec.devices[1].name"),
        ({"devices": [{"name": f"d{index}"} for index in range(129)]}, "spec.devices"),
        (
            {"devices": [{"name": f"d{index}", "taints": [{"key": "a", "effect": "None"}]} for index in range(65)]},
            "spec.devices",
        ),
        ({"devices": [{"name": "a", "attributes": {"x": {"int": 1, "string": "y"}}}]}, "spec.devices[0].attributes[x]"),
        ({"devices": [{"name": "a", "attributes": {"bad-name": {"int": 1}}}]}, "spec.devices[0].attributes"),
        ({"devices": [{"name": "a", "allNodes": True}]}, "spec.devices[0].allNodes"),
        (
            {"devices": [{"name": "a", "consumesCounters": [{"counterSet": "s"}]}]},
            "spec.devices[0].consumesCounters[0].counters",
        ),
    ],
)
def test_an_invalid_slice_is_refused_with_the_field(cluster: Cluster, spec: dict[str, Any], field: str) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create(resource_slice(**spec))
    assert [cause[0] for cause in causes(caught.value)] == [field]


def test_quantities_are_stored_in_canonical_form(cluster: Cluster) -> None:
    devices = [{"name": "a", "capacity": {"memory": {"value": "1.5Gi"}, "cores": {"value": 4}}}]
    capacity = cluster.create(resource_slice(devices=devices))["spec"]["devices"][0]["capacity"]
    assert capacity == {"memory": {"value": "1536Mi"}, "cores": {"value": "4"}}


def test_a_device_taint_is_dated(cluster: Cluster) -> None:
    devices = [{"name": "a", "taints": [{"key": "sick", "effect": "NoSchedule"}]}]
    taint = cluster.create(resource_slice(devices=devices))["spec"]["devices"][0]["taints"][0]
    assert taint["timeAdded"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (claim("c", selectors=[{"cel": {"expression": "true"}}, {"cel": {"expression": "device.driver =="}}]),
         "spec.devices.requests[0].exactly.selectors[1].cel.expression"),
        ({"kind": "ResourceClaimTemplate", "metadata": {"name": "t"},
          "spec": {"spec": {"devices": {"requests": [{"name": "g", "firstAvailable": [
              {"name": "a", "deviceClassName": "gpu", "selectors": [{"cel": {"expression": "device.nope"}}]}]}]}}}},
         "spec.spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression"),
        ({"kind": "DeviceClass", "metadata": {"name": "d"}, "spec": {"selectors": [{"cel": {"expression": "1"}}]}},
         "spec.selectors[0].cel.expression"),
        ({"kind": "DeviceClass", "metadata": {"name": "d"},
          "spec": {"selectors": [{"cel": {"expression": "(" * 5000 + ")" * 5000}}]}},
         "spec.selectors[0].cel.expression"),
    ],
)  # fmt: skip
def test_a_selector_that_does_not_compile_is_refused(data: Data, field: str) -> None:
    cluster = Cluster(selector_problem=selector_problem)
    with pytest.raises(StatusError) as caught:
        cluster.create(data)
    assert (caught.value.code, causes(caught.value)) == (422, [(field, "Invalid")])


def test_a_compile_error_is_told_in_upstream_s_words() -> None:
    cluster = Cluster(selector_problem=selector_problem)
    with pytest.raises(StatusError) as caught:
        cluster.create(claim("c", selectors=[{"cel": {"expression": "device.nope"}}]))
    assert caught.value.message == (
        'ResourceClaim.resource.k8s.io "c" is invalid: spec.devices.requests[0].exactly.selectors[0].cel.expression: '
        "Invalid value: \"device.nope\": compilation failed: ERROR: <input>:1:7: undefined field 'nope'\n"
        " | device.nope\n | ......^"
    )
