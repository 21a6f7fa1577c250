"""Why a pod fits nowhere: the diagnosis of one attempt and its text (upstream A2)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from earmark.framework.status import Code, Status

# A node without an explicit status: it was never looked at, and preemption does not help there.
ABSENT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Diagnosis:
    """What one attempt found out. Filled while the attempt runs."""

    # In the order in which nodes were looked at.
    node_statuses: dict[str, Status] = field(default_factory=dict)
    absent: Status = ABSENT
    pre_filter_message: str = ""
    pre_filter_rejected_by: str = ""
    post_filter_message: str = ""
    # Ordered, each name once: dicts as ordered sets.
    unschedulable_plugins: dict[str, None] = field(default_factory=dict)
    pending_plugins: dict[str, None] = field(default_factory=dict)
    # Plugins that rejected nodes while preemption looked for victims.
    dry_run_plugins: dict[str, None] = field(default_factory=dict)

    def status_of(self, node: str) -> Status:
        """Return a node's status, explicit or not."""
        return self.node_statuses.get(node, self.absent)

    def reject_node(self, node: str, status: Status) -> None:
        """Record why a node does not fit."""
        self.node_statuses[node] = status
        self.add_plugin(status)

    def add_plugin(self, status: Status) -> None:
        """Record the plugin of a rejection; a Pending one counts in both sets (upstream A1.7)."""
        if not status.plugin or not status.rejected:
            return
        self.unschedulable_plugins[status.plugin] = None
        if status.code is Code.PENDING:
            self.pending_plugins[status.plugin] = None

    def reject_dry_run(self, status: Status) -> None:
        """Record the plugin that rejects a node although pods were removed."""
        if status.plugin and status.rejected:
            self.dry_run_plugins[status.plugin] = None

    def preemption_failed(self) -> None:
        """Let the pod wait for the plugins of the dry run as well, which the filters may not have come to.

        A pod that lacks CPU is not asked about devices. If removing others gave it CPU but not devices, what it waits
        for is devices too, and a device that comes free has to wake it.
        """
        self.unschedulable_plugins.update(self.dry_run_plugins)


def fit_error(diagnosis: Diagnosis, nodes: int) -> str:
    """Return the text of the PodScheduled condition for a pod that fits on none of `nodes` nodes (upstream A2)."""
    text = f"0/{nodes} nodes are available:"
    if diagnosis.pre_filter_message:
        text += f" {diagnosis.pre_filter_message}."
    else:
        entries = histogram(diagnosis, nodes)
        if entries:
            text += f" {', '.join(entries)}."
    if diagnosis.post_filter_message:
        text += f" {diagnosis.post_filter_message}"
    return text


def histogram(diagnosis: Diagnosis, nodes: int) -> list[str]:
    """Return "COUNT REASON" for each reason, sorted as text; "10 x" comes before "2 y" (upstream A2.3)."""
    counts: Counter[str] = Counter()
    for status in diagnosis.node_statuses.values():
        counts.update(status.reasons)
    absent = nodes - len(diagnosis.node_statuses)
    if absent > 0:
        for reason in diagnosis.absent.reasons:
            counts[reason] += absent
    return sorted(f"{count} {reason}" for reason, count in counts.items())
