"""What an in-process plugin is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from earmark.framework.events import Hint
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.status import SUCCESS, Status
from earmark.kube import objects

MAX_SCORE = 100


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """The answer of pre_filter: what filter and score are given, and the only nodes that can fit (None: all)."""

    status: Status = SUCCESS
    state: Any = None
    nodes: frozenset[str] | None = None


class FilterPlugin(Protocol):
    """Decides for one pod and one node. `filter` returns None where the pod fits."""

    @property
    def name(self) -> str:
        """The plugin's name, as upstream."""

    @property
    def sees_identity(self) -> bool:
        """Whether `filter` looks at the node's name or labels, so that equal shapes may get different answers."""

    @property
    def hints(self) -> Mapping[str, Hint]:
        """The cluster events at which a pod that it rejected may fit, each with its hint."""

    def pre_filter(self, pod: PodInfo) -> PreFilterResult:
        """Look at the pod once a cycle; SKIP leaves the plugin out of the cycle."""

    def filter(self, state: Any, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Decide for one node."""


class ScorePlugin(Protocol):
    """Ranks nodes."""

    @property
    def name(self) -> str:
        """The plugin's name, as upstream."""

    @property
    def sees_identity(self) -> bool:
        """Whether `score` looks at the node's name or labels."""

    @property
    def weight(self) -> int:
        """What normalized scores are multiplied with."""

    def pre_score(self, pod: PodInfo) -> tuple[Any, bool]:
        """Return the state for `score` and whether there is anything to rank by."""

    def score(self, state: Any, pod: PodInfo, node: NodeInfo) -> int:
        """Return the raw score of a node."""

    def normalize(self, scores: Sequence[int]) -> Sequence[int]:
        """Bring raw scores to 0..100."""


class PreEnqueuePlugin(Protocol):
    """Decides whether a pod may enter the active queue."""

    @property
    def name(self) -> str:
        """The plugin's name, as upstream."""

    @property
    def hints(self) -> Mapping[str, Hint]:
        """The cluster events that a pod gated by it listens to."""

    def pre_enqueue(self, pod: objects.Pod) -> Status | None:
        """Return why the pod may not enter, or None."""


def default_normalize(scores: Sequence[int], *, reverse: bool) -> Sequence[int]:
    """Scale so that the largest becomes 100 (upstream DefaultNormalizeScore)."""
    highest = max(scores, default=0)
    if highest == 0:
        return [MAX_SCORE] * len(scores) if reverse else list(scores)
    scaled = [score * MAX_SCORE // highest for score in scores]
    return [MAX_SCORE - score for score in scaled] if reverse else scaled
