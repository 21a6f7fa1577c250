"""What a change of the plugin's state means to those who wait for it: the effects of the state's transitions."""

from __future__ import annotations

from dataclasses import dataclass

from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.nominations import ClaimNomination
from earmark.dynamicresources.victimclaims import VictimClaim
from earmark.kube.objects import ResourceClaim


@dataclass(frozen=True, slots=True)
class ClaimChanged:
    """A claim came (old is None), changed, or went (new is None). `settled`: victim claims that this has settled."""

    old: ResourceClaim | None
    new: ResourceClaim | None
    settled: tuple[VictimClaim, ...] = ()

    @property
    def claim(self) -> ResourceClaim:
        """The newest that is known of the claim."""
        value = self.new if self.new is not None else self.old
        assert value is not None
        return value

    @property
    def deallocated(self) -> bool:
        """Whether an allocation went away."""
        before = self.old is not None and self.old.status.allocation is not None
        return before and (self.new is None or self.new.status.allocation is None)


@dataclass(frozen=True, slots=True)
class HoldReleased:
    """A nomination holds no more. `free`: some of what it held can be had now (F33: the synthetic event of the KEP)."""

    nomination: ClaimNomination
    reason: str
    free: bool


@dataclass(frozen=True, slots=True)
class NominationRecorded:
    """A nomination is confirmed. `settled`: none of its node's victim claims is left to wait for (F13)."""

    nomination: ClaimNomination
    victim_claims: tuple[VictimClaim, ...]
    settled: bool
    restored: bool = False


@dataclass(frozen=True, slots=True)
class NominationEnded:
    """A confirmed nomination is gone."""

    nomination: ClaimNomination
    reason: str


@dataclass(frozen=True, slots=True)
class ReservationReleased:
    """A pod gave up what it had reserved; `settled` are victim claims that were only in flight."""

    pod: PodRef
    in_flight: tuple[str, ...]
    settled: tuple[VictimClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanUpFinished:
    """What an earlier attempt of a pod had written is taken back: the pod may be tried again."""

    pod: PodRef


@dataclass(frozen=True, slots=True)
class VictimClaimsForgotten:
    """Victim claims that will not come free: their victims were not deleted, or somebody else uses them (F15)."""

    claims: tuple[VictimClaim, ...]


@dataclass(frozen=True, slots=True)
class DevicesChanged:
    """A ResourceSlice, DeviceClass or DeviceTaintRule came or changed."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class PodChanged:
    """A pod came (old is None), changed, or went (new is None)."""

    old: PodFacts | None
    new: PodFacts | None


Happened = (
    ClaimChanged
    | HoldReleased
    | NominationRecorded
    | NominationEnded
    | ReservationReleased
    | CleanUpFinished
    | VictimClaimsForgotten
    | DevicesChanged
    | PodChanged
)
