"""What the map shows of one device: whether it is free, in use, being reclaimed or earmarked, by whom and until when.

Pure. Which claims and settling windows concern a device is earmark.web.board's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from earmark.web.windows import Window


class State(StrEnum):
    """What a device is, by the letter that the map shows."""

    FREE = "F"
    ALLOCATED = "A"
    RECLAIMED = "R"
    EARMARKED = "E"


@dataclass(frozen=True, slots=True)
class Cell:
    """One device of the map. `text` goes on after the device's name."""

    state: State
    text: str


@dataclass(frozen=True, slots=True)
class Consumer:
    """A pod that a claim is reserved for."""

    name: str
    # When it will be gone: the end of its grace period.
    until: datetime | None = None
    # It has finished, or it was seen to disappear.
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Use:
    """One claim that has the device."""

    claim: str
    consumers: tuple[Consumer, ...]
    # The open window that awaits the claim's deallocation.
    awaited: Window | None = None

    @property
    def ends(self) -> bool:
        """Whether the device is on its way back: a window awaits it, or everyone who used it leaves."""
        leaving = bool(self.consumers) and all(item.gone or item.until is not None for item in self.consumers)
        return self.awaited is not None or leaving


FREE = Cell(State.FREE, "free")


def cell(uses: Sequence[Use], hold: Window | None) -> Cell:
    """Return what is shown of a device.

    Args:
        uses: the claims that have it. Several share it.
        hold: the open settling window that holds it for its preemptor.
    """
    if not uses and hold is None:
        return FREE
    if not uses and hold is not None:
        return Cell(
            State.EARMARKED, f"earmarked for {hold.preemptor}, until it is scheduled; held since {clock(hold.t0)}"
        )
    ending = [use for use in uses if use.ends]
    texts = [_ending(use) if use.ends else _in_use(use) for use in uses]
    if hold is not None:
        texts.append(f"earmarked for {hold.preemptor}")
    # A share that is freed does not make the device one that is reclaimed, as long as a window does not wait for it.
    reclaimed = len(ending) == len(uses) or any(use.awaited for use in ending)
    return Cell(State.RECLAIMED if reclaimed else State.ALLOCATED, "; ".join(texts))


def _in_use(use: Use) -> str:
    pods = ", ".join(item.name for item in use.consumers if not item.gone)
    return f"allocated to {pods} (claim {use.claim})" if pods else f"allocated to claim {use.claim}, which no pod uses"


def _ending(use: Use) -> str:
    pods = ", ".join(item.name for item in use.consumers)
    ends = [item.until for item in use.consumers if item.until is not None and not item.gone]
    window = use.awaited
    if ends:
        return f"being reclaimed from {pods}, which terminates until {clock(max(ends))}"
    since = ""
    if window is not None and window.t1 is not None:
        since = f", since {clock(window.t1)}"
    whose = f" ({pods} gone)" if pods else ""
    return (
        f"being reclaimed: claim {use.claim} is still allocated{whose}{since}; the claim controller has to release it"
    )


def clock(at: datetime) -> str:
    """Return the time of day in UTC."""
    return at.astimezone(UTC).strftime("%H:%M:%SZ")
