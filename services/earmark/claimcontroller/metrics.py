"""The controller's metrics, with upstream's names (upstream C7)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter


class ClaimMetrics:
    """What the controller counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._creates = Counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests, by creation status",
            ("status",),
            registry=registry,
        )
        self._deallocations = Counter(
            "earmark_claimcontroller_deallocations_total",
            "Number of allocations that were cleared",
            registry=registry,
        )

    def created(self, *, success: bool) -> None:
        """A claim was created, or could not be."""
        self._creates.labels("success" if success else "failure").inc()

    def deallocated(self) -> None:
        """An allocation was cleared."""
        self._deallocations.inc()
