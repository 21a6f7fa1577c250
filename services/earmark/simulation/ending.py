"""When nothing is left to happen, periodic flushes and resyncs aside."""

from __future__ import annotations

from collections.abc import Iterable

# One virtual hour at the most.
LONGEST_SECONDS = 3600.0

# How long nothing has to happen until that counts as the end: longer than a pod may wait for its devices (ten
# minutes), and than the scheduler lets a pod sleep until it tries again (five minutes, looked at every thirty seconds).
QUIET_SECONDS = 700.0

# Parts of names of tasks whose timers come again and again without anything having happened.
PERIODIC = ("flush", "resync", "keep", "renew", "sweep", "bookmark", "lease", "expire", "gauge")


def only_periodic(sleepers: Iterable[tuple[str, float]]) -> bool:
    """Whether all tasks that sleep do so between two rounds of periodic work.

    Args: `sleepers` are task names with the moment at which they wake.
    """
    return all(any(part in name for part in PERIODIC) for name, _ in sleepers)
