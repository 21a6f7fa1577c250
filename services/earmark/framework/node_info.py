"""NodeInfo: a node with its pods and what they take, as an immutable value.

A change makes a new NodeInfo and leaves the old one, so snapshots and forks of a dry run cost nothing but what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from earmark.framework import requests
from earmark.framework.requests import HostPort
from earmark.kube import objects


@dataclass(frozen=True, slots=True)
class PodInfo:
    """A pod with what scheduling needs of it, computed once."""

    pod: objects.Pod
    uid: str
    priority: int
    requests: Mapping[str, int]
    # Millicores and bytes for scoring: containers without requests count with defaults.
    scoring_cpu: int
    scoring_memory: int
    ports: tuple[HostPort, ...]
    # What the pod takes of a node, as a text: pods with equal ones leave equal room behind.
    signature: str = ""

    @classmethod
    def of(cls, pod: objects.Pod) -> PodInfo:
        """Compute a pod's requests and ports."""
        scoring = requests.pod_requests(pod, defaults=True)
        asked, ports = requests.pod_requests(pod), requests.host_ports(pod)
        cpu, memory = scoring.get(requests.CPU, 0), scoring.get(requests.MEMORY, 0)
        signature = f"{sorted(asked.items())} {cpu} {memory} {ports}"
        return cls(pod, pod.metadata.uid, pod.priority, asked, cpu, memory, ports, signature)


def required_anti_affinity(pod: objects.Pod) -> tuple[Mapping[str, Any], ...]:
    """Return the terms of a pod's required anti-affinity, as they came."""
    affinity = pod.spec.affinity
    if affinity is None or not isinstance(affinity.pod_anti_affinity, Mapping):
        return ()
    terms = affinity.pod_anti_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
    return tuple(term for term in terms if isinstance(term, Mapping))


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node, the pods on it in order of arrival (assumed ones too), and the sums."""

    node: objects.Node
    allocatable: Mapping[str, int]
    pods: Mapping[str, PodInfo]
    requested: Mapping[str, int]
    scoring_cpu: int = 0
    scoring_memory: int = 0
    ports: tuple[HostPort, ...] = ()

    @classmethod
    def of(cls, node: objects.Node, pods: Collection[PodInfo] = ()) -> NodeInfo:
        """Make a NodeInfo of a node and its pods."""
        empty = cls(node, requests.amounts(node.status.allocatable or node.status.capacity), {}, {})
        return empty.with_pods(pods)

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def with_node(self, node: objects.Node) -> NodeInfo:
        """Return the NodeInfo with another state of the node."""
        allocatable = requests.amounts(node.status.allocatable or node.status.capacity)
        return NodeInfo(node, allocatable, self.pods, self.requested, self.scoring_cpu, self.scoring_memory, self.ports)

    def with_pods(self, added: Collection[PodInfo]) -> NodeInfo:
        """Return the NodeInfo with more pods, at the end; a pod that is there already is replaced in place."""
        replaced = [info.uid for info in added if info.uid in self.pods]
        base = self if not replaced else self._with_sums(replaced, -1)
        pods = dict(self.pods)
        for info in added:
            pods[info.uid] = info
        return _summed(base, pods, added, 1)

    def without_pods(self, uids: Collection[str]) -> NodeInfo:
        """Return the NodeInfo without these pods; UIDs that are not there are ignored."""
        gone = [uid for uid in uids if uid in self.pods]
        return self if not gone else self._with_sums(gone, -1)

    def _with_sums(self, gone: Collection[str], sign: int) -> NodeInfo:
        leaving = dict.fromkeys(gone)
        pods = {uid: info for uid, info in self.pods.items() if uid not in leaving}
        return _summed(self, pods, [self.pods[uid] for uid in leaving], sign)

    def shape(self) -> Hashable:
        """Return what filters see of the node apart from its name and labels. Equal shapes get equal answers."""
        taints = tuple((taint.key, taint.value, taint.effect) for taint in self.node.spec.taints)
        return (
            self.node.spec.unschedulable,
            taints,
            tuple(sorted(self.allocatable.items())),
            tuple(sorted(self.requested.items())),
            self.scoring_cpu,
            self.scoring_memory,
            tuple(sorted(self.ports)),
            len(self.pods),
        )


def _summed(base: NodeInfo, pods: Mapping[str, PodInfo], changed: Collection[PodInfo], sign: int) -> NodeInfo:
    requested = dict(base.requested)
    scoring_cpu, scoring_memory = base.scoring_cpu, base.scoring_memory
    ports_changed = False
    for info in changed:
        for name, amount in info.requests.items():
            total = requested.get(name, 0) + sign * amount
            if total:
                requested[name] = total
            else:
                requested.pop(name, None)
        scoring_cpu += sign * info.scoring_cpu
        scoring_memory += sign * info.scoring_memory
        ports_changed = ports_changed or bool(info.ports)
    ports = tuple(port for info in pods.values() for port in info.ports) if ports_changed else base.ports
    return NodeInfo(base.node, base.allocatable, pods, requested, scoring_cpu, scoring_memory, ports)
