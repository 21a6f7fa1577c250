"""Ranking the nodes that a pod fits on (upstream A10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from earmark.framework.cache import Snapshot
from earmark.framework.node_info import PodInfo
from earmark.framework.plugins.interface import ScorePlugin


def scores(plugins: Sequence[ScorePlugin], pod: PodInfo, snapshot: Snapshot, names: Sequence[str]) -> dict[str, int]:
    """Return each node's sum of weighted scores of the in-process plugins."""
    totals = dict.fromkeys(names, 0)
    for plugin in plugins:
        state, ranks = plugin.pre_score(pod)
        if not ranks:
            continue
        raw = _raw(plugin, state, pod, snapshot, names)
        for name, score in zip(names, plugin.normalize(raw), strict=True):
            totals[name] += score * plugin.weight
    return totals


def _raw(plugin: ScorePlugin, state: Any, pod: PodInfo, snapshot: Snapshot, names: Sequence[str]) -> list[int]:
    if plugin.sees_identity:
        return [plugin.score(state, pod, snapshot.nodes[name]) for name in names]
    # Equal nodes get equal scores.
    known: dict[int, int] = {}
    raw = []
    for name in names:
        shape = snapshot.shape(name)
        score = known.get(shape)
        if score is None:
            score = known[shape] = plugin.score(state, pod, snapshot.nodes[name])
        raw.append(score)
    return raw


def best(totals: Mapping[str, int]) -> str:
    """Return the node with the highest score; ties by name, where upstream draws lots."""
    return min(totals, key=lambda name: (-totals[name], name))
