"""Between the contract's messages and the plugin's values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.filtering import NodeCheck, Verdict
from earmark.dynamicresources.nominations import ClaimNomination
from earmark.dynamicresources.settlement import Window
from earmark.dynamicresources.statuses import PLUGIN_NAME, Code, Status
from earmark.dynamicresources.victimclaims import VictimClaim
from earmark.runtime.settling_trace import settling_trace
from earmark.v1 import common_pb2, nomination_extensions_pb2, settlement_pb2

_CODES = {
    Code.SUCCESS: common_pb2.STATUS_CODE_SUCCESS,
    Code.ERROR: common_pb2.STATUS_CODE_ERROR,
    Code.UNSCHEDULABLE: common_pb2.STATUS_CODE_UNSCHEDULABLE,
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: common_pb2.STATUS_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
    Code.WAIT: common_pb2.STATUS_CODE_WAIT,
    Code.SKIP: common_pb2.STATUS_CODE_SKIP,
    Code.PENDING: common_pb2.STATUS_CODE_PENDING,
}


class InvalidField(ValueError):
    """A field of a request cannot be used. The text names it."""


def status_message(status: Status) -> common_pb2.Status:
    """Return a status as a message."""
    return common_pb2.Status(
        code=_CODES[status.code], reasons=status.reasons, plugin="" if status.success else PLUGIN_NAME
    )


def pod_ref(message: common_pb2.PodReference, field: str = "pod") -> PodRef:
    """Read a pod's name. Raises InvalidField where the UID is missing."""
    if not message.uid:
        raise InvalidField(f"{field}.uid: must not be empty")
    return PodRef(message.namespace, message.name, message.uid)


def same_pod(given: PodRef, expected: PodRef, field: str) -> None:
    """Check that a request is about the pod of its cycle. Raises InvalidField."""
    if given.uid != expected.uid:
        raise InvalidField(f"{field}.uid: {given.uid!r} is not the pod of the cycle, {expected.uid!r}")


def name(text: str, field: str) -> str:
    """Return a name that must be there. Raises InvalidField for an empty one."""
    if not text:
        raise InvalidField(f"{field}: must not be empty")
    return text


def at_least(value: int, least: int, field: str) -> int:
    """Return a number that must not be smaller than `least`. Raises InvalidField."""
    if value < least:
        raise InvalidField(f"{field}: want {least} or more, got {value}")
    return value


def resource_version(text: str, field: str) -> int:
    """Read a resourceVersion; "" is 0. Raises InvalidField."""
    if text and not (text.isascii() and text.isdigit()):
        raise InvalidField(f"{field}: {text!r} is not a resourceVersion")
    return int(text or "0")


def one_of(value: int, known: Mapping[int, str], field: str) -> None:
    """Check an enum's value. Raises InvalidField for the unspecified and for unknown ones."""
    if not value or value not in known:
        raise InvalidField(
            f"{field}: want one of {', '.join(known[number] for number in known if number)}, got {value}"
        )


def pod_message(ref: PodRef) -> common_pb2.PodReference:
    """Return a pod's name as a message."""
    return common_pb2.PodReference(namespace=ref.namespace, name=ref.name, uid=ref.uid)


def unknown_pod(ref: PodRef, priority: int) -> PodFacts:
    """Return what is known of a pod that the cache lacks."""
    return PodFacts(ref, priority, "", False, False, False, (), (), 0)


def node_checks(
    nodes: Sequence[str], pod_uids: Sequence[str], queries: Iterable[common_pb2.NodeQuery], *, forks: bool
) -> list[NodeCheck]:
    """Read the queries of a round. Raises InvalidField for an index outside its table and for empty names."""
    for table, values in (("nodes", nodes), ("pod_uids", pod_uids)):
        if "" in values:
            raise InvalidField(f"{table}[{list(values).index('')}]: must not be empty")
    checks = []
    for position, query in enumerate(queries):
        if query.node >= len(nodes):
            raise InvalidField(f"queries[{position}].node: {query.node} is outside of nodes ({len(nodes)})")
        if query.removed and not forks:
            raise InvalidField(f"queries[{position}].removed: only FilterForks takes pods away")
        for name, indices in (("removed", query.removed), ("nominated", query.nominated)):
            for index in indices:
                if index >= len(pod_uids):
                    raise InvalidField(f"queries[{position}].{name}: {index} is outside of pod_uids ({len(pod_uids)})")
        checks.append(
            NodeCheck(
                nodes[query.node],
                tuple(pod_uids[index] for index in query.removed),
                tuple(pod_uids[index] for index in query.nominated),
            )
        )
    return checks


def verdicts_message(verdicts: Iterable[Verdict]) -> common_pb2.NodeVerdicts:
    """Return verdicts with each status sent once."""
    message = common_pb2.NodeVerdicts()
    numbers: dict[Status, int] = {}
    for verdict in verdicts:
        number = numbers.get(verdict.status)
        if number is None:
            number = numbers[verdict.status] = len(numbers)
            message.statuses.append(status_message(verdict.status))
        message.verdicts.append(number)
        message.with_nominated.append(verdict.with_nominated)
    return message


def held_message(nomination: ClaimNomination) -> nomination_extensions_pb2.HeldNomination:
    """Return a nomination for a listing."""
    return nomination_extensions_pb2.HeldNomination(
        pod=pod_message(nomination.pod),
        node_name=nomination.node,
        generation=nomination.generation,
        phase=nomination_extensions_pb2.NominationPhase.ValueType(int(nomination.phase)),
        devices=nomination.devices,
        priority=nomination.priority,
    )


def victim_claim_message(item: VictimClaim) -> nomination_extensions_pb2.VictimClaim:
    """Return a victim claim for a listing."""
    return nomination_extensions_pb2.VictimClaim(
        namespace=item.key[0],
        name=item.key[1],
        uid=item.uid,
        node_name=item.node,
        preemptor_uid=item.owners[-1].preemptor_uid if item.owners else "",
    )


def timestamp(moment: datetime) -> Timestamp:
    """Return a moment as a message."""
    message = Timestamp()
    message.FromDatetime(moment)
    return message


def settlement_message(window: Window) -> settlement_pb2.Settlement:
    """Return a settling window as a message."""
    trace, _ = settling_trace(window.preemptor.uid, window.generation)
    moments = {
        name: timestamp(moment)
        for name, moment in (("t0", window.t0), ("t1", window.t1), ("t3", window.t3), ("t4", window.t4))
        if moment is not None
    }
    return settlement_pb2.Settlement(
        preemptor=pod_message(window.preemptor),
        node_name=window.node,
        generation=window.generation,
        victims=[
            settlement_pb2.SettlementVictim(
                pod=pod_message(item.pod), gone=timestamp(item.gone) if item.gone is not None else None
            )
            for item in window.victims
        ],
        claims=[
            settlement_pb2.SettlementClaim(
                namespace=item.key[0],
                name=item.key[1],
                uid=item.uid,
                deallocated=timestamp(item.deallocated) if item.deallocated is not None else None,
            )
            for item in window.claims
        ],
        devices=window.devices,
        phase=settlement_pb2.SettlementPhase.ValueType(int(window.phase)),
        outcome=window.outcome,
        trace_id=f"{trace:032x}",
        **moments,
    )
