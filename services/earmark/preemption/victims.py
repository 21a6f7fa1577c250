"""Which of a node's pods matter more, and which budgets their disruption would violate (upstream B4.5, B4.6). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from earmark.kube.objects import PodDisruptionBudget
from earmark.kube.selectors import label_selector_matches
from earmark.preemption.values import PotentialVictim


def importance(victim: PotentialVictim) -> tuple[int, int, datetime]:
    """Return a key that sorts the most important pod first.

    Higher priority, then membership in a group, then the earlier start. Upstream's sort is not stable; ours is, so that
    equal pods keep the node's order.
    """
    return (-victim.priority, 0 if victim.in_pod_group else 1, victim.start)


def most_important_first(victims: Iterable[PotentialVictim]) -> tuple[PotentialVictim, ...]:
    """Return the pods, the most important first; equal ones in the order given."""
    return tuple(sorted(victims, key=importance))


def split_by_budgets(
    victims: Sequence[PotentialVictim], budgets: Sequence[PodDisruptionBudget]
) -> tuple[tuple[PotentialVictim, ...], tuple[PotentialVictim, ...]]:
    """Split pods into those whose disruption violates a budget and the others, each in the order given.

    Counters begin at status.disruptionsAllowed and go down with every pod; the first counter of a pod to go below zero
    makes it a violating one, and its later budgets are not charged. A pod that a budget lists as disrupted already
    costs it nothing. Empty and invalid selectors match nothing.
    """
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating: list[PotentialVictim] = []
    others: list[PotentialVictim] = []
    for victim in victims:
        violates = False
        for index, budget in enumerate(budgets):
            if not _covers(budget, victim):
                continue
            allowed[index] -= 1
            if allowed[index] < 0:
                violates = True
                break
        (violating if violates else others).append(victim)
    return tuple(violating), tuple(others)


def _covers(budget: PodDisruptionBudget, victim: PotentialVictim) -> bool:
    selector = budget.spec.selector
    if not victim.labels or budget.metadata.namespace != victim.pod.namespace or selector is None:
        return False
    if not selector.match_labels and not selector.match_expressions:
        return False
    return victim.pod.name not in budget.status.disrupted_pods and label_selector_matches(selector, victim.labels)
