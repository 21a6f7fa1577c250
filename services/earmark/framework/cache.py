"""The node cache: nodes and the pods on them, assumed pods included, and the snapshot of one attempt (upstream A11).

The cache keeps an immutable NodeInfo a node; a snapshot takes over only the NodeInfos that changed since it was last
brought up to date.
"""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Mapping

from earmark.framework.node_info import NodeInfo, PodInfo, required_anti_affinity
from earmark.kube import objects

# A snapshot numbers the shapes that it has seen; beyond this many it starts again.
_MOST_SHAPES = 50_000


class Snapshot:
    """The nodes as one attempt sees them, by name. Changed only by Cache.update_snapshot."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.order: list[str] = []
        self.pods_version = ""
        self.nodes_version = ""
        self._shapes: dict[str, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def shape(self, name: str) -> int:
        """Return the number of a node's shape: equal numbers, equal answers of filters that see no names or labels."""
        return self._shapes[name]

    def put(self, info: NodeInfo) -> None:
        """Add or replace a node."""
        if info.name not in self.nodes:
            bisect.insort(self.order, info.name)
        self.nodes[info.name] = info
        if len(self._numbers) > _MOST_SHAPES:
            self._numbers = {}
            for name, other in self.nodes.items():
                self._shapes[name] = self._number(other.shape())
        self._shapes[info.name] = self._number(info.shape())

    def drop(self, name: str) -> None:
        """Remove a node."""
        if self.nodes.pop(name, None) is not None:
            self.order.remove(name)
            del self._shapes[name]

    def _number(self, shape: Hashable) -> int:
        return self._numbers.setdefault(shape, len(self._numbers))

    def frozen(self) -> Snapshot:
        """Return a snapshot that stays as it is, for a dry run beside the scheduling cycle."""
        copy = Snapshot()
        copy.nodes = dict(self.nodes)
        copy.order = list(self.order)
        copy.pods_version, copy.nodes_version = self.pods_version, self.nodes_version
        copy._shapes = dict(self._shapes)
        return copy


class Cache:
    """Nodes with their pods. Pods on nodes that are not known (yet) are kept until the node comes."""

    def __init__(self) -> None:
        self._nodes: dict[str, NodeInfo] = {}
        self._pods: dict[str, PodInfo] = {}
        self._node_of: dict[str, str] = {}
        self._assumed: dict[str, None] = {}
        # Pods of nodes that are not in the cache, by node.
        self._homeless: dict[str, dict[str, PodInfo]] = {}
        self._dirty: dict[str, None] = {}
        # Pods whose required anti-affinity keeps others away; there are few of them.
        self._guards: dict[str, PodInfo] = {}
        # Pods that preemption has deleted, until the watch tells of it.
        self._leaving: dict[str, None] = {}

    # --- reading -----------------------------------------------------------------------------------------------------

    def node(self, name: str) -> NodeInfo | None:
        """Return a node as it is now."""
        return self._nodes.get(name)

    def node_of(self, uid: str) -> str:
        """Return the node of a pod in the cache, "" if it is not in it."""
        return self._node_of.get(uid, "")

    def assumed(self, uid: str) -> bool:
        """Whether the pod is assumed and not yet confirmed by the API."""
        return uid in self._assumed

    def leaving(self, uid: str) -> bool:
        """Whether preemption has deleted the pod and the watch has not told of it yet."""
        return uid in self._leaving

    def pod(self, uid: str) -> objects.Pod | None:
        """Return a pod in the cache."""
        info = self._pods.get(uid)
        return info.pod if info else None

    def __len__(self) -> int:
        return len(self._nodes)

    def guards(self) -> tuple[tuple[PodInfo, objects.Node], ...]:
        """Return the pods with required anti-affinity that are on known nodes, with their nodes."""
        return tuple(
            (pod, self._nodes[self._node_of[uid]].node)
            for uid, pod in self._guards.items()
            if self._node_of[uid] in self._nodes
        )

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Bring a snapshot up to date. There is one snapshot a cache: what it took over is not remembered here."""
        for name in sorted(self._dirty):
            info = self._nodes.get(name)
            if info is None:
                snapshot.drop(name)
            else:
                snapshot.put(info)
        self._dirty.clear()

    # --- nodes -------------------------------------------------------------------------------------------------------

    def put_node(self, node: objects.Node) -> None:
        """Add a node or take over its new state."""
        name = node.metadata.name
        known = self._nodes.get(name)
        if known is None:
            info = NodeInfo.of(node, tuple(self._homeless.pop(name, {}).values()))
        else:
            info = known.with_node(node)
        self._set(name, info)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are kept until they go themselves."""
        info = self._nodes.pop(name, None)
        if info is not None:
            if info.pods:
                self._homeless[name] = dict(info.pods)
            self._dirty[name] = None

    def _set(self, name: str, info: NodeInfo) -> None:
        self._nodes[name] = info
        self._dirty[name] = None

    # --- pods --------------------------------------------------------------------------------------------------------

    def assume(self, pod: PodInfo, node: str) -> None:
        """Count a pod on the node that was chosen for it, before the API knows.

        Raises:
            ValueError: if the pod is in the cache already.
        """
        if pod.uid in self._pods:
            raise ValueError(f"pod {pod.uid} is in the cache already")
        self._insert(pod, node)
        self._assumed[pod.uid] = None

    def forget(self, uid: str) -> bool:
        """Take an assumed pod out again; anything else is left alone (upstream A11.5)."""
        if uid not in self._assumed:
            return False
        self.remove_pod(uid)
        return True

    def leave(self, uid: str) -> None:
        """Remember that preemption has deleted a pod: a watch that is late must not let it be preempted once more."""
        info = self._pods.get(uid)
        if info is not None and info.pod.metadata.deletion_timestamp is None:
            self._leaving[uid] = None

    def put_pod(self, pod: PodInfo) -> None:
        """Add a bound pod or take over its new state; an assumed one is confirmed by it."""
        if pod.pod.metadata.deletion_timestamp is not None:
            self._leaving.pop(pod.uid, None)
        self._assumed.pop(pod.uid, None)
        if self._node_of.get(pod.uid) not in (None, pod.pod.spec.node_name):
            self.remove_pod(pod.uid)
        self._insert(pod, pod.pod.spec.node_name)

    def remove_pod(self, uid: str) -> None:
        """Remove a pod; one that is not there is ignored."""
        if self._pods.pop(uid, None) is None:
            return
        self._assumed.pop(uid, None)
        self._leaving.pop(uid, None)
        self._guards.pop(uid, None)
        name = self._node_of.pop(uid)
        info = self._nodes.get(name)
        if info is not None:
            self._set(name, info.without_pods((uid,)))
            return
        left = self._homeless.get(name, {})
        left.pop(uid, None)
        if not left:
            self._homeless.pop(name, None)

    def _insert(self, pod: PodInfo, node: str) -> None:
        self._pods[pod.uid] = pod
        self._node_of[pod.uid] = node
        if required_anti_affinity(pod.pod):
            self._guards[pod.uid] = pod
        info = self._nodes.get(node)
        if info is not None:
            self._set(node, info.with_pods((pod,)))
        else:
            self._homeless.setdefault(node, {})[pod.uid] = pod

    def nodes(self) -> Mapping[str, NodeInfo]:
        """Return the nodes as they are now, by name."""
        return self._nodes
