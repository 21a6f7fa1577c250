"""Moments as people read them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def moment(stamp: Timestamp) -> datetime:
    """Return a message's moment, in UTC."""
    return stamp.ToDatetime(tzinfo=UTC)


def clock(at: datetime) -> str:
    """Return the time of day in UTC; with the date where it is needed see `full`."""
    return at.strftime("%H:%M:%SZ")


def full(at: datetime) -> str:
    """Return date and time in UTC, to the second."""
    return at.strftime("%Y-%m-%d %H:%M:%SZ")


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago something was."""
    return f"{seconds_text(max(0.0, (now - at).total_seconds()))} ago"


def seconds_text(seconds: float) -> str:
    """Return a duration with two units at most: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"
