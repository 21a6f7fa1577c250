"""PostFilter: deallocate one of the pod's own claims that cannot be used where the pod could run (B10, F41)."""

from __future__ import annotations

from earmark.dynamicresources.core import Core
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.state import claim_seen
from earmark.dynamicresources.statuses import Status, error, unresolvable, unschedulable
from earmark.dynamicresources.writing import deallocation_write
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi, PatchType
from earmark.kube.objects import ResourceClaim
from earmark.runtime.component import Ids

_DEALLOCATED = "deallocation of ResourceClaim completed"


class PostFilter:
    """Chooses the claim and writes."""

    def __init__(self, api: KubeApi, ids: Ids, settings: Settings) -> None:
        """`ids` chooses among several unusable claims, as upstream does at random."""
        self._api = api
        self._ids = ids
        self._settings = settings

    async def run(self, cycle: Cycle, core: Core, *, write: bool) -> Status:
        """Deallocate at most one claim. Without `write` (a sandbox) nothing is written and nothing found.

        With the gate on a deallocation stops preemption for this attempt: it alone may cure the situation (F41).
        """
        if cycle.retry:
            # Nothing was judged: the caches were behind. Preemption would find no candidate in that, and the nomination
            # that the pod may have would be cleared for it (F2).
            return unresolvable()
        candidates = [claim for claim in map(core.world.claim_by_uid, cycle.unavailable) if claim is not None]
        candidates = [claim for claim in candidates if _only_user(claim, cycle.pod.uid)]
        if not candidates or not write:
            return unschedulable()
        claim = candidates[self._ids.below(len(candidates))] if len(candidates) > 1 else candidates[0]
        step = deallocation_write(claim)
        try:
            after = await self._api.patch(
                ResourceClaim,
                claim.metadata.name,
                claim.metadata.namespace,
                step.patch,
                subresource=step.subresource,
                patch_type=PatchType.MERGE,
            )
        except (ApiError, ApiUnavailable) as refusal:
            return error(f"{step.what}: {refusal}")
        core.commit(claim_seen(core.world, after, written=True))
        return unresolvable(_DEALLOCATED) if self._settings.preemption else unschedulable(_DEALLOCATED)


def _only_user(claim: ResourceClaim, pod_uid: str) -> bool:
    if claim.status.allocation is None:
        return False
    entries = claim.status.reserved_for
    return not entries or (len(entries) == 1 and entries[0].is_pod and entries[0].uid == pod_uid)
