"""Whether a nominated pod may preempt again (KEP: Deferring further preemption; E81 to E88)."""

from __future__ import annotations

from earmark.dynamicresources.claims import UnresolvedClaim, resolve
from earmark.dynamicresources.state import World
from earmark.dynamicresources.statuses import STILL_DEALLOCATING


def eligible_to_preempt(
    world: World, pod_uid: str, node: str, *, defer_pods_without_claims: bool = False
) -> tuple[bool, str]:
    """Return whether the pod nominated on the node may start a preemption and, if not, why.

    Any victim claim of the node counts, whoever caused it (E85). A pod that has no claim to allocate does not wait for
    devices (F26), unless `defer_pods_without_claims` asks for the KEP's literal rule.
    """
    if not world.victim_claims.on(node):
        return True, ""
    if not defer_pods_without_claims and not _has_claim_to_allocate(world, pod_uid):
        return True, ""
    return False, STILL_DEALLOCATING


def _has_claim_to_allocate(world: World, pod_uid: str) -> bool:
    pod = world.pods.get(pod_uid)
    if pod is None or not pod.entries:
        return False
    try:
        claims = resolve(pod, world.claim)
    except UnresolvedClaim:
        # It wants devices; which, will be known when its claims are (F2: a transient rejection loses no nomination).
        return True
    return any(claim.status.allocation is None for claim in claims)
