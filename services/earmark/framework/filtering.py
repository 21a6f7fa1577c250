"""In-process filters over the nodes of a snapshot: two passes where pods are nominated (upstream A7), equal nodes once.

A filter run answers per node with a Verdict; `combine` puts together with it what remote plugins say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from earmark.framework.cache import Snapshot
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.nominator import Nominator
from earmark.framework.plugins.interface import FilterPlugin
from earmark.framework.status import Code, Status


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the in-process filters say of a node; None is a success.

    `nominated` are the pods that pass 1 adds, in order of application; without any there is one pass, and `second` is
    its copy.
    """

    first: Status | None
    second: Status | None
    nominated: tuple[str, ...] = ()


RemoteVerdict = tuple[Status | None, bool]


@dataclass(frozen=True, slots=True)
class PreFiltered:
    """What PreFilter of the in-process plugins left: active plugins with their states, or a rejection."""

    active: tuple[tuple[FilterPlugin, Any], ...]
    rejection: Status | None = None
    # The only nodes that can fit, and the plugins that narrowed to them; None: all.
    nodes: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()


def pre_filter(plugins: Sequence[FilterPlugin], pod: PodInfo) -> PreFiltered:
    """Run PreFilter (upstream A4): UNSCHEDULABLE is remembered, UNSCHEDULABLE_AND_UNRESOLVABLE ends it."""
    active: list[tuple[FilterPlugin, Any]] = []
    rejection: Status | None = None
    nodes: frozenset[str] | None = None
    narrowed: list[str] = []
    for plugin in plugins:
        result = plugin.pre_filter(pod)
        status = result.status.by(plugin.name)
        if status.code is Code.SKIP:
            continue
        if not status.success:
            rejection = rejection or status
            if status.code is not Code.UNSCHEDULABLE:
                return PreFiltered((), status)
            continue
        active.append((plugin, result.state))
        if result.nodes is not None:
            nodes = result.nodes if nodes is None else nodes & result.nodes
            narrowed.append(plugin.name)
    return PreFiltered(tuple(active), rejection, nodes, tuple(narrowed))


def narrowed_text(plugins: Sequence[str], *, nothing_left: bool) -> str:
    """Return the reason for nodes outside of what PreFilter narrowed to (upstream A4.5, A4.7)."""
    names = " ".join(plugins)
    if nothing_left and len(plugins) > 1:
        return f"node(s) didn't satisfy plugin(s) [{names}] simultaneously"
    return f"node(s) didn't satisfy plugin(s) [{names}]"


class NodeFilter:
    """The in-process filters for one pod in one cycle."""

    def __init__(
        self,
        active: Sequence[tuple[FilterPlugin, Any]],
        pod: PodInfo,
        snapshot: Snapshot,
        nominator: Nominator,
        pod_of: Callable[[str], PodInfo | None],
    ) -> None:
        """Filter for `pod`. `pod_of` finds a nominated pod that is pending by its UID."""
        self._active = tuple(active)
        self._identity = tuple(item for item in active if item[0].sees_identity)
        self._pod = pod
        self._snapshot = snapshot
        self._nominator = nominator
        self._pod_of = pod_of
        self._seen: dict[tuple[int, tuple[bool, ...]], Status | None] = {}
        self._seen_forks: dict[tuple[int, tuple[bool, ...], tuple[str, ...]], Verdict] = {}

    def nominated(self, node: str) -> tuple[str, ...]:
        """Return the UIDs that pass 1 adds on a node: other pods of at least the pod's priority (upstream A7.2)."""
        return tuple(
            nomination.uid
            for nomination in self._nominator.on_node(node)
            if nomination.uid != self._pod.uid and nomination.priority >= self._pod.priority
        )

    def verdict(self, name: str) -> Verdict:
        """Filter a node as it is in the snapshot."""
        info = self._snapshot.nodes[name]
        nominated = self.nominated(name)
        if nominated:
            return self._two_passes(info, nominated)
        status = self._grouped(name, info)
        return Verdict(status, status)

    def verdict_without(self, name: str, removed: Collection[str]) -> Verdict:
        """Filter a node's fork from which pods are taken away (a dry run; the snapshot stays)."""
        info = self._snapshot.nodes[name]
        nominated = self.nominated(name)
        if nominated:
            return self._two_passes(info.without_pods(removed), nominated)
        # Forks of equal nodes without equal pods are equal.
        pods = info.pods
        gone = tuple(sorted([pods[uid].signature for uid in removed if uid in pods]))
        key = (self._snapshot.shape(name), self._answers_by_identity(info), gone)
        found = self._seen_forks.get(key)
        if found is None:
            status = self._run(info.without_pods(removed))
            found = self._seen_forks[key] = Verdict(status, status)
        return found

    def _two_passes(self, info: NodeInfo, nominated: tuple[str, ...]) -> Verdict:
        # A nominated pod that no queue has counts with no resources (upstream A7.7); one that is on the node already
        # (a state in passing) is not counted twice.
        pods = [pod for uid in nominated if uid not in info.pods and (pod := self._pod_of(uid)) is not None]
        first = self._run(info.with_pods(pods))
        return Verdict(first, first if first is not None else self._run(info), nominated)

    def _grouped(self, name: str, info: NodeInfo) -> Status | None:
        key = (self._snapshot.shape(name), self._answers_by_identity(info))
        if key in self._seen:
            return self._seen[key]
        status = self._seen[key] = self._run(info)
        return status

    def _answers_by_identity(self, info: NodeInfo) -> tuple[bool, ...]:
        """What the filters say that look at names and labels; those do not depend on the pods of a node."""
        return tuple(plugin.filter(state, self._pod, info) is None for plugin, state in self._identity)

    def _run(self, info: NodeInfo) -> Status | None:
        for plugin, state in self._active:
            status = plugin.filter(state, self._pod, info)
            if status is not None:
                return status.by(plugin.name)
        return None


def combine(verdict: Verdict, remotes: Sequence[RemoteVerdict]) -> Status | None:
    """Put the remote plugins' answers for a node together with the in-process one (upstream A7.2 over all filters).

    Pass 1 of everything comes before pass 2 of everything; within a pass the order of plugins decides.

    Args:
        verdict: the in-process answer.
        remotes: each plugin's status (None: success) and whether it is that of pass 1, in the plugins' order.
    """
    if verdict.first is not None:
        return verdict.first
    for status, first_pass in remotes:
        if status is not None and first_pass:
            return status
    if verdict.second is not None:
        return verdict.second
    return next((status for status, _ in remotes if status is not None), None)
