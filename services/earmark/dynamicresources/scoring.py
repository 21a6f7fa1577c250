"""Score: nodes where higher-ranked alternatives of a request were allocated are better (upstream C1 to C9)."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.cycles import Cycle
from earmark.kube.objects import AllocationResult, ResourceClaim

_ALTERNATIVES = 8
_MAX_SCORE = 100


def score(cycle: Cycle, nodes: Sequence[str]) -> list[int]:
    """Return a score from 0 to 100 per node: the best node of those asked for gets 100 (upstream C6)."""
    raw = [_raw(cycle, node) for node in nodes]
    best = max(raw, default=0)
    return [value * _MAX_SCORE // best for value in raw] if best > 0 else raw


def _raw(cycle: Cycle, node: str) -> int:
    fit = cycle.results.get(node)
    if fit is None:
        return 0
    if not any(request.first_available for claim in cycle.claims for request in claim.spec.devices.requests):
        return 0
    results = fit.results
    total = 0
    for claim in cycle.claims:
        allocation = claim.status.allocation or results.get(claim.metadata.uid)
        if allocation is not None:
            total += _rank(claim, allocation)
    return total


def _rank(claim: ResourceClaim, allocation: AllocationResult) -> int:
    chosen = {result.request for result in allocation.devices.results}
    total = 0
    for request in claim.spec.devices.requests:
        for index, alternative in enumerate(request.first_available):
            if f"{request.name}/{alternative.name}" in chosen:
                total += _ALTERNATIVES - index
                break
    return total
