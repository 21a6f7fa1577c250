"""Settling windows: from t0, when victims are deleted, to t4, when the preemptor is scheduled (KEP: settling).

Pure: (windows, what happened, now) -> changed windows.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from earmark.dynamicresources.claims import ClaimKey
from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.happened import (
    ClaimChanged,
    Happened,
    NominationEnded,
    NominationRecorded,
    PodChanged,
    ReservationReleased,
    VictimClaimsForgotten,
)
from earmark.dynamicresources.victimclaims import VictimClaim

WindowKey = tuple[str, int]
"""The preemptor's UID and the generation."""


class Phase(enum.IntEnum):
    """The numbers are the contract's."""

    TERMINATING = 1
    DEALLOCATING = 2
    HELD = 3
    ENDED = 4


@dataclass(frozen=True, slots=True)
class WindowVictim:
    """A victim and when it was gone."""

    pod: PodRef
    gone: datetime | None = None


@dataclass(frozen=True, slots=True)
class WindowClaim:
    """A victim claim and when it was deallocated."""

    key: ClaimKey
    uid: str
    deallocated: datetime | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """One settling window."""

    preemptor: PodRef
    node: str
    generation: int
    victims: tuple[WindowVictim, ...]
    claims: tuple[WindowClaim, ...]
    devices: tuple[str, ...]
    t0: datetime
    t4: datetime | None = None
    ended: datetime | None = None
    outcome: str = ""

    @property
    def key(self) -> WindowKey:
        """What it is found by."""
        return (self.preemptor.uid, self.generation)

    @property
    def t1(self) -> datetime | None:
        """When the last victim was gone; None while one is there."""
        return _last([victim.gone for victim in self.victims], self.t0)

    @property
    def t3(self) -> datetime | None:
        """When the last victim claim was deallocated; None while one is allocated."""
        return _last([claim.deallocated for claim in self.claims], self.t0)

    @property
    def phase(self) -> Phase:
        """Where the window stands."""
        if self.ended is not None:
            return Phase.ENDED
        if self.t1 is None:
            return Phase.TERMINATING
        return Phase.DEALLOCATING if self.t3 is None else Phase.HELD


def _last(moments: list[datetime | None], start: datetime) -> datetime | None:
    known = [moment for moment in moments if moment is not None]
    return max([start, *known]) if len(known) == len(moments) else None


@dataclass(frozen=True, slots=True)
class WindowChange:
    """A window before and after; `before` is None when it opens."""

    before: Window | None
    after: Window


class Windows:
    """The newest windows, open and ended."""

    def __init__(self, kept: int) -> None:
        """Keep at most `kept` windows; the oldest that has ended goes first."""
        self._kept = kept
        self._windows: dict[WindowKey, Window] = {}

    def all(self) -> tuple[Window, ...]:
        """Return the windows, oldest first."""
        return tuple(self._windows.values())

    def restore(self, windows: Iterable[Window]) -> None:
        """Put ended windows of an earlier process before those of this one, which know better of the same key."""
        earlier = {window.key: window for window in sorted(windows, key=lambda item: (item.t0, item.generation))}
        self._windows = {key: window for key, window in earlier.items() if key not in self._windows} | self._windows
        self._trim()

    def apply(self, event: Happened, pods: Mapping[str, bool], now: datetime) -> list[WindowChange]:
        """Take in what happened; return the windows that this changed.

        pods: UID -> True for those of the opening window's victims that are there still.
        """
        match event:
            case NominationRecorded():
                return self._open(event, pods, now)
            case NominationEnded():
                return self._end(event, now)
            case PodChanged(old, None) if old is not None:
                return self._each_open(lambda window: _victim_gone(window, old.uid, now))
            case PodChanged(_, new) if new is not None and new.finished:
                return self._each_open(lambda window: _victim_gone(window, new.uid, now))
            case ClaimChanged() | ReservationReleased() if event.settled:
                return self._each_open(lambda window: _deallocated(window, event.settled, now))
            case VictimClaimsForgotten():
                return self._each_open(lambda window: _forgotten(window, event.claims))
            case _:
                return []

    def _open(self, event: NominationRecorded, pods: Mapping[str, bool], now: datetime) -> list[WindowChange]:
        nomination = event.nomination
        start = nomination.at if nomination.at is not None else now
        # Of a nomination that was restored nobody has seen when its victims went: by now they are gone.
        gone = now if event.restored else start
        window = Window(
            preemptor=nomination.pod,
            node=nomination.node,
            generation=nomination.generation,
            victims=tuple(
                WindowVictim(victim, None if pods.get(victim.uid, False) else gone) for victim in nomination.victims
            ),
            claims=tuple(WindowClaim(item.key, item.uid) for item in event.victim_claims),
            devices=nomination.devices,
            t0=start,
        )
        self._windows[window.key] = window
        self._trim()
        return [WindowChange(None, window)]

    def _end(self, event: NominationEnded, now: datetime) -> list[WindowChange]:
        old = self._windows.get((event.nomination.pod.uid, event.nomination.generation))
        if old is None or old.ended is not None:
            return []
        scheduled = event.reason == "scheduled"
        new = replace(old, ended=now, t4=now if scheduled else None, outcome=event.reason)
        self._windows[new.key] = new
        return [WindowChange(old, new)]

    def _each_open(self, change: Callable[[Window], Window]) -> list[WindowChange]:
        changes = []
        for key, old in self._windows.items():
            if old.ended is not None:
                continue
            new = change(old)
            if new is not old:
                self._windows[key] = new
                changes.append(WindowChange(old, new))
        return changes

    def _trim(self) -> None:
        while len(self._windows) > self._kept:
            ended = next((key for key, window in self._windows.items() if window.ended is not None), None)
            self._windows.pop(ended if ended is not None else next(iter(self._windows)))


def _victim_gone(window: Window, uid: str, now: datetime) -> Window:
    if not any(victim.pod.uid == uid and victim.gone is None for victim in window.victims):
        return window
    victims = tuple(
        replace(victim, gone=now) if victim.pod.uid == uid and victim.gone is None else victim
        for victim in window.victims
    )
    return replace(window, victims=victims)


def _deallocated(window: Window, settled: tuple[VictimClaim, ...], now: datetime) -> Window:
    uids = [item.uid for item in settled if item.node == window.node]
    if not any(claim.uid in uids and claim.deallocated is None for claim in window.claims):
        return window
    claims = tuple(
        replace(claim, deallocated=now) if claim.uid in uids and claim.deallocated is None else claim
        for claim in window.claims
    )
    return replace(window, claims=claims)


def _forgotten(window: Window, forgotten: tuple[VictimClaim, ...]) -> Window:
    uids = [item.uid for item in forgotten if item.node == window.node]
    claims = tuple(claim for claim in window.claims if claim.uid not in uids or claim.deallocated is not None)
    return window if len(claims) == len(window.claims) else replace(window, claims=claims)
