"""Whether a claim's allocated devices are ready to be bound (upstream B11.4, B11.11). Pure: the time is passed in."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from earmark.kube.objects import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim


class Readiness(enum.Enum):
    """What binding conditions say of a claim."""

    READY = "ready"
    WAITING = "waiting"
    TIMED_OUT = "timed out"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Readiness and, where it failed or timed out, the text for it."""

    readiness: Readiness
    text: str = ""


def readiness(claim: ResourceClaim, now: datetime, timeout_seconds: float) -> Verdict:
    """Judge a claim that is allocated; one without binding conditions is ready."""
    allocation = claim.status.allocation
    if allocation is None:
        return Verdict(Readiness.WAITING)
    waiting = False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        status = _device_status(claim, result)
        if status is None:
            waiting = True
            continue
        true = {condition.type: condition for condition in status.conditions if condition.status == "True"}
        for name in result.binding_failure_conditions:
            if name in true:
                return Verdict(
                    Readiness.FAILED,
                    f"device binding failed: claim={claim.metadata.name}, reason={true[name].reason}, "
                    f'message="{true[name].message}"',
                )
        waiting = waiting or not all(name in true for name in result.binding_conditions)
    if not waiting:
        return Verdict(Readiness.READY)
    stamp = allocation.allocation_timestamp
    if stamp is not None and stamp + timedelta(seconds=timeout_seconds) < now:
        return Verdict(Readiness.TIMED_OUT, f"device binding timeout: claim={claim.metadata.name}")
    return Verdict(Readiness.WAITING)


def has_binding_conditions(claim: ResourceClaim) -> bool:
    """Whether an allocated device waits for conditions before the pod may be bound."""
    allocation = claim.status.allocation
    return allocation is not None and any(result.binding_conditions for result in allocation.devices.results)


def _device_status(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    for status in claim.status.devices:
        # The share is not compared: the first entry of the device counts, as upstream.
        if (status.driver, status.pool, status.device) == (result.driver, result.pool, result.device):
            return status
    return None
