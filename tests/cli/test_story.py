"""What the demo concludes from the changes that it sees."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from earmark.cli.story import INCIDENT, LATECOMER, SERVING, TRAINING, Moment, Story
from earmark.kube.objects import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    ResourceClaim,
    ResourceClaimStatus,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, *, node: str = "", phase: str = "Pending", nominated: str = "", deleted: bool = False) -> Pod:
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            deletion_timestamp=NOW if deleted else None,
            deletion_grace_period_seconds=3 if deleted else None,
        ),
        spec=PodSpec(node_name=node, priority=100),
        status=PodStatus(phase=phase, nominated_node_name=nominated),
    )


def claim(owner: str, device: str = "") -> ResourceClaim:
    result = DeviceRequestAllocationResult(driver="gpu.example.com", pool="gpu-a", device=device)
    allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,))) if device else None
    return ResourceClaim(
        metadata=ObjectMeta(name=f"{owner}-gpu", owner_references=(OwnerReference(kind="Pod", name=owner),)),
        status=ResourceClaimStatus(allocation=allocation),
    )


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def told() -> list[Moment]:
    return []


@pytest.fixture
def story(told: list[Moment]) -> Story:
    """Everything went as it should."""
    story = Story(Clock(), told.append)
    story.claim_changed(None, claim(TRAINING, "gpu-0"))
    for name in (TRAINING, SERVING):
        story.pod_changed(None, pod(name, node="gpu-a", phase="Running"))
    story.pod_changed(None, pod(INCIDENT))
    story.pod_changed(pod(INCIDENT), pod(INCIDENT, nominated="gpu-a"))
    running = pod(TRAINING, node="gpu-a", phase="Running")
    terminating = pod(TRAINING, node="gpu-a", phase="Running", deleted=True)
    story.pod_changed(running, terminating)
    story.held = ["gpu.example.com/gpu-a/gpu-0"]
    story.pod_changed(terminating, None)
    story.pod_changed(None, pod(LATECOMER))
    story.claim_changed(claim(TRAINING, "gpu-0"), None)
    story.claim_changed(None, claim(INCIDENT, "gpu-0"))
    story.pod_changed(pod(INCIDENT, nominated="gpu-a"), pod(INCIDENT, node="gpu-a", phase="Running"))
    return story


def test_a_run_as_it_should_be_has_no_failures(story: Story) -> None:
    assert story.failures() == []
    assert story.victims == [TRAINING]


def test_the_stages_of_the_window_are_told_in_order(story: Story, told: list[Moment]) -> None:
    assert [moment.stage for moment in told if moment.stage] == ["t0", "t1", "t3", "t4"]
    assert [moment.at for moment in told] == sorted(moment.at for moment in told)


def test_another_device_than_the_held_one_is_a_failure(story: Story) -> None:
    story.claim_changed(claim(INCIDENT, "gpu-0"), claim(INCIDENT, "gpu-1"))
    assert story.failures() == [
        "incident: want the device that was held (gpu.example.com/gpu-a/gpu-0), got gpu.example.com/gpu-a/gpu-1"
    ]


def test_a_second_victim_is_a_failure(story: Story) -> None:
    story.pod_changed(
        pod(SERVING, node="gpu-b", phase="Running"), pod(SERVING, node="gpu-b", phase="Running", deleted=True)
    )
    assert story.failures()[0] == "preempted: want training alone, got training, serving"


def test_a_latecomer_that_gets_the_device_is_a_failure(story: Story) -> None:
    story.pod_changed(pod(LATECOMER), pod(LATECOMER, node="gpu-a"))
    assert story.failures() == ["latecomer: want it pending, without a device"]


def test_a_preemptor_that_does_not_run_is_a_failure(story: Story) -> None:
    story.pods[INCIDENT] = pod(INCIDENT, nominated="gpu-a")
    assert story.failures() == ["incident: want it running"]


def test_nothing_held_is_a_failure(story: Story) -> None:
    story.held = []
    assert story.failures() == ["incident: want the device that was held (none), got gpu.example.com/gpu-a/gpu-0"]
