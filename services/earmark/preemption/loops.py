"""Preemptors that evict in vain, because another scheduler gives the place away again. Pure.

The nomination keeps this scheduler's own pods from the place of a victim. A second scheduler knows nothing of it: it
may bind the victim's replacement there at once, and the next round evicts that one. Nothing can stop it; it can be
seen, told and slowed down.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loop:
    """A preemptor's rounds so far that evicted pods of other schedulers, and until when it holds off, in seconds."""

    rounds: int
    schedulers: tuple[str, ...]
    until: float

    @property
    def reason(self) -> str:
        """Why the pod does not preempt now, for its condition."""
        return f"not eligible due to an eviction loop with scheduler {', '.join(self.schedulers)}."

    def note(self, node: str, wait: float) -> str:
        """Return the text of the event about it."""
        return (
            f"pods of scheduler {', '.join(self.schedulers)} were evicted for this pod in {self.rounds} rounds, last "
            f"on node {node}, and others took their places; no further preemption for {wait:g}s"
        )


class EvictionLoops:
    """Counts rounds by preemptor; a round is one nomination that was executed."""

    def __init__(self, *, rounds: int, first_wait: float, longest_wait: float, remembered: int) -> None:
        """Make an empty record.

        rounds: how many make a loop; 0 never. first_wait: seconds without preemption after the first round of a loop;
        it doubles with each further one, up to longest_wait. remembered: preemptors that are kept, the newest ones.
        """
        self._rounds = rounds
        self._first = first_wait
        self._longest = longest_wait
        self._remembered = remembered
        self._loops: dict[str, Loop] = {}

    def executed(self, preemptor: str, foreign: Collection[str], now: float) -> Loop | None:
        """Take in that a preemptor (UID) has had pods evicted; return its loop if that is one.

        foreign: the other schedulers whose pods were among them; where there is none the place cannot be given away.
        """
        if not self._rounds or not foreign:
            return None
        before = self._loops.pop(preemptor, None)
        count = 1 if before is None else before.rounds + 1
        names = sorted({*foreign, *(() if before is None else before.schedulers)})
        until = now
        if count >= self._rounds:
            until += min(self._longest, self._first * 2.0 ** min(count - self._rounds, 32))
        loop = self._loops[preemptor] = Loop(count, tuple(names), until)
        if len(self._loops) > self._remembered:
            del self._loops[next(iter(self._loops))]
        return loop if count >= self._rounds else None

    def holding_off(self, preemptor: str, now: float) -> Loop | None:
        """Return the loop for which a preemptor (UID) must not preempt now, if any."""
        loop = self._loops.get(preemptor)
        return loop if loop is not None and now < loop.until else None
