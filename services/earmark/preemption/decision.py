"""From what a dry run found to what is answered: a chosen candidate, or why there is none. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from earmark.preemption import messages
from earmark.preemption.choose import choose
from earmark.preemption.dryrun import DryRunResult
from earmark.preemption.values import Candidate, Code, Situation, Status

PLUGIN = "DefaultPreemption"


class NominationChange(enum.Enum):
    """What becomes of the preemptor's nominatedNodeName (upstream B1.5)."""

    KEEP = "keep"
    CLEAR = "clear"
    SET = "set"


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of a preemption; `chosen` is set where `status` is a success."""

    status: Status
    change: NominationChange
    chosen: Candidate | None = None
    candidates: tuple[Candidate, ...] = ()
    # Examined nodes that are no candidates.
    node_statuses: Mapping[str, Status] = field(default_factory=dict)


def not_eligible(reason: str) -> Decision:
    """The pod must not preempt; its nomination stays."""
    return Decision(Status(Code.UNSCHEDULABLE, (reason,), PLUGIN), NominationChange.KEEP)


def failed(reason: str) -> Decision:
    """Something broke before a decision; the nomination stays."""
    return Decision(Status(Code.ERROR, (reason,), PLUGIN), NominationChange.KEEP)


def decide(situation: Situation, found: DryRunResult) -> Decision:
    """Choose a candidate, or say why there is none.

    Without one the nomination is cleared, unless the nominated node itself only waits for what is being reclaimed there
    (decision F21). Errors of single nodes count only where there is no candidate (upstream B3.7).
    """
    if found.candidates:
        chosen = choose(found.candidates)
        status = Status(Code.SUCCESS, (messages.found(chosen.node.name, len(chosen.victims)),), PLUGIN)
        return Decision(status, NominationChange.SET, chosen, found.candidates, found.statuses)
    errors = [
        f"{node.name}: {'; '.join(found.statuses[node.name].reasons)}"
        for node in situation.nodes
        if node.name in found.statuses and found.statuses[node.name].code is Code.ERROR
    ]
    if errors:
        return Decision(
            Status(Code.ERROR, (", ".join(errors),), PLUGIN), NominationChange.KEEP, node_statuses=found.statuses
        )
    text = messages.fit_error([node.name for node in situation.nodes], found.statuses)
    waits = found.statuses.get(situation.preemptor.nominated_node) is messages.BEING_RECLAIMED
    change = NominationChange.KEEP if waits else NominationChange.CLEAR
    return Decision(Status(Code.UNSCHEDULABLE, (text,), PLUGIN), change, node_statuses=found.statuses)
