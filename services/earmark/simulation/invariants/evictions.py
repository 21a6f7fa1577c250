"""No victim has a priority as high as its preemptor's, and preemption deletes no pod twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from earmark.simulation.invariants.base import Broken
from earmark.simulation.report import Eviction

PRIORITY = "victim has a lower priority than its preemptor"
ONCE = "no pod is preempted twice"


@dataclass(frozen=True, slots=True)
class Preemption:
    """Who was chosen to go for whom."""

    victim: str
    victim_priority: int
    preemptor: str
    preemptor_priority: int


def too_important(preemptions: Iterable[Preemption]) -> Iterator[Broken]:
    """Yield victims that are as important as their preemptor."""
    for preemption in preemptions:
        if preemption.victim_priority >= preemption.preemptor_priority:
            detail = (
                f"{preemption.victim} (priority {preemption.victim_priority}) is preempted by "
                f"{preemption.preemptor} (priority {preemption.preemptor_priority})"
            )
            yield Broken(PRIORITY, f"{preemption.victim} {preemption.preemptor}", detail)


def preempted_twice(evictions: Iterable[Eviction]) -> Iterator[Broken]:
    """Yield pods that preemption deleted more than once."""
    evictions = tuple(evictions)
    names = {eviction.uid: eviction.pod for eviction in evictions}
    for uid, times in Counter(eviction.uid for eviction in evictions).items():
        if times > 1:
            yield Broken(ONCE, uid, f"{names[uid]} was deleted {times} times")
