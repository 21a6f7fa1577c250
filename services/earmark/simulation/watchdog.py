"""Asks the invariants: those about the API after every change, those across services at the end of every instant."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from earmark.kube import objects
from earmark.simulation.invariants.base import Broken
from earmark.simulation.invariants.devices import over_allocation
from earmark.simulation.invariants.evictions import preempted_twice, too_important
from earmark.simulation.invariants.nominations import ClaimNomination, orphaned
from earmark.simulation.invariants.pods import bound_without_claims
from earmark.simulation.observe import Effect
from earmark.simulation.recorder import Recorder
from earmark.simulation.report import Violation
from earmark.simulation.store import CLIENT as SCENARIO


@dataclass(frozen=True, slots=True)
class Nominations:
    """What dynamicresources holds and what the framework has nominated; only where both run and know each other."""

    held: tuple[ClaimNomination, ...]
    # Node by pod UID.
    nominator: dict[str, str]
    # UIDs of pods that are being scheduled or bound.
    in_cycle: frozenset[str]


class Watchdog:
    """Collects violations, each fault once for as long as it lasts."""

    def __init__(self, now: Callable[[], float], *, staleness: float = 0.0) -> None:
        """Date violations by `now`; forgive nominations of pods that went less than `staleness` seconds ago."""
        self.violations: list[Violation] = []
        self._now = now
        self._staleness = staleness
        self._standing: dict[str, dict[tuple[str, str], None]] = {}

    def changed(self, effect: Effect, recorder: Recorder) -> None:
        """Look at the API after a change of an object."""
        value = effect.after if effect.after is not None else effect.before
        # What the scenario itself does to slices, claims and pods is not the services' fault.
        by_hand = effect.request is not None and effect.request.client == SCENARIO
        if isinstance(value, objects.ResourceClaim | objects.ResourceSlice):
            self._look("devices", over_allocation(recorder.cluster), forgive=by_hand)
        if isinstance(value, objects.ResourceClaim | objects.Pod):
            found = bound_without_claims(recorder.cluster, recorder.placed_by_hand)
            self._look("pods", found, forgive=by_hand)

    def evicted(self, recorder: Recorder) -> None:
        """Look at the evictions after one more."""
        self._look("twice", preempted_twice(recorder.evictions))

    def preempting(self, recorder: Recorder) -> None:
        """Look at who was chosen for whom after one more preemption."""
        self._look("priority", too_important(recorder.preemptions))

    def settled(self, seen: Nominations | None, recorder: Recorder) -> None:
        """Look across services at the end of an instant; None: they cannot be compared now."""
        if seen is None:
            self._standing.pop("nominations", None)
            return
        since = self._now() - self._staleness
        live = {pod.metadata.uid for pod in recorder.cluster.pods.values() if not pod.terminal}
        if self._staleness:
            live |= {uid for uid, at in recorder.gone.items() if at >= since}
        self._look("nominations", orphaned(seen.held, seen.nominator, live, seen.in_cycle))

    def report(self, broken: Iterable[Broken]) -> None:
        """Take in faults that were found elsewhere."""
        for fault in broken:
            self._add(fault)

    def _look(self, about: str, found: Iterable[Broken], *, forgive: bool = False) -> None:
        known = self._standing.get(about, {})
        now: dict[tuple[str, str], None] = {}
        for fault in found:
            key = (fault.invariant, fault.subject)
            now[key] = None
            if key not in known and not forgive:
                self._add(fault)
        self._standing[about] = now

    def _add(self, fault: Broken) -> None:
        self.violations.append(Violation(self._now(), fault.invariant, fault.detail))
