"""What can be set for the claim controller."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClaimControllerSettings:
    """Settings of the emulated resourceclaim controller."""

    deallocation_seconds: float = 0.0
    """From the end of a consumer to the write that releases its reservation (and, with the last, the allocation)."""

    two_writes: bool = False
    """Release the last reservation and the allocation in two writes instead of upstream's one. For tests."""

    workers: int = 10
    """Keys that are worked on at the same time."""

    remembered_ends: int = 10_000
    """Pods whose end is remembered; of others the API is asked, and their delay counts from then (upstream: 500)."""

    reporting_controller: str = "resource_claim"
    """The reportingController of events."""
