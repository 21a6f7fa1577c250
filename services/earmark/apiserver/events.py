"""Events in the terms of core/v1 and of events.k8s.io/v1: the same objects with other field names. Pure."""

from __future__ import annotations

from typing import Any

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_FROM_CORE = {new: old for old, new in _TO_CORE.items()}


def to_core(event: dict[str, Any]) -> dict[str, Any]:
    """Return an events.k8s.io/v1 Event as a core/v1 one.

    What core/v1 clients show (source, times, count) is filled from the newer fields where it is not set.
    """
    core = {_TO_CORE.get(key, key): value for key, value in event.items()}
    core["apiVersion"] = "v1"
    # Readers of core/v1 expect these to be there, if empty.
    core.setdefault("source", {"component": event.get("reportingController", "")})
    when = event.get("eventTime") or event.get("metadata", {}).get("creationTimestamp")
    if when is not None:
        whole = when[:19] + "Z"
        core.setdefault("firstTimestamp", whole)
        core.setdefault("lastTimestamp", whole)
    core.setdefault("count", 1)
    return core


def from_core(core: Any) -> Any:
    """Return a core/v1 Event (or a patch of one) in the terms of events.k8s.io/v1."""
    if not isinstance(core, dict):
        return core
    event = {_FROM_CORE.get(key, key): value for key, value in core.items()}
    if event.get("apiVersion") == "v1":
        event["apiVersion"] = "events.k8s.io/v1"
    return event
