"""The sentences that a preemption puts into a pod's condition, as the stock scheduler writes them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from earmark.preemption.values import Code, Status

NOT_HELPFUL = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Preemption is not helpful for scheduling",))
NO_VICTIMS = Status(
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("No preemption victims found for incoming pod",), "DefaultPreemption"
)
# The preemptor fits as soon as what is on its way out is gone: nobody else has to go (decision F21).
BEING_RECLAIMED = Status(Code.UNSCHEDULABLE, ("waiting for devices being reclaimed",), "DefaultPreemption")


def found(node_name: str, victims: int) -> str:
    """Return the text of a success (upstream B1.5)."""
    return f"found a potential placement for pod on node {node_name}, preempting {victims} victims"


def fit_error(node_names: Sequence[str], statuses: Mapping[str, Status]) -> str:
    """Return the text for "no candidates": why preemption helps on none of the nodes (upstream A2, B1.6).

    `statuses` has the nodes that were examined; the others read "Preemption is not helpful for scheduling".
    """
    histogram: Counter[str] = Counter()
    for name in node_names:
        histogram.update(statuses.get(name, NOT_HELPFUL).reasons)
    text = f"0/{len(node_names)} nodes are available:"
    if histogram:
        # Upstream sorts the finished entries as text: "10 x" comes before "2 y".
        text += " " + ", ".join(sorted(f"{count} {reason}" for reason, count in histogram.items())) + "."
    return text
