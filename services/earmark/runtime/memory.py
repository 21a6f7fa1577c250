"""When a service's process looks for garbage in cycles. It knows nothing of what the service keeps.

Services keep hundreds of thousands of small objects for as long as they run, and a call makes tens of thousands more
that reference counting frees. Python's defaults look through all of them again and again for cycles that are not there.
"""

from __future__ import annotations

import gc

# New objects that make the collector look at the youngest ones, and how often that leads to a look at older ones.
# Cycles are rare here (tracebacks, closures of a call), so what waits for the next look is small.
_YOUNG = 100_000
_MIDDLE = 20
_OLD = 50


def begin() -> None:
    """Let the collector look seldom: to be called as soon as the process starts."""
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)


def settle() -> None:
    """Take all that is there now for permanent: to be called once the service has loaded what it keeps.

    These objects are still freed when nothing refers to them; only cycles among them would not be found.
    """
    gc.collect()
    gc.freeze()
