"""Whether a pod may preempt at all. Pure; what plugins say is asked by whoever holds the connection."""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass

from earmark.preemption.values import Code, Node, Situation

POLICY_NEVER = "Never"
NEVER_REASON = "not eligible due to preemptionPolicy=Never."
TERMINATING_REASON = "not eligible due to a terminating pod on the nominated node."


class Next(enum.Enum):
    """What follows from the first look."""

    ELIGIBLE = "eligible"
    INELIGIBLE = "ineligible"
    # Eligible unless a plugin objects; `after_plugins` has the last word.
    ASK_PLUGINS = "ask plugins"


@dataclass(frozen=True, slots=True)
class Eligibility:
    """A verdict, with the text for the pod's condition where it is negative."""

    next: Next
    reason: str = ""


ELIGIBLE = Eligibility(Next.ELIGIBLE)


def before_plugins(situation: Situation, nomination_plugins: Collection[str]) -> Eligibility:
    """Look at policy and nominated node.

    A node that is gone or cordoned, or that a filter of the node's own kind has ruled out, is no reason to wait, and
    upstream's order applies (B2.3). A rejection by PreFilter, or by a plugin that holds resources for nominated pods,
    may be the passing result of the reclaiming itself: the plugins are asked first, and the nomination survives.
    KEP: Deferring (decisions F2, F3).
    """
    preemptor = situation.preemptor
    if preemptor.policy == POLICY_NEVER:
        return Eligibility(Next.INELIGIBLE, NEVER_REASON)
    if not preemptor.nominated_node:
        return ELIGIBLE
    node = situation.node(preemptor.nominated_node)
    if node is None:
        return ELIGIBLE
    if _unresolvable(node):
        passing = bool(situation.pre_filter_rejected_by) or node.status.plugin in nomination_plugins
        if node.unschedulable or not passing:
            return ELIGIBLE
    return Eligibility(Next.ASK_PLUGINS)


def after_plugins(situation: Situation) -> Eligibility:
    """Look for a pod that is still terminating by preemption on the nominated node (upstream B2.3, B2.4).

    To be called when no plugin objected. It does not matter who preempted that pod (B2.6).
    """
    node = situation.node(situation.preemptor.nominated_node)
    if node is None or _unresolvable(node):
        return ELIGIBLE
    if any(pod.terminating_by_preemption and pod.priority < situation.preemptor.priority for pod in node.pods):
        return Eligibility(Next.INELIGIBLE, TERMINATING_REASON)
    return ELIGIBLE


def _unresolvable(node: Node) -> bool:
    return node.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
