"""Why a pod is where it is, in words: what the framework and the device plugin answer becomes lines. Pure.

Nodes that are alike are one paragraph. What names a node, a device or a pod is left out when alike is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from earmark.cli.moments import ago, clock, moment
from earmark.v1 import common_pb2, explanation_pb2, framework_pb2
from earmark.v1.explanation_pb2 import AwaitedClaim, DeviceObstacle, ObstacleKind

DEVICE_PLUGIN = "DynamicResources"

# Of more nodes, devices or claims than these the rest is counted.
_NODES, _DEVICES = 6, 8

_WHERE = {
    "active": "is about to be tried",
    "backoff": "was tried and waits a moment before the next attempt",
    "unschedulable": "is pending: no node can take it now",
    "gated": "may not be scheduled yet",
    "in_flight": "is being scheduled at this moment",
    "bound": "is scheduled",
    "waiting_on_permit": "has a node and waits for permission",
    "pre_bind": "has a node and is being bound",
    "unknown": "is not in the scheduler's queue",
}


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are alike for the pod: what the filters say, what preemption says, what their devices lack."""

    nodes: tuple[str, ...]
    reasons: tuple[str, ...]
    plugin: str
    preemption: tuple[str, ...]
    devices: tuple[tuple[str, DeviceObstacle], ...] = ()
    # A node with no device of any kind that could be asked for.
    bare: bool = False
    # Claims that are awaited on these nodes.
    freed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is said about one pod."""

    pod: str
    where: str
    since: datetime | None
    message: str
    nominated_node: str
    attempts: int
    problem: str
    claims: tuple[explanation_pb2.ExplainedClaim, ...] = ()
    # Claims of victims, with the node.
    awaited: tuple[tuple[str, AwaitedClaim], ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    waits_for: tuple[str, ...] = field(default=())


def explained(
    pod: framework_pb2.ExplainPodResponse, devices: explanation_pb2.ExplainDevicesResponse | None
) -> Explanation:
    """Join what the framework says of nodes with what the plugin says of devices."""
    by_node = {node.node_name: node for node in devices.nodes} if devices is not None else {}
    return Explanation(
        pod=f"{pod.pod.namespace}/{pod.pod.name}",
        where=pod.where,
        since=moment(pod.since) if pod.HasField("since") else None,
        message=pod.message,
        nominated_node=pod.nominated_node_name,
        attempts=pod.attempts,
        problem=devices.problem if devices is not None else "",
        claims=tuple(devices.claims) if devices is not None else (),
        awaited=tuple((node.node_name, claim) for node in by_node.values() for claim in node.awaited),
        groups=tuple(_grouped(pod.reasons, by_node)),
        waits_for=tuple(pod.waits_for),
    )


def _grouped(
    reasons: Sequence[framework_pb2.NodeReason], by_node: dict[str, explanation_pb2.NodeDevices]
) -> Iterator[NodeGroup]:
    groups: dict[tuple[int, object], list[str]] = {}
    for number, reason in enumerate(reasons):
        for node in reason.nodes:
            about_devices = reason.status.plugin == DEVICE_PLUGIN and node in by_node
            alike = _alike(by_node[node].devices) if about_devices else ()
            groups.setdefault((number, alike), []).append(node)
    for (number, _), nodes in groups.items():
        reason = reasons[number]
        known = [by_node[node] for node in nodes if node in by_node] if reason.status.plugin == DEVICE_PLUGIN else []
        devices = tuple((node.node_name, item) for node in known for item in node.devices)
        yield NodeGroup(
            nodes=tuple(nodes),
            reasons=tuple(reason.status.reasons),
            plugin=reason.status.plugin,
            preemption=tuple(reason.preemption.reasons) if reason.HasField("preemption") else (),
            devices=devices,
            bare=bool(known) and not devices,
            freed=tuple((node.node_name, f"{item.namespace}/{item.name}") for node in known for item in node.awaited),
        )


def _alike(devices: Sequence[DeviceObstacle]) -> tuple[object, ...]:
    """What of a node's devices is compared with other nodes: neither names nor how many there are."""
    seen = {(item.request, item.kind, item.detail, not item.stays, item.priority) for item in devices}
    return tuple(sorted(seen, key=repr))


# --- lines -----------------------------------------------------------------------------------------------------------


def lines(explanation: Explanation, now: datetime) -> Iterator[str]:
    """Say it. `now` is for how long ago things were."""
    yield from _head(explanation, now)
    for node, claim in explanation.awaited:
        yield ""
        yield from _awaited(node, claim, now, explanation.nominated_node)
    for group in explanation.groups:
        yield ""
        yield from _group(group)
    if explanation.groups and explanation.waits_for:
        yield ""
        yield f"It is tried again when something changes for {', '.join(explanation.waits_for)}."


def _head(explanation: Explanation, now: datetime) -> Iterator[str]:
    since = f", since {clock(explanation.since)} ({ago(explanation.since, now)})" if explanation.since else ""
    attempts = f", after {_count(explanation.attempts, 'attempt')}" if explanation.attempts else ""
    yield f"{explanation.pod} {_WHERE.get(explanation.where, explanation.where)}{since}{attempts}."
    if explanation.nominated_node:
        yield f"It is nominated to node {explanation.nominated_node}: what it needs is held for it there."
    for claim in explanation.claims:
        if claim.devices:
            yield f"Its claim {claim.name} has {', '.join(claim.devices)}."
    if explanation.problem:
        yield f"Its claims cannot be used: {explanation.problem}"
    if explanation.message:
        yield f"The scheduler says: {explanation.message}"


