"""The alternatives that the KEP rejects, each a core that differs from the product's in one decision.

KEP: Alternatives. Nothing here is reachable from the services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.core import Core
from earmark.dynamicresources.happened import Happened, PodChanged
from earmark.dynamicresources.nominating import Known, Proposal, Proposed, add_nominated_pod
from earmark.dynamicresources.nominations import HeldResult
from earmark.dynamicresources.state import World, claim_seen
from earmark.dynamicresources.statuses import SUCCESS
from earmark.dynamicresources.writing import deallocation_write
from earmark.kube.api import ApiError, ApiUnavailable, PatchType
from earmark.kube.objects import ResourceClaim
from earmark.runtime.component import Environment
from earmark.simulation.compare.promises import Keeping


class Nomination(Keeping):
    """The KEP's way, as it is."""


class NoNomination(Keeping):
    """Victims are simulated and evicted; nothing is recorded, held or awaited."""

    def add_nominated_pod(self, proposal: Proposal) -> Proposed:
        """Record nothing; only the book knows what the dry run had found."""
        answer = add_nominated_pod(self.world, proposal, self._solver)
        self.promise(proposal, answer)
        if not answer.status.success:
            return answer
        return Proposed(self.world, SUCCESS)

    def eligible_to_preempt(self, pod_uid: str, node: str) -> tuple[bool, str]:
        """Never object."""
        return True, ""

    def reconcile(self, known: Iterable[Known]) -> tuple[str, ...]:
        """Restore nothing."""
        return super().reconcile(())


class VictimsClaims(Keeping):
    """What the victims had is held as a whole until the preemptor is bound."""

    def add_nominated_pod(self, proposal: Proposal) -> Proposed:
        """Hold the victims' allocations instead of the preemptor's results."""
        answer = super().add_nominated_pod(proposal)
        if answer.nomination is None or not answer.victim_claims:
            return answer
        held = []
        for item in answer.victim_claims:
            claim = self.world.claim_by_uid(item.uid)
            allocation = self.world.allocation_of(claim) if claim is not None else None
            if allocation is not None:
                held.append(HeldResult(item.uid, item.key, allocation))
        nomination = replace(answer.nomination, results=tuple(held))
        self.commit((replace(self.world, nominations=self.world.nominations.propose(nomination)), ()))
        return replace(answer, world=self.world, nomination=nomination)


class Deallocator:
    """Deallocates victims' claims as soon as the victims are gone, in the place of the claim controller."""

    def __init__(self, component: DynamicResources, env: Environment) -> None:
        self._core = component.core
        self._env = env

    def happened(self, world: World, events: tuple[Happened, ...]) -> None:
        """Write for the claims of pods that are gone and that only they have used."""
        for event in events:
            if not isinstance(event, PodChanged) or event.new is not None or event.old is None:
                continue
            for uid in world.claims_of_consumer(event.old.uid):
                claim = world.claim_by_uid(uid)
                if claim is not None and self._is_left(world, claim):
                    self._env.tasks.spawn(self._deallocate(claim), f"deallocate {claim.metadata.name}")

    @staticmethod
    def _is_left(world: World, claim: ResourceClaim) -> bool:
        users = claim.status.reserved_for
        return all(user.resource == "pods" and user.uid not in world.pods for user in users)

    async def _deallocate(self, claim: ResourceClaim) -> None:
        step = deallocation_write(claim)
        try:
            after = await self._env.api.patch(
                ResourceClaim,
                claim.metadata.name,
                claim.metadata.namespace,
                step.patch,
                subresource=step.subresource,
                patch_type=PatchType.MERGE,
            )
        except (ApiError, ApiUnavailable):
            # The claim controller, which is slower, does it as well.
            return
        self._core.commit(claim_seen(self._core.world, after, written=True))


@dataclass(frozen=True, slots=True)
class Mode:
    """One way, with a name for tables and what makes it different."""

    name: str
    text: str
    core: type[Core]
    attach: Callable[[DynamicResources, Environment], None] = lambda component, env: None


def _deallocating(component: DynamicResources, env: Environment) -> None:
    component.core.listen(Deallocator(component, env).happened)


NOMINATION = Mode("nomination", "hold the preemptor's results, await the victims' claims (the KEP)", Nomination)
NO_NOMINATION = Mode("no-nomination", "evict, and hope", NoNomination)
VICTIMS_CLAIMS = Mode("victims-claims", "hold all that the victims had", VictimsClaims)
DEALLOCATING = Mode("deallocating", "no nomination; the scheduler deallocates itself", NoNomination, _deallocating)

MODES = (NOMINATION, NO_NOMINATION, VICTIMS_CLAIMS, DEALLOCATING)
