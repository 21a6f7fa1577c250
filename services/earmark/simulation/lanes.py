"""A run as a picture: one lane for each pod that has or wants devices, over the time of the settling windows. Pure.

Each column is a moment. What a pod is then is one sign; where several moments fall into a column the latest counts.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from earmark.simulation.durations import format_duration
from earmark.simulation.report import LogEntry, SettlementRecord

WIDTH = 72
# How much of the picture lies before the first window and after the last one.
_MARGIN = 0.12
# Of more pods than these only those are shown that something happens to.
_MANY = 24
# The longest list of devices beside a lane.
_LONG = 28


class Stage(enum.Enum):
    """What a pod is at a moment: the sign, its style and the words of the legend."""

    PENDING = ("·", "dim", "waits")
    NOMINATED = ("┄", "magenta", "is nominated: what it needs is held")
    RUNNING = ("█", "green", "is bound")
    TERMINATING = ("▒", "red", "terminates")
    LINGERING = ("░", "blue", "is gone, its claim is still allocated")
    GONE = (" ", "", "")

    @property
    def sign(self) -> str:
        """The character in the lane."""
        return self.value[0]

    @property
    def style(self) -> str:
        """The colour."""
        return self.value[1]

    @property
    def words(self) -> str:
        """What the legend says."""
        return self.value[2]


@dataclass(slots=True)
class Lane:
    """One pod: its devices and the moments at which its stage changed."""

    pod: str
    devices: tuple[str, ...] = ()
    changes: list[tuple[float, Stage]] = field(default_factory=list)

    def stage(self, at: float) -> Stage:
        """Return the stage at a moment."""
        found = Stage.GONE
        for begun, stage in self.changes:
            if begun > at:
                break
            found = stage
        return found

    @property
    def newest(self) -> Stage:
        """The stage that the pod is in by now."""
        return self.changes[-1][1] if self.changes else Stage.GONE


def lanes(log: Iterable[LogEntry]) -> tuple[Lane, ...]:
    """Return the lanes of a log, in the order in which the pods came; pods that never had to do with devices too."""
    found: dict[str, Lane] = {}
    devices: dict[str, tuple[str, ...]] = {}
    claims: dict[str, dict[str, None]] = {}
    for entry in log:
        details = entry.details
        match entry.event:
            case "allocated":
                devices[details["claim"]] = tuple(details["devices"])
            case "reserved":
                claims.setdefault(details["pod"], {})[details["claim"]] = None
            case "deallocated":
                devices.pop(details["claim"], None)
                for pod, held in claims.items():
                    held.pop(details["claim"], None)
                    if not held and pod in found and found[pod].newest is Stage.LINGERING:
                        found[pod].changes.append((entry.at, Stage.GONE))
            case "created" | "deleted" if str(details["object"]).startswith("Pod/"):
                pod = str(details["object"]).removeprefix("Pod/")
                lane = found.setdefault(pod, Lane(pod))
                if entry.event == "created":
                    lane.changes.append((entry.at, Stage.PENDING))
                else:
                    left = any(claim in devices for claim in claims.get(pod, {}))
                    lane.changes.append((entry.at, Stage.LINGERING if left else Stage.GONE))
            case "bound" | "nominated" | "nomination cleared" | "terminating":
                lane = found.setdefault(details["pod"], Lane(details["pod"]))
                if entry.event == "bound":
                    held_now = [device for claim in claims.get(lane.pod, {}) for device in devices.get(claim, ())]
                    lane.devices = tuple(dict.fromkeys((*lane.devices, *held_now)))
                stage = _after(entry.event, lane.newest)
                if stage is not None:
                    lane.changes.append((entry.at, stage))
    return tuple(found.values())


def _after(event: str, before: Stage) -> Stage | None:
    match event:
        case "bound":
            return Stage.RUNNING
        case "nominated":
            return Stage.NOMINATED
        case "nomination cleared":
            return Stage.PENDING
        case _:
            return Stage.TERMINATING if before is Stage.RUNNING else None


def picture(log: Iterable[LogEntry], windows: Sequence[SettlementRecord], width: int = WIDTH) -> Iterator[Text]:
    """Yield the lines of the picture: moments of each window, lanes, legend. Nothing without a window."""
    moments = [at for window in windows for at in (window.t0, window.t1, window.t3, window.t4) if at is not None]
    if not moments:
        return
    first, last = min(moments), max(moments)
    margin = max(1.0, (last - first) * _MARGIN)
    scale = _Scale(max(0.0, first - margin), last + margin, width)
    shown = [lane for lane in lanes(log) if scale.shows(lane)]
    if len(shown) > _MANY:
        shown = [lane for lane in shown if len(dict.fromkeys(scale.stages(lane))) > 1]
    names = max((len(lane.pod) for lane in shown), default=0)
    about = min(_LONG, max((len(" ".join(lane.devices)) for lane in shown), default=0))
    for window in windows:
        yield Text(f"{window.preemptor:<{names}}  {'':<{about}}  {scale.marks(window)}".rstrip(), style="bold")
    seen: dict[Stage, None] = {}
    for lane in shown:
        devices = " ".join(lane.devices)
        devices = devices if len(devices) <= about else f"{devices[: about - 1]}…"
        line = Text(f"{lane.pod:<{names}}  {devices:<{about}}  ")
        for stage in scale.stages(lane):
            seen[stage] = None
            line.append(stage.sign, style=stage.style)
        line.rstrip()
        yield line
    legend = [
        Text(f"{stage.sign} {stage.words}", style=stage.style) for stage in Stage if stage in seen and stage.words
    ]
    yield Text("  ").join(legend)


@dataclass(frozen=True, slots=True)
class _Scale:
    """From seconds to columns."""

    start: float
    end: float
    width: int

    def _column(self, at: float) -> int:
        return int((at - self.start) / (self.end - self.start) * self.width)

    def stages(self, lane: Lane) -> list[Stage]:
        """Return a lane's stage in every column."""
        step = (self.end - self.start) / self.width
        return [lane.stage(self.start + step * (column + 1) - step * 1e-6) for column in range(self.width)]

    def shows(self, lane: Lane) -> bool:
        """Whether there is anything of the pod in the picture."""
        return any(stage is not Stage.GONE for stage in self.stages(lane))

    def marks(self, window: SettlementRecord) -> str:
        """Return the window's moments at their columns; those that do not fit stand behind the one before."""
        line = ""
        moments = [("t0", window.t0), ("t1", window.t1), ("t3", window.t3), ("t4", window.t4)]
        # t3 may come before t1, where a victim without devices takes longer.
        for at, name in sorted((at, name) for name, at in moments if at is not None):
            text = f"{name} {format_duration(round(at, 3))}"
            line = line.ljust(self._column(at)) if len(line) < self._column(at) else f"{line} "
            line += text
        return line