def _awaited(node: str, claim: AwaitedClaim, now: datetime, nominated: str) -> Iterator[str]:
    victims = ", ".join(pod.name for pod in claim.victims) or "a preempted pod"
    name = f"{claim.namespace}/{claim.name}"
    devices = f" ({', '.join(claim.devices)})" if claim.devices else ""
    yield f"Node {node}{' (its node)' if node == nominated else ''} awaits claim {name}{devices}."
    if not claim.HasField("since"):
        return
    start = moment(claim.since)
    who = f"{claim.preemptor.namespace}/{claim.preemptor.name}"
    yield f"  {victims} was preempted for {who} at {clock(start)} ({ago(start, now)})."
    if claim.HasField("pods_gone"):
        gone = moment(claim.pods_gone)
        yield (
            f"  {victims} is gone since {clock(gone)} ({ago(gone, now)}), but the claim is still allocated: "
            f"the claim controller has not released it."
        )
    else:
        yield f"  {victims} still terminates; the claim is released after that."


def _group(group: NodeGroup) -> Iterator[str]:
    reason = "; ".join(group.reasons) or "no reason given"
    yield f"{_names(group.nodes)}: {reason}{f' (filter {group.plugin})' if group.plugin else ''}"
    if group.bare:
        yield "  There is no device on offer here."
    yield from _cut([_device(item, (node, item.claim) in group.freed) for node, item in group.devices])
    if group.devices and all(item.kind == ObstacleKind.OBSTACLE_KIND_FREE for _, item in group.devices):
        yield "  All of them match and are free: there are too few, or they do not go together."
    for text in group.preemption:
        yield f"  Preemption does not help: {text}"


def _device(item: DeviceObstacle, freed: bool) -> str:
    said = f"is being freed: claim {item.claim} is awaited, see above" if freed else _obstacle(item)
    return f"  {item.device} for {item.request}: {said}"


def _obstacle(item: DeviceObstacle) -> str:
    kind = item.kind
    if kind == ObstacleKind.OBSTACLE_KIND_CLASS:
        return f"is not of the class: {item.detail} is not true"
    if kind == ObstacleKind.OBSTACLE_KIND_SELECTOR:
        return f"does not match: {item.detail} is not true"
    if kind == ObstacleKind.OBSTACLE_KIND_TAINT:
        return f"has the taint {item.detail}, which the request does not tolerate"
    if kind == ObstacleKind.OBSTACLE_KIND_FREE:
        return "matches and is free"
    pods = ", ".join(f"{pod.namespace}/{pod.name}" for pod in item.pods) or "nobody"
    if kind == ObstacleKind.OBSTACLE_KIND_HELD:
        return f"is held for {pods} (priority {item.priority}), which preempted for it"
    taken = kind == ObstacleKind.OBSTACLE_KIND_ALLOCATED
    what = "is taken" if taken else f"is blocked by another partition ({item.detail})"
    text = f"{what} by {pods} (priority {item.priority}, claim {item.claim})"
    if taken and item.detail:
        text += f"; {item.detail}"
    return f"{text}; it cannot be preempted: {item.stays}" if item.stays else text


def _cut(texts: Sequence[str]) -> Iterator[str]:
    yield from texts[:_DEVICES]
    if len(texts) > _DEVICES:
        yield f"  ... and {_count(len(texts) - _DEVICES, 'device')} more that are alike"


def _names(nodes: Sequence[str]) -> str:
    if len(nodes) == 1:
        return f"Node {nodes[0]}"
    shown = ", ".join(nodes[:_NODES])
    rest = f" and {len(nodes) - _NODES} more" if len(nodes) > _NODES else ""
    return f"{len(nodes)} nodes ({shown}{rest})"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def as_data(explanation: Explanation) -> dict[str, object]:
    """Return the explanation as JSON data."""
    return {
        "pod": explanation.pod,
        "where": explanation.where,
        "since": explanation.since.isoformat() if explanation.since else None,
        "message": explanation.message,
        "nominatedNode": explanation.nominated_node or None,
        "attempts": explanation.attempts,
        "problem": explanation.problem or None,
        "claims": [{"name": f"{c.namespace}/{c.name}", "devices": list(c.devices)} for c in explanation.claims],
        "awaited": [_awaited_data(node, claim) for node, claim in explanation.awaited],
        "nodes": [_group_data(group) for group in explanation.groups],
        "waitsFor": list(explanation.waits_for),
    }


def _awaited_data(node: str, claim: AwaitedClaim) -> dict[str, object]:
    return {
        "node": node,
        "claim": f"{claim.namespace}/{claim.name}",
        "devices": list(claim.devices),
        "victims": [_name(pod) for pod in claim.victims],
        "preemptor": _name(claim.preemptor) if claim.HasField("preemptor") else None,
        "since": moment(claim.since).isoformat() if claim.HasField("since") else None,
        "podsGone": moment(claim.pods_gone).isoformat() if claim.HasField("pods_gone") else None,
    }


def _group_data(group: NodeGroup) -> dict[str, object]:
    return {
        "nodes": list(group.nodes),
        "filter": group.plugin or None,
        "reasons": list(group.reasons),
        "preemption": list(group.preemption),
        "devices": [
            {
                "node": node,
                "device": item.device,
                "request": item.request,
                "obstacle": ObstacleKind.Name(item.kind).removeprefix("OBSTACLE_KIND_").lower(),
                "detail": item.detail or None,
                "claim": item.claim or None,
                "pods": [_name(pod) for pod in item.pods],
                "priority": item.priority if item.pods else None,
                "stays": item.stays or None,
            }
            for node, item in group.devices
        ],
    }


def _name(pod: common_pb2.PodReference) -> str:
    return f"{pod.namespace}/{pod.name}"
