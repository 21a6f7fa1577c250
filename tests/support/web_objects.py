"""Slices, claims, pods and windows as the page's tests need them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from earmark.kube.objects import (
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ObjectMeta,
    Pod,
    PodStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from earmark.v1 import common_pb2, settlement_pb2
from earmark.v1.settlement_pb2 import SettlementPhase
from earmark.web.windows import Window, window

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
DRIVER = "gpu.example.com"


def at(seconds: float) -> datetime:
    """So many seconds after T0."""
    return T0 + timedelta(seconds=seconds)


def slice_of(node: str, *devices: str, generation: int = 1, name: str = "") -> ResourceSlice:
    """What the driver of a node publishes."""
    return ResourceSlice(
        metadata=ObjectMeta(name=name or f"{node}-{generation}"),
        spec=ResourceSliceSpec(
            driver=DRIVER,
            node_name=node,
            pool=ResourcePool(name=node, generation=generation, resource_slice_count=1),
            devices=tuple(Device(name=device) for device in devices),
        ),
    )


def pod(name: str, *, until: datetime | None = None, phase: str = "Running") -> Pod:
    """A pod whose UID is "uid-NAME"."""
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", deletion_timestamp=until)
    return Pod(metadata=meta, status=PodStatus(phase=phase))


def claim(name: str, device: str = "", *pods: str, admin: bool = False) -> ResourceClaim:
    """A claim that has "POOL/DEVICE" and is reserved for pods; without a device it is pending."""
    allocation = None
    if device:
        pool, _, short = device.partition("/")
        result = DeviceRequestAllocationResult(
            request="gpu", driver=DRIVER, pool=pool, device=short, admin_access=admin or None
        )
        allocation = AllocationResult(devices=DeviceAllocationResult(results=(result,)))
    users = tuple(ResourceClaimConsumerReference(resource="pods", name=item, uid=f"uid-{item}") for item in pods)
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        status=ResourceClaimStatus(allocation=allocation, reserved_for=users),
    )


def settlement(
    preemptor: str,
    device: str,
    victim: str,
    *,
    claim: str = "",
    phase: str = "terminating",
    generation: int = 1,
    t0: datetime = T0,
) -> settlement_pb2.Settlement:
    """A settling window as SettlementService tells it; each phase takes a second."""
    node = device.partition("/")[0]
    name = phase.upper()
    message = settlement_pb2.Settlement(
        preemptor=common_pb2.PodReference(namespace="default", name=preemptor, uid=f"uid-{preemptor}"),
        node_name=node,
        generation=generation,
        devices=[f"{DRIVER}/{device}"],
        phase=SettlementPhase.Value(f"SETTLEMENT_PHASE_{name}"),
        outcome="scheduled" if phase == "ended" else "",
    )
    message.t0.FromDatetime(t0)
    reached = ("terminating", "deallocating", "held", "ended").index(phase)
    for number, moment in enumerate(("t1", "t3", "t4"), 1):
        if reached >= number:
            getattr(message, moment).FromDatetime(t0 + timedelta(seconds=number))
    message.victims.add().pod.CopyFrom(common_pb2.PodReference(namespace="default", name=victim, uid=f"uid-{victim}"))
    if claim:
        awaited = message.claims.add(namespace="default", name=claim, uid=f"uid-{claim}")
        if reached >= 2:
            awaited.deallocated.FromDatetime(t0 + timedelta(seconds=2))
    return message


def window_of(preemptor: str, device: str, victim: str, *, claim: str = "", phase: str = "terminating") -> Window:
    """The same, as the page keeps it."""
    return window(settlement(preemptor, device, victim, claim=claim, phase=phase))
