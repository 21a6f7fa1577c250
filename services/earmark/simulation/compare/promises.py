"""What each preemption was made for, whatever the mode does with it: the measure by which theft is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from earmark.dynamicresources.core import Core
from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.happened import Happened
from earmark.dynamicresources.nominating import Proposal, Proposed, Removal, results_free
from earmark.dynamicresources.nominations import ClaimNomination
from earmark.dynamicresources.reserving import uses_exactly
from earmark.dynamicresources.solving import Solver
from earmark.dynamicresources.state import Reservation, World


@dataclass(frozen=True, slots=True)
class Decision:
    """A preemption that was decided."""

    preemptor: PodRef
    generation: int
    victims: tuple[str, ...]


@dataclass(slots=True)
class Book:
    """The decisions of a run, and the devices that were taken from preemptors."""

    decisions: list[Decision] = field(default_factory=list)
    stolen: int = 0
    # By the preemptor's UID: what its victims went for.
    open: dict[str, ClaimNomination] = field(default_factory=dict)
    _free: dict[str, bool] = field(default_factory=dict)
    _reserved: frozenset[str] = frozenset()

    def decided(self, proposal: Proposal, nomination: ClaimNomination | None) -> None:
        """Note a decision; what an earlier one of the pod was for is of no interest any more."""
        uid = proposal.pod.uid
        victims = tuple(victim.uid for victim in proposal.victims)
        self.decisions.append(Decision(proposal.pod.ref, proposal.generation, victims))
        self.open.pop(uid, None)
        self._free.pop(uid, None)
        if nomination is not None and nomination.results:
            self.open[uid] = nomination

    def given_up(self, pod_uid: str) -> None:
        """The preemption came to nothing, or the pod does not need it any more."""
        self.open.pop(pod_uid, None)
        self._free.pop(pod_uid, None)

    def look(self, world: World, solver: Solver) -> None:
        """See who has taken what since the last look.

        A device is stolen when a pod of at most the preemptor's priority reserves something, and what was free for the
        preemptor before is not free after. Who takes what its own victims went for is no thief: shares of one device
        are alike.
        """
        newcomers = [uid for uid in world.reservations if uid not in self._reserved]
        self._reserved = frozenset(world.reservations)
        thieves = [uid for uid in newcomers if not self._is_its_own(world.reservations[uid])]
        for uid in newcomers:
            self.given_up(uid)
        for uid, nomination in [*self.open.items()]:
            before, now = self._free.get(uid, False), results_free(world, nomination, solver)
            self._free[uid] = now
            if before and not now and any(_priority(world, other) <= nomination.priority for other in thieves):
                self.stolen += 1
                self.given_up(uid)

    def _is_its_own(self, reservation: Reservation) -> bool:
        promised = self.open.get(reservation.pod.uid)
        return promised is not None and uses_exactly(promised, reservation.node, reservation.allocations)


def _priority(world: World, pod_uid: str) -> int:
    pod = world.pods.get(pod_uid)
    return 0 if pod is None else pod.priority


class Keeping(Core):
    """A core that keeps the book."""

    book: Book

    def keep(self, book: Book) -> None:
        """Write into this book from now on."""
        self.book = book
        self.listen(self._look)

    def _look(self, world: World, happened: tuple[Happened, ...]) -> None:
        self.book.look(world, self._solver)

    def promise(self, proposal: Proposal, answer: Proposed) -> None:
        """Note what a preemption is decided for."""
        if answer.status.success and hasattr(self, "book"):
            self.book.decided(proposal, answer.nomination)

    def add_nominated_pod(self, proposal: Proposal) -> Proposed:
        """Propose as the product does, and note it."""
        answer = super().add_nominated_pod(proposal)
        self.promise(proposal, answer)
        return answer

    def remove_nominated_pod(
        self, pod_uid: str, generation: int | None, reason: Removal, victims_not_deleted: object
    ) -> None:
        """Remove as the product does; a preemption that failed promises nothing."""
        super().remove_nominated_pod(pod_uid, generation, reason, victims_not_deleted)  # type: ignore[arg-type]
        if reason in (Removal.EXECUTION_FAILED, Removal.POD_DELETED) and hasattr(self, "book"):
            self.book.given_up(pod_uid)
