"""Which of the candidates is taken (upstream B5). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from earmark.preemption.values import Candidate

# Makes many victims expensive also where priorities are negative (B5.3).
_PRIORITY_OFFSET = 2**31


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """Return the best candidate.

    In order: fewest budget violations; lowest priority of the most important victim; smallest sum of priorities; fewest
    victims; the latest start among the first-started of the most important victims; the snapshot's order (where
    upstream leaves it to chance).

    Raises ValueError if there is no candidate.
    """
    if not candidates:
        raise ValueError("candidates: want at least one")
    return min(candidates, key=_cost)


def _cost(candidate: Candidate) -> tuple[int, int, int, int, float, int]:
    victims = candidate.victims
    return (
        candidate.pdb_violations,
        victims[0].priority,
        sum(victim.priority + _PRIORITY_OFFSET for victim in victims),
        len(victims),
        -_earliest_start_of_most_important(candidate).timestamp(),
        candidate.node.index,
    )


def _earliest_start_of_most_important(candidate: Candidate) -> datetime:
    highest = candidate.victims[0].priority
    return min(victim.start for victim in candidate.victims if victim.priority == highest)
