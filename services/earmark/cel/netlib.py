"""The Kubernetes libraries for addresses, networks, URLs and named formats."""

from __future__ import annotations

from earmark.cel.declarations import Library


def declare(library: Library) -> None:
    """Add them."""
