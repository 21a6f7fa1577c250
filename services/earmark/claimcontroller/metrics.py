"""The controller's metrics, with upstream's names (upstream C7)."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from earmark.kube.objects import ResourceClaim
from earmark.kube.wellknown import EXTENDED_RESOURCE_CLAIM, POD_CLAIM_NAME


class ClaimGauge(Collector):
    """Counts the claims by what they are, whenever somebody looks."""

    def __init__(self, claims: Callable[[], Iterable[ResourceClaim]]) -> None:
        self._claims = claims

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the number of claims by state, access and origin."""
        family = GaugeMetricFamily(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims, by allocation status, admin access and source",
            labels=("allocated", "admin_access", "source"),
        )
        tally = Tally(_labels(claim) for claim in self._claims())
        for labels in sorted(tally):
            family.add_metric(labels, tally[labels])
        yield family


def _labels(claim: ResourceClaim) -> tuple[str, str, str]:
    annotations = claim.metadata.annotations
    source = ""
    if POD_CLAIM_NAME in annotations:
        source = "resource_claim_template"
    elif annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
        source = "extended_resource"
    admin = any(
        request.exactly is not None and bool(request.exactly.admin_access) for request in claim.spec.devices.requests
    )
    return (str(claim.status.allocation is not None).lower(), str(admin).lower(), source)


class ClaimMetrics:
    """What the controller counts."""

    def __init__(self, registry: CollectorRegistry, claims: Callable[[], Iterable[ResourceClaim]]) -> None:
        registry.register(ClaimGauge(claims))
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
