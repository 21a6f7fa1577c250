"""Whether an expectation holds. Pure: looks at what it is given and returns what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from earmark.kube import objects
from earmark.simulation.cluster import Cluster, allocated, device_name, display, short_device_name
from earmark.simulation.expectation import (
    ClaimExpectation,
    EventExpectation,
    Expectation,
    NominationExpectation,
    OneOf,
    PodExpectation,
)
from earmark.simulation.report import Failure

POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"


@dataclass(frozen=True, slots=True)
class HeldCapacity:
    """A live claim nomination."""

    # As reports call the pod.
    pod: str
    node: str
    # DRIVER/POOL/DEVICE.
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """What an expectation is checked against."""

    cluster: Cluster
    # Names of the evicted pods, one for each accepted deletion.
    evictions: tuple[str, ...] = ()
    # None: there is nobody to ask, the service is stopped.
    nominations: tuple[HeldCapacity, ...] | None = ()
    # Value of a metric by name; None where nobody has it.
    metric: Callable[[str], float | None] = lambda _: None


Finding = tuple[str, Any, Any]


def check(expectation: Expectation, seen: Observation, at: float) -> tuple[Failure, ...]:
    """Return what does not hold, in the order of the format's keys."""
    return tuple(Failure(at, path, want, got) for path, want, got in _findings(expectation, seen))


def _findings(expectation: Expectation, seen: Observation) -> Iterator[Finding]:
    for name, pod in expectation.pods.items():
        yield from _pod(f"pods.{name}", pod, seen.cluster.pod(name))
    for name, claim in expectation.claims.items():
        yield from _claim(f"claims.{name}", claim, seen.cluster.claim(name))
    if expectation.evicted is not None:
        got = sorted(set(seen.evictions))
        if sorted({_plain(name) for name in expectation.evicted}) != got:
            yield "evicted", sorted(expectation.evicted), got
    if expectation.evictions is not None and not expectation.evictions.accepts(len(seen.evictions)):
        yield "evictions", expectation.evictions.wanted, len(seen.evictions)
    if expectation.nominations is not None:
        yield from _nominations(expectation.nominations, seen)
    for i, event in enumerate(expectation.events):
        yield from _event(f"events[{i}]", event, seen.cluster)
    for name, value in expectation.metrics.items():
        got_value = seen.metric(name)
        if not value.accepts(got_value):
            yield f"metrics.{name}", value.wanted, got_value


def _plain(name: str) -> str:
    return name.removeprefix("default/")


def pod_condition(pod: objects.Pod, kind: str) -> objects.Condition | None:
    """Return the pod's condition of this type."""
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


def pod_values(pod: objects.Pod) -> dict[str, Any]:
    """Return what an expectation can ask of a pod that exists, by the format's keys; None: not set."""
    scheduled = pod_condition(pod, POD_SCHEDULED)
    disrupted = pod_condition(pod, DISRUPTION_TARGET)
    return {
        "node": pod.spec.node_name or None,
        "nominatedNode": pod.status.nominated_node_name or None,
        "phase": pod.status.phase or None,
        "terminating": pod.metadata.deletion_timestamp is not None,
        "absent": False,
        "reason": (scheduled.reason or None) if scheduled else None,
        "message": (scheduled.message or None) if scheduled else None,
        "disruptionTarget": (disrupted.reason or None) if disrupted else None,
    }


def _pod(path: str, want: PodExpectation, pod: objects.Pod | None) -> Iterator[Finding]:
    if pod is None:
        if not _absence_accepted(want.values.get("absent")):
            yield path, _wanted(want), "absent"
        return
    got = pod_values(pod)
    for key, value in want.values.items():
        if not value.accepts(got[key]):
            yield f"{path}.{key}", value.wanted, got[key]
    if want.message is not None and not want.message.accepts(got["message"]):
        yield f"{path}.message", want.message.wanted, got["message"]


def _absence_accepted(absent: OneOf | None) -> bool:
    return absent is not None and absent.accepts(True)


def _wanted(want: PodExpectation) -> dict[str, Any]:
    wanted = {key: value.wanted for key, value in want.values.items()}
    return wanted if want.message is None else {**wanted, "message": want.message.wanted}


def _claim(path: str, want: ClaimExpectation, claim: objects.ResourceClaim | None) -> Iterator[Finding]:
    if claim is None:
        if not _absence_accepted(want.absent):
            yield path, "a claim", "absent"
        return
    if want.absent is not None and not want.absent.accepts(False):
        yield f"{path}.absent", want.absent.wanted, False
    if want.devices is not None:
        got = [device_name(result) for result in allocated(claim)]
        if not same_devices(want.devices, got):
            yield f"{path}.devices", sorted(want.devices), sorted(map(short_device_name, got))
    if want.reserved_for is not None:
        reserved = sorted({_consumer(claim, entry) for entry in claim.status.reserved_for})
        if sorted({_plain(name) for name in want.reserved_for}) != reserved:
            yield f"{path}.reservedFor", sorted(want.reserved_for), reserved
    if want.allocated is not None:
        is_allocated = claim.status.allocation is not None
        if not want.allocated.accepts(is_allocated):
            yield f"{path}.allocated", want.allocated.wanted, is_allocated


def _consumer(claim: objects.ResourceClaim, entry: objects.ResourceClaimConsumerReference) -> str:
    return entry.name if entry.resource == "pods" else f"{entry.resource}/{entry.name}"


def same_devices(want: Collection[str], got: Collection[str]) -> bool:
    """Whether two sets of devices are equal, `want` written as POOL/DEVICE or DRIVER/POOL/DEVICE."""
    left = sorted(set(got))
    for name in sorted(set(want), key=lambda name: -name.count("/")):
        match = next((full for full in left if name in (full, short_device_name(full))), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _nominations(want: Mapping[str, NominationExpectation], seen: Observation) -> Iterator[Finding]:
    if seen.nominations is None:
        yield "nominations", sorted(want), "unknown: dynamicresources is stopped"
        return
    held = {nomination.pod: nomination for nomination in seen.nominations}
    wanted = {_plain(name): value for name, value in want.items()}
    if sorted(wanted) != sorted(held):
        yield "nominations", sorted(wanted), sorted(held)
    for name, value in wanted.items():
        nomination = held.get(name)
        if nomination is None:
            continue
        if value.node is not None and not value.node.accepts(nomination.node):
            yield f"nominations.{name}.node", value.node.wanted, nomination.node
        if value.devices is not None and not same_devices(value.devices, nomination.devices):
            got = sorted(map(short_device_name, nomination.devices))
            yield f"nominations.{name}.devices", sorted(value.devices), got


def _event(path: str, want: EventExpectation, cluster: Cluster) -> Iterator[Finding]:
    about = [
        event.reason
        for event in cluster.events.values()
        if want.object in (event.regarding.name, display(event.regarding.namespace, event.regarding.name))
    ]
    if want.reason not in about:
        yield path, {"object": want.object, "reason": want.reason}, sorted(set(about))
