"""The scheduling queue as the page shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from earmark.v1 import framework_pb2

# Of a longer queue the rest is counted.
SHOWN = 200


def queue_data(pods: Sequence[framework_pb2.QueuedPod]) -> dict[str, object]:
    """Return the rows of the queue, most important first, and how many there are besides."""
    ordered = sorted(
        pods, key=lambda item: (-item.priority, item.since.ToNanoseconds(), item.pod.namespace, item.pod.name)
    )
    return {"rows": [_row(item) for item in ordered[:SHOWN]], "more": max(0, len(pods) - SHOWN)}


def _row(item: framework_pb2.QueuedPod) -> dict[str, object]:
    return {
        "namespace": item.pod.namespace,
        "name": item.pod.name,
        "queue": item.queue,
        "priority": item.priority,
        "attempts": item.attempts,
        "since": item.since.ToDatetime(tzinfo=UTC).timestamp() if item.HasField("since") else None,
        "nominated": item.nominated_node_name,
        "message": item.message,
    }
