"""What PreBind, Unreserve and PostFilter write into a claim, and when devices are ready."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from earmark.dynamicresources.bindingconditions import Readiness, readiness
from earmark.dynamicresources.writing import Done, Impossible, Write, next_bind_write, next_unreserve_write
from earmark.kube import objects
from earmark.kube.wellknown import DELETE_PROTECTION
from support.dra_cluster import NOW, allocated, ref


def claim(*, devices: list[str] | None = None, pods: tuple[str, ...] = (), **meta: Any) -> objects.ResourceClaim:
    refs = tuple(objects.ResourceClaimConsumerReference(resource="pods", name=name, uid=f"uid-{name}") for name in pods)
    return objects.ResourceClaim(
        metadata=objects.ObjectMeta(name="c", namespace="default", uid="uid-c", resource_version="7", **meta),
        status=objects.ResourceClaimStatus(
            allocation=allocated(devices) if devices is not None else None, reserved_for=refs
        ),
    )


def bind(value: objects.ResourceClaim, allocation: objects.AllocationResult | None, **more: Any) -> Any:
    return next_bind_write(value, ref("p"), allocation, NOW, timestamps=more.get("timestamps", True))


def test_the_finalizer_comes_first() -> None:
    step = bind(claim(), allocated(["gpu-0"]))
    assert isinstance(step, Write)
    assert step.subresource == ""
    assert step.patch == {"metadata": {"finalizers": [DELETE_PROTECTION], "resourceVersion": "7", "uid": "uid-c"}}


@pytest.mark.kep("F40")
def test_then_one_write_has_allocation_reservation_and_time() -> None:
    step = bind(claim(finalizers=(DELETE_PROTECTION,)), allocated(["gpu-0"]))
    assert isinstance(step, Write)
    assert step.subresource == "status"
    status = step.patch["status"]
    assert [entry["uid"] for entry in status["reservedFor"]] == ["uid-p"]
    assert status["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert status["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    assert step.patch["metadata"] == {"resourceVersion": "7", "uid": "uid-c"}


def test_a_claim_that_is_allocated_already_gets_a_reservation_only() -> None:
    step = bind(claim(devices=["gpu-0"], pods=("other",)), None, timestamps=False)
    assert isinstance(step, Write)
    assert "allocation" not in step.patch["status"]
    assert [entry["uid"] for entry in step.patch["status"]["reservedFor"]] == ["uid-other", "uid-p"]


def test_nothing_is_written_twice() -> None:
    assert isinstance(bind(claim(devices=["gpu-0"], pods=("p",)), allocated(["gpu-0"])), Done)


@pytest.mark.parametrize(
    ("value", "allocation", "want"),
    [
        (claim(deletion_timestamp=NOW), allocated(["gpu-0"]), "got deleted in the meantime"),
        (claim(devices=["gpu-1"]), allocated(["gpu-0"]), "got allocated elsewhere in the meantime"),
        (claim(), None, "got deallocated elsewhere in the meantime"),
    ],
)
def test_a_claim_that_has_moved_ends_the_binding(
    value: objects.ResourceClaim, allocation: objects.AllocationResult | None, want: str
) -> None:
    step = bind(value, allocation)
    assert isinstance(step, Impossible)
    assert step.text == f"claim default/c {want}"


def test_unreserve_removes_only_the_pods_entry() -> None:
    step = next_unreserve_write(claim(devices=["gpu-0"], pods=("p", "q")), ref("p"), deallocate=True)
    assert isinstance(step, Write)
    assert [entry["uid"] for entry in step.patch["status"]["reservedFor"]] == ["uid-q"]
    assert "allocation" not in step.patch["status"]


def test_unreserve_leaves_the_allocation_of_a_pod_that_was_not_preempted() -> None:
    step = next_unreserve_write(claim(devices=["gpu-0"], pods=("p",)), ref("p"), deallocate=False)
    assert isinstance(step, Write)
    assert step.patch["status"] == {"reservedFor": None}


@pytest.mark.kep("F10", "D22", "E25")
def test_the_last_user_that_was_preempted_takes_the_allocation_with_it() -> None:
    step = next_unreserve_write(claim(devices=["gpu-0"], pods=("p",)), ref("p"), deallocate=True)
    assert isinstance(step, Write)
    assert step.patch["status"] == {"reservedFor": None, "allocation": None, "devices": None}


def test_unreserve_of_what_is_not_reserved_writes_nothing() -> None:
    assert isinstance(next_unreserve_write(claim(devices=["gpu-0"], pods=("q",)), ref("p"), deallocate=True), Done)


def waiting(*conditions: objects.Condition, age: float = 0) -> objects.ResourceClaim:
    result = msgspec.structs.replace(
        allocated(["gpu-0"]).devices.results[0], binding_conditions=("ready",), binding_failure_conditions=("broken",)
    )
    allocation = objects.AllocationResult(
        devices=objects.DeviceAllocationResult(results=(result,)),
        allocation_timestamp=NOW - timedelta(seconds=age),
    )
    devices = ()
    if conditions:
        devices = (
            objects.AllocatedDeviceStatus(driver=result.driver, pool="n1", device="gpu-0", conditions=conditions),
        )
    return objects.ResourceClaim(
        metadata=objects.ObjectMeta(name="c", namespace="default"),
        status=objects.ResourceClaimStatus(allocation=allocation, devices=devices),
    )


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (waiting(), Readiness.WAITING),
        (waiting(objects.Condition(type="ready", status="False")), Readiness.WAITING),
        (waiting(objects.Condition(type="ready", status="True")), Readiness.READY),
        (waiting(objects.Condition(type="broken", status="True", reason="R")), Readiness.FAILED),
        (waiting(age=601), Readiness.TIMED_OUT),
        (claim(devices=["gpu-0"]), Readiness.READY),
    ],
)
def test_binding_conditions_decide_whether_a_claim_is_ready(value: objects.ResourceClaim, want: Readiness) -> None:
    assert readiness(value, NOW, 600).readiness is want
