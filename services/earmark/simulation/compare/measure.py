"""What a run has cost, read off its log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from earmark.simulation.cluster import display
from earmark.simulation.compare.promises import Book, Decision
from earmark.simulation.report import Eviction, LogEntry, Outcome


@dataclass(frozen=True, slots=True)
class Figures:
    """One run in numbers; seconds are virtual."""

    evictions: int
    # Evictions by a preemptor that had evicted somebody before.
    second_evictions: int
    # Preemptors from which a pod of at most their priority took what their victims had gone for.
    stolen: int
    # Between the end of a device's last user and the binding of its next one, after the first eviction.
    idle_device_seconds: float
    # From its creation to its binding, of each preemptor that was bound, in their order.
    times_to_schedule: tuple[float, ...]
    # Preemptors that exist at the end and are not bound.
    pending: int

    @property
    def mean_time(self) -> float | None:
        """The mean time to schedule; None if no preemptor was bound."""
        times = self.times_to_schedule
        return sum(times) / len(times) if times else None


def figures(outcome: Outcome, book: Book) -> Figures:
    """Return a run's figures."""
    preemptors = list(dict.fromkeys(display(item.preemptor.namespace, item.preemptor.name) for item in book.decisions))
    created = _first(outcome.log, "created", "object")
    bound = _first(outcome.log, "bound", "pod")
    times = [bound[name] - created[f"Pod/{name}"] for name in preemptors if name in bound and f"Pod/{name}" in created]
    return Figures(
        evictions=len(outcome.evictions),
        second_evictions=_second(outcome.evictions, book.decisions),
        stolen=book.stolen,
        idle_device_seconds=_idle(outcome.log, min((item.at for item in outcome.evictions), default=float("inf"))),
        times_to_schedule=tuple(times),
        pending=sum(1 for name in preemptors if name in outcome.pods and outcome.pods[name].node is None),
    )


def _first(log: Iterable[LogEntry], event: str, key: str) -> dict[str, float]:
    moments: dict[str, float] = {}
    for entry in log:
        if entry.event == event and key in entry.details:
            moments.setdefault(str(entry.details[key]), entry.at)
    return moments


def _second(evictions: Iterable[Eviction], decisions: Sequence[Decision]) -> int:
    """Count evictions whose decision was not the first of its preemptor that evicted anybody."""
    first: dict[str, int] = {}
    count = 0
    for eviction in evictions:
        made = next((item for item in reversed(decisions) if eviction.uid in item.victims), None)
        if made is None:
            continue
        count += first.setdefault(made.preemptor.uid, made.generation) != made.generation
    return count


def _idle(log: Iterable[LogEntry], since: float) -> float:
    """Return the device-seconds between users, from `since` on."""
    devices: dict[str, tuple[str, ...]] = {}
    claims: dict[str, dict[str, None]] = {}
    running: dict[str, dict[str, None]] = {}
    free_since: dict[str, float] = {}
    idle = 0.0
    for entry in log:
        details = entry.details
        match entry.event:
            case "allocated":
                devices[details["claim"]] = tuple(details["devices"])
            case "reserved":
                claims.setdefault(details["pod"], {})[details["claim"]] = None
            case "bound":
                pod = details["pod"]
                for device in _of(pod, claims, devices):
                    running.setdefault(device, {})[pod] = None
                    begun = free_since.pop(device, None)
                    if begun is not None and entry.at > since:
                        idle += entry.at - max(begun, since)
            case "deleted" if str(details["object"]).startswith("Pod/"):
                pod = str(details["object"]).removeprefix("Pod/")
                for device in _of(pod, claims, devices):
                    users = running.get(device, {})
                    users.pop(pod, None)
                    if not users:
                        free_since.setdefault(device, entry.at)
                claims.pop(pod, None)
    return idle


def _of(pod: str, claims: dict[str, dict[str, None]], devices: dict[str, tuple[str, ...]]) -> list[str]:
    return [device for claim in claims.get(pod, {}) for device in devices.get(claim, ())]
