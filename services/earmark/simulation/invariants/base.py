"""What an invariant answers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Broken:
    """An invariant that does not hold."""

    # The invariant's name, as in reports.
    invariant: str
    # What it is broken for; the same fault has the same subject for as long as it lasts.
    subject: str
    # For people.
    detail: str
