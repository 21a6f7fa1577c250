"""What a preemption decides on, as values: the preemptor, the nodes with their pods, statuses.

Indices (of nodes and pods) are those of the tables that the framework sent. Nothing here decides anything.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


class Code(enum.IntEnum):
    """The scheduler framework's status codes, with the numbers of the contract."""

    SUCCESS = 1
    ERROR = 2
    UNSCHEDULABLE = 3
    UNSCHEDULABLE_AND_UNRESOLVABLE = 4
    WAIT = 5
    SKIP = 6
    PENDING = 7


@dataclass(frozen=True, slots=True)
class Status:
    """The result of a filter or a plugin."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def success(self) -> bool:
        """Whether the code is SUCCESS."""
        return self.code is Code.SUCCESS


SUCCESS = Status(Code.SUCCESS)


@dataclass(frozen=True, slots=True)
class PodId:
    """One pod; the UID decides, the rest is for people and API calls."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The pod that needs room."""

    pod: PodId
    priority: int
    # "" stands for PreemptLowerPriority.
    policy: str = ""
    # The nomination in memory, else that of the API; "" if there is none.
    nominated_node: str = ""


@dataclass(frozen=True, slots=True)
class PotentialVictim:
    """A pod on a node that the preemptor's priority exceeds."""

    index: int
    pod: PodId
    priority: int
    # A pod that has not started counts as started now (upstream B4.5).
    start: datetime
    labels: Mapping[str, str]
    terminating: bool = False
    preempted_by_scheduler: bool = False
    in_pod_group: bool = False

    @property
    def terminating_by_preemption(self) -> bool:
        """Whether it is on its way out because a scheduler preempted it (upstream B2.5)."""
        return self.terminating and self.preempted_by_scheduler


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the snapshot, and why the preemptor does not fit there."""

    index: int
    name: str
    status: Status
    # Pods of lower priority in the snapshot's order; empty where nobody asked for them.
    pods: tuple[PotentialVictim, ...] = ()
    # UIDs of the other pods nominated here with at least the preemptor's priority, in the order of application.
    nominated_pod_uids: tuple[str, ...] = ()
    unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class PluginCycle:
    """The open session and cycle of a plugin with NominationExtensions."""

    plugin: str
    session_id: str
    session_epoch: int
    cycle_id: str


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that one preemption decides on: a cycle's nodes, in the snapshot's order, and its statuses."""

    cycle_id: str
    preemptor: Preemptor
    nodes: tuple[Node, ...]
    plugin_cycles: tuple[PluginCycle, ...] = ()
    # The plugin whose PreFilter rejected all nodes; "" if none did.
    pre_filter_rejected_by: str = ""

    def node(self, name: str) -> Node | None:
        """Return the node of this name, if the snapshot has it."""
        return next((node for node in self.nodes if node.name == name), None)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which the preemptor fits when the victims go."""

    node: Node
    # Most important first. Never empty.
    victims: tuple[PotentialVictim, ...]
    pdb_violations: int
