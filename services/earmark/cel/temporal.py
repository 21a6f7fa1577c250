"""Durations and timestamps: reading, writing, the parts of a timestamp in a zone, and checked arithmetic."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from earmark.cel.text import go_float
from earmark.cel.values import MAX_INT, MIN_INT, NO_OVERLOAD, Duration, Failure, Timestamp

_SECOND: Final = 1_000_000_000
# A year of the Gregorian calendar's cycle of 400, in seconds.
_YEAR: Final = 146_097 * 86_400 // 400
MIN_UNIX: Final = -62135596800
MAX_UNIX: Final = 253402300799
TIMESTAMP_OVERFLOW: Final = Failure("timestamp overflow")
DURATION_OVERFLOW: Final = Failure("integer overflow")

_UNITS: Final = {
    "ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": _SECOND,
    "m": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> Duration | None:
    """time.ParseDuration, None where it gives an error."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return Duration(0)
    if not rest:
        return None
    total, at = 0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            return None
        unit = _UNITS[part[3]]
        if len(part[1].lstrip("0")) > 19:
            return None
        total += int(part[1] or "0") * unit
        if part[2]:
            total += _fraction(part[2], unit)
        if total > 2**63:
            return None
        at = part.end()
    if sign == "-":
        return Duration(-total)
    return None if total > MAX_INT else Duration(total)


def _fraction(digits: str, unit: int) -> int:
    """The fraction of a unit. Go adds digits up to 63 bits and then multiplies in floating point."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > MAX_INT // 10 or value * 10 + int(digit) > 2**63:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))",
    re.ASCII,
)


def parse_timestamp(text: str) -> Timestamp | Failure | None:
    """A timestamp in RFC 3339; None where Go cannot read it, a Failure out of CEL's range."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    if hour > 23 or minute > 59 or second > 59:
        return None
    offset = 0
    if match[9]:
        if int(match[10]) > 24 or int(match[11]) > 60:
            return None
        offset = (int(match[10]) * 3600 + int(match[11]) * 60) * (-1 if match[9] == "-" else 1)
    seconds = _unix(year, month, day)
    if seconds is None:
        return None
    seconds += hour * 3600 + minute * 60 + second - offset
    if not MIN_UNIX <= seconds <= MAX_UNIX:
        return TIMESTAMP_OVERFLOW
    nanos = int((match[7] or "")[:9].ljust(9, "0"))
    return Timestamp(seconds * _SECOND + nanos, offset)


def _unix(year: int, month: int, day: int) -> int | None:
    if year == 0:
        # Python has no year 0; it is a leap year like 2000, 730,485 days before it.
        same = _unix(2000, month, day)
        return None if same is None else same - 730_485 * 86_400
    try:
        moment = datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)


def timestamp_text(value: Timestamp) -> str:
    """RFC 3339 with as many digits of the second as needed, in the zone that it was written in."""
    seconds, nanos = divmod(value.nanos, _SECOND)
    local = seconds + value.offset
    if local < MIN_UNIX:
        moment, year = datetime(1, 1, 1) + timedelta(seconds=local + 366 * 86_400 - MIN_UNIX), 0
    else:
        moment = datetime(1970, 1, 1) + timedelta(seconds=min(local, MAX_UNIX))
        year = moment.year
    fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
    zone = "Z"
    if value.offset:
        minutes = abs(value.offset) // 60
        zone = f"{'-' if value.offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}{zone}"


def duration_text(value: Duration) -> str:
    """Seconds with as few digits as read back."""
    return go_float(seconds_of(value.nanos)) + "s"


def seconds_of(nanos: int) -> float:
    """Duration.Seconds: whole seconds and the rest are added as floats."""
    whole, rest = abs(nanos) // _SECOND, abs(nanos) % _SECOND
    value = float(whole) + float(rest) / 1e9
    return -value if nanos < 0 else value


def in_zone(value: Timestamp, zone: Any) -> datetime | Failure:
    """The wall clock of a timestamp in a zone ("UTC", "Europe/Berlin", "-08:00"; None is UTC)."""
    place: tzinfo = UTC
    if zone is not None:
        if zone.__class__ is not str:
            return NO_OVERLOAD
        found = _zone(zone)
        if isinstance(found, Failure):
            return found
        place = found
    seconds = value.nanos // _SECOND - years_left_out(value) * _YEAR
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return moment.astimezone(place).replace(microsecond=value.nanos % _SECOND // 1000)


def years_left_out(value: Timestamp) -> int:
    """The years that `in_zone` leaves out of its result: a zone can lead out of Python's years 1 to 9999, and 400
    years later everything is the same."""
    seconds = value.nanos // _SECOND
    if seconds > MAX_UNIX - 2 * 86_400:
        return 400
    return -400 if seconds < MIN_UNIX + 2 * 86_400 else 0


_OFFSET: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def _zone(name: str) -> tzinfo | Failure:
    hours, colon, minutes = name.partition(":")
    if not colon:
        if name in ("", "UTC"):
            return UTC
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return Failure(f"unknown time zone {name}")
    for part in (hours, minutes):
        if not _OFFSET.fullmatch(part):
            return Failure(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + (-int(minutes) if hours.startswith("-") else int(minutes))
    if abs(offset) >= 24 * 60:
        return Failure(f"zone offset out of range: {name}")
    return timezone(timedelta(minutes=offset))


def checked_duration(nanos: int) -> Duration | Failure:
    """A duration, unless it leaves 64 bits of nanoseconds."""
    return Duration(nanos) if MIN_INT <= nanos <= MAX_INT else DURATION_OVERFLOW


def checked_timestamp(nanos: int, offset: int) -> Timestamp | Failure:
    """A timestamp, unless it leaves the years 1 to 9999."""
    return Timestamp(nanos, offset) if MIN_UNIX <= nanos // _SECOND <= MAX_UNIX else TIMESTAMP_OVERFLOW
