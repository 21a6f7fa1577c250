"""Between the messages of the contract and this service's values. No RPC is made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from earmark.preemption.decision import Decision, NominationChange
from earmark.preemption.dryrun import Query
from earmark.preemption.execution import Order, Outcome, VictimResult
from earmark.preemption.messages import NOT_HELPFUL
from earmark.preemption.values import (
    SUCCESS,
    Candidate,
    Code,
    Node,
    PluginCycle,
    PodId,
    PotentialVictim,
    Preemptor,
    Situation,
    Status,
)
from earmark.v1 import common_pb2, framework_pb2, preemption_pb2


class InvalidInput(ValueError):
    """A message cannot be used; the text names the field and what would be right."""


def pod_id(message: common_pb2.PodReference, field: str) -> PodId:
    """Read a pod reference. Raises InvalidInput if it has no UID."""
    if not message.uid:
        raise InvalidInput(f"{field}.uid: want the pod's UID")
    return PodId(message.namespace, message.name, message.uid)


def pod_message(pod: PodId) -> common_pb2.PodReference:
    """Write a pod reference."""
    return common_pb2.PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def status_of(message: common_pb2.Status, field: str = "status") -> Status:
    """Read a status; one without a code is a success, as an absent one is. Raises InvalidInput for an unknown code."""
    if message.code == common_pb2.STATUS_CODE_UNSPECIFIED:
        return SUCCESS
    if message.code not in common_pb2.StatusCode.values():
        raise InvalidInput(f"{field}.code: {message.code} is no status code")
    return Status(Code(message.code), tuple(message.reasons), message.plugin)


def status_message(status: Status) -> common_pb2.Status:
    """Write a status."""
    return common_pb2.Status(
        code=common_pb2.StatusCode.ValueType(status.code), reasons=status.reasons, plugin=status.plugin
    )


_POLICIES = ("", "PreemptLowerPriority", "Never")

# --- what comes in ---------------------------------------------------------------------------------------------------


def situation_of(message: framework_pb2.PreemptionInput, field: str = "input") -> Situation:
    """Read the input of a preemption.

    Raises InvalidInput for a missing cycle or pod and for indices that point past their tables.
    """
    if not message.cycle_id:
        raise InvalidInput(f"{field}.cycle_id: want the cycle that DryRunFilter is to name")
    preemptor = Preemptor(
        pod_id(message.preemptor.pod, f"{field}.preemptor.pod"),
        message.preemptor.priority,
        message.preemption_policy,
        message.nominated_node_name,
    )
    if message.preemption_policy not in _POLICIES:
        raise InvalidInput(
            f"{field}.preemption_policy: want PreemptLowerPriority or Never, got {message.preemption_policy!r}"
        )
    statuses = tuple(status_of(status, f"{field}.statuses[{index}]") for index, status in enumerate(message.statuses))
    now = _moment(message.now, f"{field}.now")
    pods = tuple(_victim(index, pod, now, f"{field}.pods[{index}]") for index, pod in enumerate(message.pods))
    nodes = tuple(
        _node(index, node, statuses, pods, f"{field}.nodes[{index}]") for index, node in enumerate(message.nodes)
    )
    cycles = tuple(
        PluginCycle(cycle.plugin, cycle.session.id, cycle.session.epoch, cycle.cycle_id)
        for cycle in message.plugin_cycles
    )
    return Situation(message.cycle_id, preemptor, nodes, cycles, message.pre_filter_rejected_by)


def _victim(index: int, message: framework_pb2.CandidatePod, now: datetime, field: str) -> PotentialVictim:
    return PotentialVictim(
        index,
        pod_id(message.pod, f"{field}.pod"),
        message.priority,
        _moment(message.start_time, f"{field}.start_time") if message.HasField("start_time") else now,
        dict(message.labels),
        message.terminating,
        message.preempted_by_scheduler,
        message.in_pod_group,
    )


def _moment(message: Timestamp, field: str) -> datetime:
    try:
        return message.ToDatetime(UTC)
    except ValueError as error:
        raise InvalidInput(f"{field}: {error}") from error


def _node(
    index: int,
    message: framework_pb2.CandidateNode,
    statuses: Sequence[Status],
    pods: Sequence[PotentialVictim],
    field: str,
) -> Node:
    if not message.name:
        raise InvalidInput(f"{field}.name: must not be empty")
    if message.status >= len(statuses):
        raise InvalidInput(f"{field}.status: {message.status} is past the {len(statuses)} statuses")
    beyond = next((pod for pod in message.pods if pod >= len(pods)), None)
    if beyond is not None:
        raise InvalidInput(f"{field}.pods: {beyond} is past the {len(pods)} pods")
    return Node(
        index,
        message.name,
        statuses[message.status],
        tuple(pods[pod] for pod in message.pods),
        tuple(message.nominated_pod_uids),
        message.unschedulable,
    )


def order_of(message: common_pb2.Nomination) -> Order:
    """Read a nomination that is to be executed. Raises InvalidInput for what names no pod, node or generation."""
    if not message.node_name:
        raise InvalidInput("nomination.node_name: want the nominated node")
    if message.generation <= 0:
        raise InvalidInput("nomination.generation: want a positive number")
    return Order(
        pod_id(message.pod, "nomination.pod"),
        message.priority,
        message.node_name,
        message.generation,
        tuple(_victim_id(victim, f"nomination.victims[{index}]") for index, victim in enumerate(message.victims)),
    )


def _victim_id(message: common_pb2.PodReference, field: str) -> PodId:
    # The API is told its name.
    for part in ("namespace", "name"):
        if not getattr(message, part):
            raise InvalidInput(f"{field}.{part}: must not be empty")
    return pod_id(message, field)


# --- what goes to the framework --------------------------------------------------------------------------------------


def filter_request(cycle_id: str, queries: Iterable[Query]) -> framework_pb2.DryRunFilterRequest:
    """Write one round of filter questions, or a chunk of one."""
    return framework_pb2.DryRunFilterRequest(
        cycle_id=cycle_id,
        queries=[
            # Sorted, so that equal nodes ask equal questions whatever was tried first.
            common_pb2.NodeQuery(node=query.node.index, removed=sorted([pod.index for pod in query.removed]))
            for query in queries
        ],
    )


def verdicts_of(message: common_pb2.NodeVerdicts, wanted: int) -> tuple[Status, ...]:
    """Read the answers. Raises InvalidInput if they do not fit the questions."""
    if len(message.verdicts) != wanted:
        raise InvalidInput(f"verdicts: want {wanted}, got {len(message.verdicts)}")
    statuses = tuple(status_of(status) for status in message.statuses)
    beyond = max(message.verdicts, default=0)
    if message.verdicts and beyond >= len(statuses):
        raise InvalidInput(f"verdicts: {beyond} is past the {len(statuses)} statuses")
    return tuple(map(statuses.__getitem__, message.verdicts))


# --- what goes out ---------------------------------------------------------------------------------------------------

_MODES = {
    NominationChange.KEEP: preemption_pb2.NOMINATING_MODE_NOOP,
    NominationChange.CLEAR: preemption_pb2.NOMINATING_MODE_OVERRIDE,
    NominationChange.SET: preemption_pb2.NOMINATING_MODE_OVERRIDE,
}

_OUTCOMES = {
    Outcome.DELETED: preemption_pb2.VICTIM_OUTCOME_DELETED,
    Outcome.ALREADY_TERMINATING: preemption_pb2.VICTIM_OUTCOME_ALREADY_TERMINATING,
    Outcome.GONE: preemption_pb2.VICTIM_OUTCOME_GONE,
    Outcome.PREEMPTED_IN_MEMORY: preemption_pb2.VICTIM_OUTCOME_PREEMPTED_IN_MEMORY,
    Outcome.FAILED: preemption_pb2.VICTIM_OUTCOME_FAILED,
    Outcome.NOT_ATTEMPTED: preemption_pb2.VICTIM_OUTCOME_NOT_ATTEMPTED,
}


def preempt_response(
    situation: Situation, decision: Decision, rounds: int, generation: int, records: dict[str, str]
) -> preemption_pb2.PreemptResponse:
    """Write a decision, with the nomination where there is one."""
    response = preemption_pb2.PreemptResponse(
        status=status_message(decision.status),
        mode=_MODES[decision.change],
        candidates=[candidate_message(candidate) for candidate in decision.candidates],
        node_reasons=node_reasons(situation, decision),
        rounds=rounds,
    )
    if decision.chosen is not None:
        response.nomination.CopyFrom(
            common_pb2.Nomination(
                pod=pod_message(situation.preemptor.pod),
                node_name=decision.chosen.node.name,
                generation=generation,
                priority=situation.preemptor.priority,
                victims=[pod_message(victim.pod) for victim in decision.chosen.victims],
                records=records,
            )
        )
    return response


def candidate_message(candidate: Candidate) -> preemption_pb2.CandidateResult:
    """Write a candidate."""
    return preemption_pb2.CandidateResult(
        node_name=candidate.node.name,
        victims=[pod_message(victim.pod) for victim in candidate.victims],
        pdb_violations=candidate.pdb_violations,
        highest_victim_priority=candidate.victims[0].priority,
    )


def node_reasons(situation: Situation, decision: Decision) -> list[framework_pb2.NodeReason]:
    """Write why preemption does not help on nodes that are no candidates; equal reasons once."""
    candidates = {candidate.node.name for candidate in decision.candidates}
    grouped: dict[tuple[Status, Status], list[str]] = {}
    for node in situation.nodes:
        if node.name not in candidates:
            found = decision.node_statuses.get(node.name, NOT_HELPFUL)
            grouped.setdefault((node.status, found), []).append(node.name)
    return [
        framework_pb2.NodeReason(status=status_message(why), nodes=names, preemption=status_message(found))
        for (why, found), names in grouped.items()
    ]


def execute_response(results: Iterable[VictimResult]) -> preemption_pb2.ExecuteResponse:
    """Write what became of each victim."""
    return preemption_pb2.ExecuteResponse(
        victims=[
            preemption_pb2.VictimResult(
                pod=pod_message(result.pod), outcome=_OUTCOMES[result.outcome], error=result.error
            )
            for result in results
        ]
    )
