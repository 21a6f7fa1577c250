"""The device driver's part: conditions of allocated devices in a claim's status. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from earmark.kube.objects import AllocatedDeviceStatus, Condition, ResourceClaim

STATUSES = ("True", "False", "Unknown")

# The API asks for a reason.
DEFAULT_REASON = "DriverReported"


def attach_patch(claim: ResourceClaim, condition: Condition, now: datetime) -> dict[str, Any]:
    """Return the merge patch that sets a condition on every allocated device of a claim.

    The transition time is `now` where the status changes. Raises ValueError if the claim is not allocated.
    """
    allocation = claim.status.allocation
    if allocation is None:
        raise ValueError(f"claim {claim.metadata.namespace}/{claim.metadata.name} is not allocated")
    reported = {_key(device): device for device in claim.status.devices}
    devices: list[AllocatedDeviceStatus] = []
    for result in allocation.devices.results:
        device = AllocatedDeviceStatus(
            driver=result.driver, pool=result.pool, device=result.device, share_id=result.share_id
        )
        devices.append(_with_condition(reported.get(_key(device), device), condition, now))
    return {
        "metadata": {"resourceVersion": claim.metadata.resource_version},
        "status": {"devices": msgspec.to_builtins(devices)},
    }


def _with_condition(device: AllocatedDeviceStatus, condition: Condition, now: datetime) -> AllocatedDeviceStatus:
    old = next((item for item in device.conditions if item.type == condition.type), None)
    since = (
        old.last_transition_time if old is not None and old.status == condition.status else now.replace(microsecond=0)
    )
    new = msgspec.structs.replace(condition, last_transition_time=since)
    others = tuple(item for item in device.conditions if item.type != condition.type)
    return msgspec.structs.replace(device, conditions=(*others, new))


def _key(device: AllocatedDeviceStatus) -> tuple[str, str, str, str | None]:
    return (device.driver, device.pool, device.device, device.share_id)
