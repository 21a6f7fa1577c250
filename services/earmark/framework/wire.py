"""Values of this service and the messages of the contract, translated into each other."""

from __future__ import annotations

from collections.abc import Iterable

from earmark.framework.nominator import NominatedPod, Victim
from earmark.framework.status import Code, Status
from earmark.kube import objects
from earmark.v1 import common_pb2


def pod_reference(pod: objects.Pod) -> common_pb2.PodReference:
    """Return a pod's reference."""
    return reference(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def reference(namespace: str, name: str, uid: str) -> common_pb2.PodReference:
    """Return a reference."""
    return common_pb2.PodReference(namespace=namespace, name=name, uid=uid)


def nominated_reference(nomination: NominatedPod) -> common_pb2.PodReference:
    """Return the reference of a nominated pod."""
    return reference(nomination.namespace, nomination.name, nomination.uid)


def pod_input(pod: objects.Pod) -> common_pb2.PodInput:
    """Return a pod that is in the API as the input of a cycle."""
    return common_pb2.PodInput(
        pod=pod_reference(pod), priority=pod.priority, resource_version=pod.metadata.resource_version
    )


def to_status(message: common_pb2.Status, plugin: str = "") -> Status:
    """Return a status from its message; an absent or empty one is a success (upstream A1.1).

    A code that this side does not know is an error: whatever it means, it is no success.
    """
    if message.code == common_pb2.STATUS_CODE_UNSPECIFIED:
        return Status(Code.SUCCESS)
    if message.code not in common_pb2.StatusCode.values():
        return Status(Code.ERROR, (f"status code {message.code} is not known",), message.plugin or plugin)
    return Status(Code(message.code), tuple(message.reasons), message.plugin or plugin)


def from_status(status: Status) -> common_pb2.Status:
    """Return a status' message."""
    return common_pb2.Status(
        code=common_pb2.StatusCode.ValueType(int(status.code)), reasons=status.reasons, plugin=status.plugin
    )


def to_nomination(message: common_pb2.Nomination) -> NominatedPod:
    """Return a nomination from its message."""
    return NominatedPod(
        message.pod.uid,
        message.pod.namespace,
        message.pod.name,
        message.node_name,
        message.priority,
        message.generation,
        tuple(Victim(victim.namespace, victim.name, victim.uid) for victim in message.victims),
        dict(sorted(message.records.items())),
    )


def from_nomination(nomination: NominatedPod) -> common_pb2.Nomination:
    """Return a nomination's message."""
    return common_pb2.Nomination(
        pod=nominated_reference(nomination),
        node_name=nomination.node,
        generation=nomination.generation,
        priority=nomination.priority,
        victims=victim_references(nomination.victims),
        records=nomination.records,
    )


def victim_references(victims: Iterable[Victim]) -> list[common_pb2.PodReference]:
    """Return the references of victims."""
    return [reference(victim.namespace, victim.name, victim.uid) for victim in victims]


class StatusTable:
    """Statuses sent once and named by index."""

    def __init__(self) -> None:
        self.messages: list[common_pb2.Status] = []
        self._index: dict[Status, int] = {}

    def index(self, status: Status) -> int:
        """Return the index of a status, added if it is new."""
        found = self._index.get(status)
        if found is None:
            found = self._index[status] = len(self.messages)
            self.messages.append(from_status(status))
        return found
