"""Durations as Go writes them ("90s", "1h2m", "1.5s"), exact to the nanosecond."""

from __future__ import annotations

import re
from fractions import Fraction

_UNITS: dict[str, Fraction] = {
    "ns": Fraction(1, 1_000_000_000),
    "us": Fraction(1, 1_000_000),
    "µs": Fraction(1, 1_000_000),
    "μs": Fraction(1, 1_000_000),
    "ms": Fraction(1, 1_000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> float:
    """Return the seconds of a duration that is not negative.

    Raises ValueError with a sentence for people where the text is no such duration.
    """
    if text == "0":
        return 0.0
    total = Fraction(0)
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            break
        number = part["number"]
        total += Fraction("0" + number if number.startswith(".") else number.rstrip(".")) * _UNITS[part["unit"]]
        position = part.end()
    if not text or position < len(text):
        raise ValueError(f"{text!r} is not a duration; write it like 90s, 5m or 1h2m")
    return float(total)


def format_duration(seconds: float) -> str:
    """Return seconds in the form that parse_duration reads, to the nanosecond: 90.5 is "1m30.5s"."""
    nanoseconds = round(seconds * 1_000_000_000)
    whole, fraction = divmod(nanoseconds, 1_000_000_000)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    tail = str(rest) + (f".{fraction:09d}".rstrip("0") if fraction else "")
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
    return text + (f"{tail}s" if tail != "0" or not text else "")
