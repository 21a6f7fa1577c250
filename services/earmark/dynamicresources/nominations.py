"""Claim nominations: per preemptor the node and the allocation results that are held for it.

proposed -> confirmed -> assigned -> gone (KEP: Claim nomination; F8). A proposal holds at once; the nomination it is to
replace stays until the proposal is confirmed. What releases capacity and whom that wakes is decided elsewhere.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from earmark.dynamicresources.claims import ClaimKey, device_names
from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.victimclaims import Owner
from earmark.kube.objects import AllocationResult


class Phase(enum.IntEnum):
    """The numbers are the contract's."""

    PROPOSED = 1
    CONFIRMED = 2
    # The pod is assumed: the in-flight allocation has taken the hold's place.
    ASSIGNED = 3


@dataclass(frozen=True, slots=True)
class HeldResult:
    """What is held for one claim of the preemptor; keyed by the claim's UID (F24)."""

    claim_uid: str
    key: ClaimKey
    allocation: AllocationResult


@dataclass(frozen=True, slots=True)
class ClaimNomination:
    """One nomination."""

    pod: PodRef
    node: str
    generation: int
    priority: int
    results: tuple[HeldResult, ...]
    victims: tuple[PodRef, ...]
    phase: Phase = Phase.PROPOSED
    # When the preemption was decided; the settling window begins then.
    at: datetime | None = None

    @property
    def owner(self) -> Owner:
        """How victim claims name it."""
        return Owner(self.pod.uid, self.generation)

    @property
    def devices(self) -> tuple[str, ...]:
        """ "DRIVER/POOL/DEVICE" of every held result."""
        return tuple(name for held in self.results for name in device_names(held.allocation))

    def result_for(self, claim_uid: str) -> AllocationResult | None:
        """Return what is held for a claim."""
        for held in self.results:
            if held.claim_uid == claim_uid:
                return held.allocation
        return None


@dataclass(frozen=True, slots=True)
class Nominations:
    """All nominations, by the preemptor's UID. Immutable."""

    live: Mapping[str, ClaimNomination] = field(default_factory=dict)
    proposed: Mapping[str, ClaimNomination] = field(default_factory=dict)
    highest_generation: int = 0

    def get(self, pod_uid: str) -> ClaimNomination | None:
        """Return the pod's newest nomination, whatever its phase."""
        return self.proposed.get(pod_uid) or self.live.get(pod_uid)

    def holding(self, pod_uid: str, node: str) -> ClaimNomination | None:
        """Return the nomination by which the pod holds capacity on the node; None once it is assigned."""
        found = self.get(pod_uid)
        if found is None or found.node != node or found.phase is Phase.ASSIGNED:
            return None
        return found

    def all(self) -> tuple[ClaimNomination, ...]:
        """Return every nomination, by generation; a proposal stands beside what it would replace."""
        return tuple(
            sorted((*self.live.values(), *self.proposed.values()), key=lambda item: (item.generation, item.pod.uid))
        )

    def propose(self, item: ClaimNomination) -> Nominations:
        """Return the record with a proposal; an older proposal of the pod is replaced."""
        return Nominations(
            self.live,
            {**self.proposed, item.pod.uid: replace(item, phase=Phase.PROPOSED)},
            max(self.highest_generation, item.generation),
        )

    def confirm(self, pod_uid: str, generation: int) -> tuple[Nominations, ClaimNomination | None]:
        """Make the proposal the nomination; return the record and the nomination that it replaced (E46).

        Another generation than the proposal's changes nothing: a repeated call, or one that came late.
        """
        item = self.proposed.get(pod_uid)
        if item is None or item.generation != generation:
            return self, None
        old = self.live.get(pod_uid)
        live = {**_without(self.live, pod_uid), pod_uid: replace(item, phase=Phase.CONFIRMED)}
        return Nominations(live, _without(self.proposed, pod_uid), self.highest_generation), old

    def restore(self, item: ClaimNomination) -> Nominations:
        """Return the record with a nomination that was confirmed before."""
        live = {**_without(self.live, item.pod.uid), item.pod.uid: replace(item, phase=Phase.CONFIRMED)}
        return Nominations(live, self.proposed, max(self.highest_generation, item.generation))

    def seen_generation(self, generation: int) -> Nominations:
        """Return the record that knows of a generation."""
        if generation <= self.highest_generation:
            return self
        return Nominations(self.live, self.proposed, generation)

    def assign(self, pod_uid: str) -> Nominations:
        """The pod is assumed: its nomination does not hold any more (F8). Proposals of the pod go."""
        item = self.live.get(pod_uid)
        live = self.live if item is None else {**self.live, pod_uid: replace(item, phase=Phase.ASSIGNED)}
        return Nominations(live, _without(self.proposed, pod_uid), self.highest_generation)

    def unassign(self, pod_uid: str) -> Nominations:
        """The pod is not assumed any more and is nominated as before: the nomination holds again."""
        item = self.live.get(pod_uid)
        if item is None or item.phase is not Phase.ASSIGNED:
            return self
        live = {**self.live, pod_uid: replace(item, phase=Phase.CONFIRMED)}
        return Nominations(live, self.proposed, self.highest_generation)

    def drop_proposal(self, pod_uid: str) -> tuple[Nominations, ClaimNomination | None]:
        """Drop the pod's proposal; return the record and what was dropped."""
        item = self.proposed.get(pod_uid)
        if item is None:
            return self, None
        return Nominations(self.live, _without(self.proposed, pod_uid), self.highest_generation), item

    def remove(self, pod_uid: str, generation: int | None) -> tuple[Nominations, tuple[ClaimNomination, ...]]:
        """Remove the pod's nominations that are not newer than `generation` (all if None); return what went (F9)."""
        gone: list[ClaimNomination] = []
        live, proposed = self.live, self.proposed
        for item in (live.get(pod_uid), proposed.get(pod_uid)):
            if item is None or (generation is not None and item.generation > generation):
                continue
            gone.append(item)
            if item.phase is Phase.PROPOSED:
                proposed = _without(proposed, pod_uid)
            else:
                live = _without(live, pod_uid)
        return Nominations(live, proposed, self.highest_generation), tuple(gone)


def _without(items: Mapping[str, ClaimNomination], uid: str) -> Mapping[str, ClaimNomination]:
    return {key: value for key, value in items.items() if key != uid} if uid in items else items
