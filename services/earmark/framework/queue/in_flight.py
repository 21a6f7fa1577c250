"""Events that happen while pods are being scheduled, so that none is missed (upstream A16.7, A16.13)."""

from __future__ import annotations

from collections import Counter, deque

from earmark.framework.events import ClusterEvent


class InFlight:
    """Pods between Pop and Done, and the events since each one's Pop."""

    def __init__(self) -> None:
        self._start: dict[str, int] = {}
        self._events: deque[ClusterEvent] = deque()
        # Number of the first event that is kept.
        self._first = 0

    def __contains__(self, uid: object) -> bool:
        return uid in self._start

    def __len__(self) -> int:
        return len(self._start)

    def begin(self, uid: str) -> None:
        """A pod was popped."""
        self._start[uid] = self._first + len(self._events)

    def record(self, event: ClusterEvent) -> None:
        """Keep an event while any pod is in flight."""
        if self._start:
            self._events.append(event)

    def since_pop(self, uid: str) -> tuple[ClusterEvent, ...]:
        """Return the events since a pod's Pop, its own and those for all."""
        start = self._start.get(uid)
        if start is None:
            return ()
        events = list(self._events)[start - self._first :]
        return tuple(event for event in events if event.target in ("", uid))

    def done(self, uid: str) -> None:
        """A pod's attempt is over; events that nobody needs any more are dropped."""
        self._start.pop(uid, None)
        needed = min(self._start.values(), default=self._first + len(self._events))
        while self._first < needed:
            self._events.popleft()
            self._first += 1

    def counts(self) -> Counter[str]:
        """Return how many events of each name are kept. Other threads may ask: /metrics is one."""
        return Counter(event.name for event in tuple(self._events))
