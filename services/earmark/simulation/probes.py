"""What checks look at inside of services: read only, at once, without an RPC that would change the order of things."""

from __future__ import annotations

from earmark.simulation.fleet import Fleet
from earmark.simulation.watchdog import Nominations


def look_at_nominations(fleet: Fleet) -> Nominations | None:
    """Return what dynamicresources holds and the framework has nominated; None where they cannot be compared."""
    return None
