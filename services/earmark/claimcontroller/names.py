"""Names of generated claims, and which claims a pod means. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from earmark.kube.objects import Pod, PodResourceClaim

# 63 characters less what the API server appends.
_LONGEST_BASE = 57


def generate_name(pod: str, entry: str) -> str:
    """Return the generateName of a pod's claim.

    Where it would be too long both parts are shortened in proportion, so that neither is lost (upstream C2.5).
    """
    full = f"{pod}-{entry}-"
    if len(full) <= _LONGEST_BASE:
        return full
    return f"{pod[: len(pod) * _LONGEST_BASE // len(full)]}-{entry[: len(entry) * _LONGEST_BASE // len(full)]}"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What an entry of spec.resourceClaims stands for at present (upstream C2.2)."""

    # "" where there is none (yet).
    name: str = ""
    # The claim is generated: it has to belong to the pod.
    generated: bool = False
    # A claim has to be made, or the one that the status names to be checked.
    needed: bool = True


def resolve(pod: Pod, entry: PodResourceClaim) -> Resolved:
    """Return the claim of an entry. Raises ValueError for an entry that names neither claim nor template."""
    if entry.resource_claim_name is not None:
        return Resolved(entry.resource_claim_name)
    if entry.resource_claim_template_name is None:
        raise ValueError(f"pod claim {entry.name}: neither resourceClaimName nor resourceClaimTemplateName is set")
    for status in pod.status.resource_claim_statuses:
        if status.name == entry.name:
            if status.resource_claim_name is None:
                return Resolved(generated=True, needed=False)
            return Resolved(status.resource_claim_name, generated=True)
    return Resolved(generated=True)


def claim_names(pod: Pod) -> Iterator[str]:
    """Yield every claim name that is known for a pod: named, generated, and for extended resources."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield entry.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name is not None:
            yield status.resource_claim_name
    if pod.status.extended_resource_claim_status is not None:
        yield pod.status.extended_resource_claim_status.resource_claim_name


def template_names(pod: Pod) -> Iterator[str]:
    """Yield the templates that a pod's claims are made from."""
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_template_name is not None:
            yield entry.resource_claim_template_name


def uses_claims(pod: Pod) -> bool:
    """Whether the controller has anything to do with a pod (upstream C1.4)."""
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def done(pod: Pod) -> bool:
    """Whether a pod that still exists needs its claims no more (upstream C1.7).

    A scheduled pod that is merely terminating still needs them (C1.8).
    """
    return pod.terminal or (pod.metadata.deletion_timestamp is not None and not pod.spec.node_name)
