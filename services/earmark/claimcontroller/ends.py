"""When pods stopped needing their claims: what the deallocation delay counts from. Pure."""

from __future__ import annotations

from collections import OrderedDict


class Ends:
    """UIDs of pods that have ended, with the moment; the oldest are forgotten beyond a number.

    It is memory only: a restarted controller counts anew from when it finds a pod gone.
    """

    def __init__(self, capacity: int) -> None:
        """Remember up to `capacity` pods. Raises ValueError if that is less than 1."""
        if capacity < 1:
            raise ValueError("capacity: want at least 1")
        self._capacity = capacity
        self._ends: OrderedDict[str, float] = OrderedDict()

    def note(self, uid: str, now: float) -> float:
        """Remember that a pod has ended by `now` (monotonic seconds), and return when it did: the first note counts."""
        end = self._ends.setdefault(uid, now)
        self._ends.move_to_end(uid)
        while len(self._ends) > self._capacity:
            self._ends.popitem(last=False)
        return end

    def __contains__(self, uid: object) -> bool:
        """Whether the end of a pod is remembered."""
        return uid in self._ends

    def __len__(self) -> int:
        return len(self._ends)
