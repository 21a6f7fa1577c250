"""What would happen, as lines and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from earmark.cli.moments import seconds_text
from earmark.simulation.whatif import Alternative, Answer, Arrival, Victim

# Of more alternatives, or nodes of one reason, the rest is counted.
_MOST = 8


def lines(answer: Answer) -> Iterator[str]:
    """Say what becomes of each pod, who goes for it, and what other nodes would cost."""
    for arrival in answer.arrivals:
        yield from _arrival(arrival)
        yield ""
    placed = sum(1 for arrival in answer.arrivals if arrival.node)
    evicted = sum(len(arrival.evicted) for arrival in answer.arrivals)
    yield f"{placed} of {len(answer.arrivals)} pods would run; {evicted} would be evicted."
    if evicted:
        yield "This is feasible after deallocation, not a promise. Nothing was created or changed."
    else:
        yield "Nothing was created or changed."


def _arrival(arrival: Arrival) -> Iterator[str]:
    if not arrival.node:
        yield f"{arrival.pod}: would stay pending"
        if arrival.message:
            yield f"  {arrival.message}"
    else:
        devices = f" with {', '.join(arrival.devices)}" if arrival.devices else ""
        yield f"{arrival.pod}: would run on {arrival.node}{devices}"
        if not arrival.evicted:
            yield "  nobody would be evicted"
    for victim in arrival.evicted:
        yield f"  evicts {_victim(victim)}"
    if arrival.settled_seconds is not None:
        yield f"  it would wait {seconds_text(arrival.settled_seconds)} for the devices, as far as can be emulated"
    chosen = [victim.pod for victim in arrival.evicted]
    others = [item for item in arrival.alternatives if [victim.pod for victim in item.victims] != chosen]
    for item in others[:_MOST]:
        yield f"  alternative {_cost(item)}"
    if len(others) > _MOST:
        yield f"  ... and {len(others) - _MOST} more nodes"
    for refusal in arrival.refusals:
        if refusal.nodes:
            yield f"  not on {_names(refusal.nodes)}, whoever is evicted: {refusal.reason}"
        else:
            yield f"  no alternatives: {refusal.reason}"


def _victim(victim: Victim) -> str:
    devices = f" from {', '.join(victim.devices)}" if victim.devices else ""
    return f"{victim.pod} (priority {victim.priority}){devices}"


def _cost(item: Alternative) -> str:
    budgets = f", against {item.pdb_violations} disruption budgets" if item.pdb_violations else ""
    return f"{item.node}: evicts {', '.join(map(_victim, item.victims)) or 'nobody'}{budgets}"


def _names(nodes: Sequence[str]) -> str:
    rest = f" and {len(nodes) - _MOST} more" if len(nodes) > _MOST else ""
    return f"{', '.join(nodes[:_MOST])}{rest}"


def as_data(answer: Answer) -> dict[str, object]:
    """Return the answer as JSON data."""
    return {
        "promise": False,
        "pods": [
            {
                "pod": arrival.pod,
                "node": arrival.node or None,
                "devices": list(arrival.devices),
                "evicts": [_victim_data(victim) for victim in arrival.evicted],
                "settledSeconds": arrival.settled_seconds,
                "message": arrival.message or None,
                "fitsOn": arrival.fits_on or None,
                "alternatives": [
                    {
                        "node": item.node,
                        "victims": [_victim_data(victim) for victim in item.victims],
                        "pdbViolations": item.pdb_violations,
                    }
                    for item in arrival.alternatives
                ],
                "refusals": [{"nodes": list(item.nodes), "reason": item.reason} for item in arrival.refusals],
            }
            for arrival in answer.arrivals
        ],
        "evictions": [
            {"at": round(eviction.at, 6), "pod": eviction.pod, "priority": eviction.priority}
            for eviction in answer.outcome.evictions
        ],
    }


def _victim_data(victim: Victim) -> dict[str, object]:
    return {"pod": victim.pod, "priority": victim.priority, "devices": list(victim.devices)}
