"""The plugin's part of the annotation `earmark.dev/nomination`: a nomination as JSON, version 1.

It lets a restarted plugin hold what it held (design: Persistence). What cannot be read is ignored, never an error.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from earmark.dynamicresources.facts import PodRef
from earmark.dynamicresources.nominations import ClaimNomination, HeldResult, Phase
from earmark.dynamicresources.victimclaims import VictimClaim
from earmark.kube.objects import AllocationResult

VERSION = 1


class _Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of the record's parts."""


class RecordedResult(_Struct, frozen=True):
    """An allocation that is held for a claim."""

    uid: str
    namespace: str
    name: str
    allocation: AllocationResult


class RecordedVictimClaim(_Struct, frozen=True):
    """A victim claim as it was when the nomination was made."""

    uid: str
    namespace: str
    name: str
    resource_version: str
    fingerprint: str
    timestamp: datetime | None = None
    consumers: tuple[str, ...] = ()


class Record(_Struct, frozen=True):
    """Everything that has to be known again. Node and generation tell whether it belongs to the nomination at hand."""

    # Has no default, so that it is always written.
    version: int
    node: str
    generation: int
    at: datetime | None = None
    results: tuple[RecordedResult, ...] = ()
    victim_claims: tuple[RecordedVictimClaim, ...] = ()


def write(nomination: ClaimNomination, victim_claims: tuple[VictimClaim, ...]) -> str:
    """Return the record of a nomination and the victim claims that it released."""
    record = Record(
        version=VERSION,
        node=nomination.node,
        generation=nomination.generation,
        at=nomination.at,
        results=tuple(
            RecordedResult(uid=held.claim_uid, namespace=held.key[0], name=held.key[1], allocation=held.allocation)
            for held in nomination.results
        ),
        victim_claims=tuple(
            RecordedVictimClaim(
                uid=item.uid,
                namespace=item.key[0],
                name=item.key[1],
                resource_version=item.resource_version,
                fingerprint=item.fingerprint,
                timestamp=item.timestamp,
                consumers=item.consumers,
            )
            for item in victim_claims
        ),
    )
    return msgspec.json.encode(record, order="deterministic").decode()


def read(
    text: str, pod: PodRef, node: str, generation: int, priority: int, victims: tuple[PodRef, ...]
) -> tuple[ClaimNomination, tuple[VictimClaim, ...]] | None:
    """Return the nomination and its victim claims; None where the record is not one of this nomination."""
    try:
        record = msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, ValueError):
        return None
    if record.version != VERSION or record.node != node or record.generation != generation:
        return None
    nomination = ClaimNomination(
        pod=pod,
        node=node,
        generation=generation,
        priority=priority,
        results=tuple(HeldResult(item.uid, (item.namespace, item.name), item.allocation) for item in record.results),
        victims=victims,
        phase=Phase.CONFIRMED,
        at=record.at,
    )
    victim_claims = tuple(
        VictimClaim(
            uid=item.uid,
            key=(item.namespace, item.name),
            node=node,
            resource_version=item.resource_version,
            fingerprint=item.fingerprint,
            timestamp=item.timestamp,
            consumers=item.consumers,
            owners=(nomination.owner,),
        )
        for item in record.victim_claims
    )
    return nomination, victim_claims
