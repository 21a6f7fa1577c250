"""Which claims a pod has, and what can be read off a claim. Pure; lookups are passed in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from earmark.dynamicresources.facts import PodFacts
from earmark.kube import objects
from earmark.kube.wellknown import EXTENDED_RESOURCE_CLAIM

ClaimKey = tuple[str, str]
"""Namespace and name."""


class UnresolvedClaim(Exception):
    """A pod's claim is missing, being deleted or somebody else's. The text goes into the pod's condition."""


def resolve(
    pod: PodFacts, lookup: Callable[[ClaimKey], objects.ResourceClaim | None]
) -> tuple[objects.ResourceClaim, ...]:
    """Return the pod's claims in the order of spec.resourceClaims (upstream B2).

    Entries for which no claim is needed are left out. Raises UnresolvedClaim at the first entry that has no usable one.
    """
    found: list[objects.ResourceClaim] = []
    for entry in pod.entries:
        name, generated = _claim_name(pod, entry)
        if name is None:
            continue
        claim = lookup((pod.ref.namespace, name))
        if claim is None:
            raise UnresolvedClaim(f'could not find ResourceClaim "{pod.ref.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise UnresolvedClaim(f'resourceclaim "{name}" is being deleted')
        if generated and not _owned_by(claim, pod):
            raise UnresolvedClaim(
                f"ResourceClaim {pod.ref.namespace}/{name} was not created for Pod "
                f"{pod.ref.namespace}/{pod.ref.name} (Pod is not owner)"
            )
        found.append(claim)
    return tuple(found)


def _claim_name(pod: PodFacts, entry: objects.PodResourceClaim) -> tuple[str | None, bool]:
    """Return the claim's name (None where none is needed) and whether it was made from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise UnresolvedClaim(
            f'pod "{pod.ref.namespace}/{pod.ref.name}", spec.resourceClaims "{entry.name}": '
            "none of the supported fields are set"
        )
    for status in pod.generated:
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise UnresolvedClaim(f'pod "{pod.ref.namespace}/{pod.ref.name}": ResourceClaim not created yet')


def _owned_by(claim: objects.ResourceClaim, pod: PodFacts) -> bool:
    return any(owner.controller and owner.uid == pod.uid for owner in claim.metadata.owner_references)


def claim_keys(pod: PodFacts) -> tuple[ClaimKey, ...]:
    """Return the keys of the claims whose names are known, whether the claims exist or not."""
    names: list[ClaimKey] = []
    for entry in pod.entries:
        try:
            name, _ = _claim_name(pod, entry)
        except UnresolvedClaim:
            continue
        if name is not None:
            names.append((pod.ref.namespace, name))
    return tuple(names)


def is_extended_resource_claim(claim: objects.ResourceClaim) -> bool:
    """Whether the claim backs an extended resource: not preempted in alpha (E32)."""
    return claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true"


def reserved_for(claim: objects.ResourceClaim, pod_uid: str) -> bool:
    """Whether reservedFor names the pod."""
    return any(entry.is_pod and entry.uid == pod_uid for entry in claim.status.reserved_for)


def device_names(allocation: objects.AllocationResult) -> tuple[str, ...]:
    """Return "DRIVER/POOL/DEVICE" of every result, for people."""
    return tuple(f"{item.driver}/{item.pool}/{item.device}" for item in allocation.devices.results)


def fingerprint(allocation: objects.AllocationResult) -> str:
    """Return what tells one allocation from another of the same claim (F12).

    The timestamp is left out: it is set when the allocation is written, after it has been in flight.
    """
    bare = msgspec.structs.replace(allocation, allocation_timestamp=None)
    return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()[:16]
