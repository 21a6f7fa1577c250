"""What a change of an object means, in the log's words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from earmark.kube import objects
from earmark.kube.resources import BY_STRUCT
from earmark.simulation.cluster import allocated, device_name, display, short_device_name
from earmark.simulation.observe import Effect
from earmark.simulation.verdict import POD_SCHEDULED, pod_condition

Told = tuple[str, Mapping[str, Any]]


def told(effect: Effect) -> Iterator[Told]:
    """Yield (event, details) for what has happened to an object."""
    value = effect.after if effect.after is not None else effect.before
    assert value is not None
    name = display(*value.key)
    if isinstance(value, objects.Event):
        if effect.before is None:
            about = display(value.regarding.namespace, value.regarding.name)
            yield "event", {"object": about, "reason": value.reason, "note": value.note}
        return
    if isinstance(value, objects.Pod):
        yield from _pod(name, _as_pod(effect.before), _as_pod(effect.after))
        return
    if isinstance(value, objects.ResourceClaim):
        yield from _claim(name, _as_claim(effect.before), _as_claim(effect.after))
        return
    kind = BY_STRUCT[type(value)].kind
    event = "created" if effect.before is None else "deleted" if effect.after is None else "changed"
    yield event, {"object": f"{kind}/{name}"}


def _as_pod(value: objects.Object | None) -> objects.Pod | None:
    return value if isinstance(value, objects.Pod) else None


def _as_claim(value: objects.Object | None) -> objects.ResourceClaim | None:
    return value if isinstance(value, objects.ResourceClaim) else None


def _pod(name: str, before: objects.Pod | None, after: objects.Pod | None) -> Iterator[Told]:
    if after is None:
        yield "deleted", {"object": f"Pod/{name}"}
        return
    if before is None:
        yield "created", {"object": f"Pod/{name}"}
        before = objects.Pod()
    if after.spec.node_name != before.spec.node_name:
        yield "bound", {"pod": name, "node": after.spec.node_name}
    if after.status.nominated_node_name != before.status.nominated_node_name:
        if after.status.nominated_node_name:
            yield "nominated", {"pod": name, "node": after.status.nominated_node_name}
        elif not after.spec.node_name:
            yield "nomination cleared", {"pod": name, "node": before.status.nominated_node_name}
    if after.metadata.deletion_timestamp is not None and before.metadata.deletion_timestamp is None:
        yield "terminating", {"pod": name, "grace": after.metadata.deletion_grace_period_seconds}
    if after.status.phase != before.status.phase and after.status.phase != "Pending":
        yield after.status.phase.lower(), {"pod": name}
    yield from _scheduled(name, before, after)


def _scheduled(name: str, before: objects.Pod, after: objects.Pod) -> Iterator[Told]:
    was, now = pod_condition(before, POD_SCHEDULED), pod_condition(after, POD_SCHEDULED)
    if now is not None and now.status == "False" and (was is None or was.message != now.message):
        yield "unschedulable", {"pod": name, "reason": now.reason, "message": now.message}


def _claim(name: str, before: objects.ResourceClaim | None, after: objects.ResourceClaim | None) -> Iterator[Told]:
    if after is None:
        yield "deleted", {"object": f"ResourceClaim/{name}"}
        return
    if before is None:
        yield "created", {"object": f"ResourceClaim/{name}"}
        before = objects.ResourceClaim()
    users = {entry.uid: entry.name for entry in after.status.reserved_for}
    former = {entry.uid: entry.name for entry in before.status.reserved_for}
    for uid, user in former.items():
        if uid not in users:
            yield "released", {"claim": name, "pod": user}
    if before.status.allocation is not None and after.status.allocation is None:
        yield "deallocated", {"claim": name, "devices": _devices(before)}
    if after.status.allocation is not None and before.status.allocation is None:
        yield "allocated", {"claim": name, "devices": _devices(after)}
    for uid, user in users.items():
        if uid not in former:
            yield "reserved", {"claim": name, "pod": user}


def _devices(claim: objects.ResourceClaim) -> list[str]:
    return [short_device_name(device_name(result)) for result in allocated(claim)]
