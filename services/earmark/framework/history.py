"""What the last failed attempt of each pod found out, for explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from earmark.framework import wire
from earmark.framework.cycle import Cycle
from earmark.framework.status import Status
from earmark.v1 import framework_pb2


@dataclass(frozen=True, slots=True)
class History:
    """Reasons with the nodes that they hold for, and what preemption said of nodes."""

    reasons: tuple[tuple[Status, tuple[str, ...]], ...]
    preemption: tuple[framework_pb2.NodeReason, ...]

    def node_reasons(self) -> list[framework_pb2.NodeReason]:
        """Return the reasons as messages, split where preemption said different things of their nodes."""
        said = {
            node: reason.preemption
            for reason in self.preemption
            if reason.HasField("preemption")
            for node in reason.nodes
        }
        messages: list[framework_pb2.NodeReason] = []
        for status, nodes in self.reasons:
            groups: dict[bytes, list[str]] = {}
            for node in nodes:
                key = said[node].SerializeToString(deterministic=True) if node in said else b""
                groups.setdefault(key, []).append(node)
            for members in groups.values():
                message = framework_pb2.NodeReason(status=wire.from_status(status), nodes=members)
                if members[0] in said:
                    message.preemption.CopyFrom(said[members[0]])
                messages.append(message)
        return messages


# Histories of more pods than this are not kept: each names every node.
_MOST = 500


class Histories:
    """The newest history of each pending pod."""

    def __init__(self) -> None:
        self._by_uid: dict[str, History] = {}

    def remember(self, cycle: Cycle, preemption: Sequence[framework_pb2.NodeReason]) -> None:
        """Keep what a failed attempt found."""
        groups: dict[Status, list[str]] = {}
        for name in cycle.snapshot.order:
            groups.setdefault(cycle.diagnosis.status_of(name), []).append(name)
        reasons = tuple((status, tuple(nodes)) for status, nodes in groups.items())
        self._by_uid.pop(cycle.pod.uid, None)
        while len(self._by_uid) >= _MOST:
            del self._by_uid[next(iter(self._by_uid))]
        self._by_uid[cycle.pod.uid] = History(reasons, tuple(preemption))

    def get(self, uid: str) -> History | None:
        """Return a pod's history."""
        return self._by_uid.get(uid)

    def forget(self, uid: str) -> None:
        """A pod is scheduled or gone."""
        self._by_uid.pop(uid, None)
