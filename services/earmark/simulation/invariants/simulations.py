"""Simulations leave the plugin's own state as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from earmark.simulation.invariants.base import Broken

UNTOUCHED = "simulations leave the plugin's state alone"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The plugin's own state at one moment: a revision that every real change raises, and its content."""

    revision: int
    content: str


def disturbed(call: str, before: Fingerprint, after: Fingerprint) -> Iterator[Broken]:
    """Yield a simulation call during which the content changed though nothing real had happened."""
    if before.revision == after.revision and before.content != after.content:
        yield Broken(UNTOUCHED, call, f"{call} changed the plugin's state at revision {before.revision}")
