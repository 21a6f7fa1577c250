"""How many nodes an attempt looks at, and in which order (upstream A6)."""

from __future__ import annotations

from collections.abc import Sequence

_MIN_FEASIBLE = 100
_MIN_PERCENTAGE = 5


def feasible_nodes_to_find(nodes: int, percentage: int) -> int:
    """Return after how many feasible nodes the search ends.

    Args:
        nodes: number of nodes that are searched.
        percentage: of them; 0 lets it shrink as the cluster grows.
    """
    if nodes < _MIN_FEASIBLE:
        return nodes
    share = percentage or max(_MIN_PERCENTAGE, 50 - nodes // 125)
    return min(nodes, max(_MIN_FEASIBLE, nodes * share // 100))


class NodeSearch:
    """The round-robin start of the search; it moves on by what each search looked at."""

    def __init__(self) -> None:
        self._start = 0

    def order(self, names: Sequence[str]) -> list[str]:
        """Return the nodes in the order in which this search looks at them."""
        if not names:
            return []
        start = self._start % len(names)
        return [*names[start:], *names[:start]]

    def looked_at(self, count: int, all_nodes: int) -> None:
        """A search ended; the next one begins behind it (upstream A6.3)."""
        self._start = (self._start + count) % all_nodes if all_nodes else 0
