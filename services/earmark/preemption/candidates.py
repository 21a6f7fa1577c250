"""Which nodes are tried, how many, and from where on (upstream B3). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.preemption.values import Code, Node


def potential_nodes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return the nodes where removing pods may help: status exactly Unschedulable (B3.1), in the snapshot's order."""
    return tuple(node for node in nodes if node.status.code is Code.UNSCHEDULABLE)


def number_of_candidates(potential: int, *, min_percentage: int, min_absolute: int) -> int:
    """Return how many candidates are enough among `potential` nodes (B3.3: integer division, at most all)."""
    return min(max(potential * min_percentage // 100, min_absolute), potential)


def rotated(nodes: Sequence[Node], offset: int) -> tuple[Node, ...]:
    """Return the nodes from `offset` on, then the others (B3.4)."""
    if not nodes:
        return ()
    start = offset % len(nodes)
    return (*nodes[start:], *nodes[:start])
