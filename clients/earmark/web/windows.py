"""Settling windows as the page keeps and sends them: the open ones, and the newest of those that have ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from earmark.v1 import settlement_pb2
from earmark.v1.settlement_pb2 import SettlementPhase

# The chart has one row a window: more could not be looked at.
ENDED_KEPT = 20
SHOWN = 60

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Window:
    """One settling window, from t0 (victims deleted) to t4 (preemptor scheduled)."""

    key: Key
    preemptor: str
    node: str
    victims: tuple[str, ...]
    # UID and name of the victim claims that are still to be deallocated.
    awaited: tuple[tuple[str, str], ...]
    devices: tuple[str, ...]
    t0: datetime
    t1: datetime | None
    t3: datetime | None
    t4: datetime | None
    phase: str
    outcome: str

    @property
    def open(self) -> bool:
        """Whether the preemptor still waits."""
        return self.phase != "ended"

    def data(self) -> dict[str, object]:
        """Return it as JSON data; times are seconds since 1970."""
        return {
            "id": f"{self.key[0]}/{self.key[1]}",
            "preemptor": self.preemptor,
            "node": self.node,
            "victims": list(self.victims),
            "awaited": [name for _, name in self.awaited],
            "devices": list(self.devices),
            "t0": self.t0.timestamp(),
            "t1": self.t1.timestamp() if self.t1 else None,
            "t3": self.t3.timestamp() if self.t3 else None,
            "t4": self.t4.timestamp() if self.t4 else None,
            "phase": self.phase,
            "outcome": self.outcome,
        }


def window(message: settlement_pb2.Settlement) -> Window:
    """Return the window of a message."""
    return Window(
        key=(message.preemptor.uid, message.generation),
        preemptor=f"{message.preemptor.namespace}/{message.preemptor.name}",
        node=message.node_name,
        victims=tuple(f"{item.pod.namespace}/{item.pod.name}" for item in message.victims),
        awaited=tuple(
            (item.uid, f"{item.namespace}/{item.name}") for item in message.claims if not item.HasField("deallocated")
        ),
        devices=tuple(message.devices),
        t0=message.t0.ToDatetime(tzinfo=UTC),
        t1=_moment(message.t1) if message.HasField("t1") else None,
        t3=_moment(message.t3) if message.HasField("t3") else None,
        t4=_moment(message.t4) if message.HasField("t4") else None,
        phase=SettlementPhase.Name(message.phase).removeprefix("SETTLEMENT_PHASE_").lower(),
        outcome=message.outcome,
    )


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


class Windows:
    """All open windows and the newest ended ones."""

    def __init__(self) -> None:
        self._windows: dict[Key, Window] = {}

    def put(self, new: Window) -> Window | None:
        """Take a window's new state; return the one before."""
        old = self._windows.pop(new.key, None)
        # At the end: what ended last is forgotten last.
        self._windows[new.key] = new
        ended = [key for key, item in self._windows.items() if not item.open]
        for key in ended[: max(0, len(ended) - ENDED_KEPT)]:
            del self._windows[key]
        return old

    def drop(self, key: Key) -> Window | None:
        """Forget a window of which nobody knows any more."""
        return self._windows.pop(key, None)

    def known(self) -> tuple[Key, ...]:
        """Return the keys of all that are kept."""
        return tuple(self._windows)

    def open(self) -> tuple[Window, ...]:
        """Return the open ones, oldest first."""
        return tuple(sorted((item for item in self._windows.values() if item.open), key=_age))

    def data(self) -> dict[str, object]:
        """Return what the chart shows, newest first, and how many there are besides."""
        newest = sorted(self._windows.values(), key=_age, reverse=True)
        rows = [item for item in newest if item.open] + [item for item in newest if not item.open]
        return {"rows": [item.data() for item in rows[:SHOWN]], "more": max(0, len(rows) - SHOWN)}


def _age(item: Window) -> tuple[datetime, Key]:
    return (item.t0, item.key)
