"""Sleepers and the numbered log of wake-ups; events that open cycles have not seen yet.

Mutable bookkeeping without clock, network or tasks. What an event means for a pod is hints.py's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.happened import (
    ClaimChanged,
    CleanUpFinished,
    DevicesChanged,
    Happened,
    HoldReleased,
    NominationEnded,
    NominationRecorded,
    PodChanged,
    ReservationReleased,
    VictimClaimsForgotten,
)
from earmark.dynamicresources.hints import Hint

# A framework that was away for longer than this many wake-ups is told to retry all its sleepers.
KEPT_WAKE_UPS = 4096
# A cycle that is open for longer than this many events is answered "queue".
KEPT_EVENTS = 16384


@dataclass(frozen=True, slots=True)
class WakeUp:
    """Pods that may have become schedulable."""

    number: int
    pods: tuple[PodRef, ...]
    at_once: bool
    event: str
    detail: str


def describe(event: Happened) -> tuple[str, str]:
    """Return an event's name and detail, for logs and metrics."""
    match event:
        case ClaimChanged(old, new):
            verb = "Add" if old is None else "Delete" if new is None else "Update"
            return f"ResourceClaim/{verb}", "/".join(event.claim.key)
        case HoldReleased():
            return "ClaimNomination/Remove", f"{event.nomination.pod.name} on {event.nomination.node}"
        case NominationRecorded():
            return "ClaimNomination/Settled", event.nomination.node
        case NominationEnded():
            return "ClaimNomination/End", event.nomination.node
        case CleanUpFinished():
            return "Reservation/CleanUp", event.pod.name
        case ReservationReleased():
            return "Reservation/Release", event.pod.name
        case VictimClaimsForgotten():
            return "VictimClaim/Forget", ", ".join("/".join(item.key) for item in event.claims)
        case DevicesChanged(kind, name):
            return f"{kind}/Update", name
        case PodChanged():
            pod = event.new if event.new is not None else event.old
            return "TargetPod/UpdatePodGeneratedResourceClaim", pod.ref.name if pod is not None else ""


class WakeUpLog:
    """Who sleeps, and what has been sent."""

    def __init__(self) -> None:
        self._number = 0
        # The number at the beginning of the scheduler's session.
        self._begun = 0
        self._sent: deque[WakeUp] = deque(maxlen=KEPT_WAKE_UPS)
        self._sleepers: dict[str, PodRef] = {}
        self._events: deque[tuple[int, Happened]] = deque(maxlen=KEPT_EVENTS)
        self._forgotten_up_to = 0
        self._listener: Callable[[WakeUp], None] | None = None

    @property
    def last_number(self) -> int:
        """The number of the newest wake-up; 0 if there was none."""
        return self._number

    @property
    def sleepers(self) -> tuple[PodRef, ...]:
        """The pods that sleep, in the order in which they fell asleep."""
        return tuple(self._sleepers.values())

    def listen(self, listener: Callable[[WakeUp], None] | None) -> None:
        """Send further wake-ups to this listener only; the newest connection counts."""
        self._listener = listener

    def sleep(self, pod: PodRef) -> None:
        """Remember a sleeper."""
        self._sleepers.setdefault(pod.uid, pod)

    def forget(self, pod_uid: str) -> None:
        """The pod does not sleep (any more)."""
        self._sleepers.pop(pod_uid, None)

    def forget_all(self) -> None:
        """A new scheduler session: its sleepers come with its first connection."""
        self._sleepers.clear()
        self._begun = self._number

    def wake(self, pods: Iterable[PodRef], event: str, detail: str, *, at_once: bool = False) -> None:
        """Send one wake-up for these pods, if there are any."""
        named = tuple(pods)
        if not named:
            return
        for pod in named:
            self._sleepers.pop(pod.uid, None)
        self._number += 1
        item = WakeUp(self._number, named, at_once, event, detail)
        self._sent.append(item)
        if self._listener is not None:
            self._listener(item)

    def happened(self, revision: int, event: Happened, judge: Callable[[str, Happened], Hint]) -> None:
        """Wake the sleepers that an event may concern; preemptors whose devices are there first."""
        hints = [(pod, judge(pod.uid, event)) for pod in self.sleepers]
        name, detail = describe(event)
        self.wake((pod for pod, hint in hints if hint is Hint.ACTIVATE), name, detail, at_once=True)
        self.wake((pod for pod, hint in hints if hint is Hint.QUEUE), name, detail)
        if len(self._events) == KEPT_EVENTS:
            self._forgotten_up_to = self._events[0][0]
        self._events.append((revision, event))

    def since(self, revision: int) -> tuple[Happened, ...] | None:
        """Return the events after a revision; None where not all are known any more."""
        if revision < self._forgotten_up_to:
            return None
        return tuple(event for number, event in self._events if number > revision)

    def prune(self, oldest_revision: int | None) -> None:
        """Forget events that no open cycle needs; all of them if none is open."""
        if oldest_revision is None:
            self._events.clear()
            return
        while self._events and self._events[0][0] <= oldest_revision:
            self._events.popleft()

    def connect(
        self, last_number: int, sleepers: Iterable[PodRef], at_once: Callable[[str], bool] = lambda _: False
    ) -> tuple[WakeUp, ...]:
        """Return what a framework that connects has missed, and make its sleepers known.

        Sleepers that this plugin does not know as such may have been woken unheard, or come from before its start: they
        are woken, `at_once` those of which it says so by UID. One that knows of numbers which were never sent here
        talked to an earlier process; one that has heard nothing yet is told what was sent in its session.
        """
        unknown = [pod for pod in sleepers if pod.uid not in self._sleepers]
        heard = last_number or self._begun
        missed = tuple(item for item in self._sent if item.number > heard) if heard < self._number else ()
        told = {pod.uid for item in missed for pod in item.pods}
        rest = [pod for pod in unknown if pod.uid not in told]
        urgent = [pod for pod in rest if at_once(pod.uid)]
        others = [pod for pod in rest if pod not in urgent]
        return (*missed, *self._unheard(urgent, at_once=True), *self._unheard(others, at_once=False))

    def _unheard(self, pods: Iterable[PodRef], *, at_once: bool) -> tuple[WakeUp, ...]:
        named = tuple(pods)
        if not named:
            return ()
        self._number += 1
        item = WakeUp(self._number, named, at_once, "Plugin/Connect", "")
        self._sent.append(item)
        return (item,)
