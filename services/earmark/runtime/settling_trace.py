"""The ids of a settling window's trace and of its root span, derived from preemptor and generation (design: Telemetry).

Every service, and a restarted one, adds its spans to the window's trace without being told where it is.
"""

from __future__ import annotations

import hashlib


def settling_trace(preemptor_uid: str, generation: int) -> tuple[int, int]:
    """Return trace id and root span id of the window that a nomination opens. Neither is 0, which means "none"."""
    digest = hashlib.sha256(f"earmark.settling/{preemptor_uid}/{generation}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:24], "big") or 1


# A window's trace is read from top to bottom: what goes beyond these is counted in attributes, not told one by one.
# With their children (nodes.terminate, claimcontroller.deallocate) and the five spans of the window itself: 195.
MOST_VICTIMS = 40
MOST_CLAIMS = 40
MOST_ATTEMPTS = 30


def victim_span(preemptor_uid: str, generation: int, victim_uid: str) -> int:
    """Return the id of the span t0 to t1 of one victim: what its kubelet does is below it."""
    return _part(f"victim/{preemptor_uid}/{generation}/{victim_uid}")


def claim_span(preemptor_uid: str, generation: int, claim_uid: str) -> int:
    """Return the id of the span t1 to t3 of one victim claim: what the claim controller does is below it."""
    return _part(f"claim/{preemptor_uid}/{generation}/{claim_uid}")


def _part(text: str) -> int:
    return int.from_bytes(hashlib.sha256(f"earmark.settling.{text}".encode()).digest()[:8], "big") or 1
