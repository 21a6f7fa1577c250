"""A settling window as text, on the Event that tells of its end: past windows survive a restart with it. Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.settlement import Window, WindowClaim, WindowVictim
from earmark.kube.objects import Event

REASON = "PreemptionSettled"
ANNOTATION = "earmark.dev/settling-window"

_VERSION = 1
# The API refuses annotations of more than 256 KiB; windows of so many victims are not kept.
_LONGEST_BYTES = 200_000


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    version: int
    preemptor: PodRef
    node: str
    generation: int
    victims: tuple[WindowVictim, ...]
    claims: tuple[WindowClaim, ...]
    devices: tuple[str, ...]
    t0: datetime
    ended: datetime
    t4: datetime | None = None
    outcome: str = ""


def write(window: Window) -> str:
    """Return an ended window as text; "" if it is too large to be kept."""
    if window.ended is None:
        raise ValueError("the window is open")
    record = _Record(
        _VERSION, window.preemptor, window.node, window.generation, window.victims, window.claims, window.devices,
        window.t0, window.ended, window.t4, window.outcome,
    )  # fmt: skip
    text = msgspec.json.encode(record)
    return text.decode() if len(text) <= _LONGEST_BYTES else ""


def read(event: Event) -> Window | None:
    """Return the window of an Event; None for another event, and for one that cannot be read."""
    text = event.metadata.annotations.get(ANNOTATION)
    if event.reason != REASON or not text:
        return None
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.DecodeError, msgspec.ValidationError):
        # Written by hand, or by a version that is not known here.
        return None
    if record.version != _VERSION:
        return None
    return Window(
        preemptor=record.preemptor,
        node=record.node,
        generation=record.generation,
        victims=record.victims,
        claims=record.claims,
        devices=record.devices,
        t0=record.t0,
        t4=record.t4,
        ended=record.ended,
        outcome=record.outcome,
    )
