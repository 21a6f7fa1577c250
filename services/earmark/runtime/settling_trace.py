"""The ids of a settling window's trace and of its root span, derived from preemptor and generation (design: Telemetry).

Every service, and a restarted one, adds its spans to the window's trace without being told where it is.
"""

from __future__ import annotations

import hashlib


def settling_trace(preemptor_uid: str, generation: int) -> tuple[int, int]:
    """Return trace id and root span id of the window that a nomination opens. Neither is 0, which means "none"."""
    digest = hashlib.sha256(f"earmark.settling/{preemptor_uid}/{generation}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:24], "big") or 1
