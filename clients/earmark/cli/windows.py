"""Settling windows as lines, with a bar a phase, and which of them somebody wants to see. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from earmark.cli.moments import full, moment, seconds_text
from earmark.v1 import common_pb2, settlement_pb2

_LABEL, _LONGEST_BAR = 44, 40


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; an empty text admits everything. Pods are NAME or NAMESPACE/NAME."""

    pod: str = ""
    node: str = ""
    victim: str = ""
    preemptor: str = ""
    namespace: str = ""

    def admits(self, window: settlement_pb2.Settlement) -> bool:
        """Whether a window is asked for."""
        victims = [victim.pod for victim in window.victims]
        everybody = [window.preemptor, *victims]
        return (
            self.node in ("", window.node_name)
            and (not self.namespace or any(pod.namespace == self.namespace for pod in everybody))
            and _named(self.pod, everybody)
            and _named(self.victim, victims)
            and _named(self.preemptor, [window.preemptor])
        )


def _named(name: str, pods: list[common_pb2.PodReference]) -> bool:
    return not name or any(name in (pod.name, _name(pod)) for pod in pods)


def _name(pod: common_pb2.PodReference) -> str:
    return f"{pod.namespace}/{pod.name}"


@dataclass(frozen=True, slots=True)
class _Phase:
    text: str
    start: datetime
    # None: it goes on.
    end: datetime | None


def lines(window: settlement_pb2.Settlement, now: datetime, width: int) -> Iterator[str]:
    """Say who was preempted for whom, then each phase with its length; `width` is that of the terminal."""
    t0 = moment(window.t0)
    victims = ", ".join(_name(victim.pod) for victim in window.victims) or "nobody"
    state = window.outcome or "open"
    yield f"{full(t0)}  {_name(window.preemptor)} on node {window.node_name}: {state}"
    yield f"  preempted: {victims}"
    if window.devices:
        yield f"  held: {', '.join(window.devices)}"
    phases = list(_phases(window))
    ends = [phase.end or now for phase in phases]
    last = max(ends, default=t0)
    whole = max(0.001, (last - t0).total_seconds())
    room = max(10, min(_LONGEST_BAR, width - _LABEL - 16))
    for phase, end in zip(phases, ends, strict=True):
        offset = min(room - 1, int((phase.start - t0).total_seconds() / whole * room))
        length = max(1, min(room - offset, round((end - phase.start).total_seconds() / whole * room)))
        bar = " " * offset + "█" * length + " " * (room - offset - length)
        open_ = " ..." if phase.end is None else ""
        seconds = seconds_text(max(0.0, (end - phase.start).total_seconds()))
        yield f"  {_fitted(phase.text)} {bar} {seconds}{open_}"
    yield ""


def _phases(window: settlement_pb2.Settlement) -> Iterator[_Phase]:
    t0 = moment(window.t0)
    ended = moment(window.t4) if window.HasField("t4") else None
    for victim in window.victims:
        gone = moment(victim.gone) if victim.HasField("gone") else None
        if gone is not None or not window.outcome:
            yield _Phase(f"t0-t1 {victim.pod.name} terminates", t0, gone)
    t1 = moment(window.t1) if window.HasField("t1") else None
    for claim in window.claims:
        freed = moment(claim.deallocated) if claim.HasField("deallocated") else None
        if t1 is not None and (freed is not None or not window.outcome):
            yield _Phase(f"t1-t3 claim {claim.name}", min(t1, freed) if freed is not None else t1, freed)
    if window.HasField("t3") and t1 is not None:
        free = max(t1, moment(window.t3))
        if ended is not None or not window.outcome:
            yield _Phase("t3-t4 free, and held", free, ended)


def _fitted(text: str) -> str:
    width = _LABEL - 4
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def as_data(window: settlement_pb2.Settlement) -> dict[str, object]:
    """Return a window as JSON data."""

    def at(name: str) -> str | None:
        return moment(getattr(window, name)).isoformat() if window.HasField(name) else None  # type: ignore[arg-type]

    return {
        "preemptor": _name(window.preemptor),
        "preemptorUid": window.preemptor.uid,
        "node": window.node_name,
        "generation": window.generation,
        "phase": settlement_pb2.SettlementPhase.Name(window.phase).removeprefix("SETTLEMENT_PHASE_").lower(),
        "outcome": window.outcome or None,
        "victims": [
            {
                "pod": _name(victim.pod),
                "uid": victim.pod.uid,
                "gone": moment(victim.gone).isoformat() if victim.HasField("gone") else None,
            }
            for victim in window.victims
        ],
        "claims": [
            {
                "claim": f"{claim.namespace}/{claim.name}",
                "uid": claim.uid,
                "deallocated": moment(claim.deallocated).isoformat() if claim.HasField("deallocated") else None,
            }
            for claim in window.claims
        ],
        "devices": list(window.devices),
        **{name: at(name) for name in ("t0", "t1", "t3", "t4")},
        "traceId": window.trace_id,
    }
