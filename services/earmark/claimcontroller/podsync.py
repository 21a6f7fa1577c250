"""What has to be written for one pod: claims from templates, their names in its status, reservations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from earmark.claimcontroller.names import generate_name, resolve
from earmark.kube.objects import (
    ObjectMeta,
    OwnerReference,
    Pod,
    PodResourceClaimStatus,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimTemplate,
)
from earmark.kube.wellknown import POD_CLAIM_NAME


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Writes for one pod, in this order."""

    # Claims to create, by the pod's entry.
    create: tuple[tuple[str, ResourceClaim], ...] = ()
    # Claims that exist and whose names the status lacks, by entry.
    adopt: tuple[tuple[str, str], ...] = ()
    # Allocated claims that a scheduled pod has no reservation in.
    reserve: tuple[ResourceClaim, ...] = ()
    # Entries for which nothing can be done, with why.
    problems: tuple[tuple[str, str], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do and nothing to say."""
        return not (self.create or self.adopt or self.reserve or self.problems)


def plan_pod(
    pod: Pod,
    *,
    claim: Callable[[str], ResourceClaim | None],
    owned: Iterable[ResourceClaim],
    template: Callable[[str], ResourceClaimTemplate | None],
) -> PodPlan:
    """Plan the writes for a pod (upstream C2).

    `claim` and `template` look names up in the pod's namespace; `owned` are the claims that this very pod controls.
    A pod that is on its way out, or has finished, needs nothing.
    """
    if pod.metadata.deletion_timestamp is not None or pod.terminal:
        return PodPlan()
    orphans = {item.metadata.annotations.get(POD_CLAIM_NAME, ""): item for item in owned}
    create: list[tuple[str, ResourceClaim]] = []
    adopt: list[tuple[str, str]] = []
    reserve: list[ResourceClaim] = []
    problems: list[tuple[str, str]] = []
    for entry in pod.spec.resource_claims:
        try:
            resolved = resolve(pod, entry)
        except ValueError as error:
            problems.append((entry.name, str(error)))
            continue
        if not resolved.needed:
            continue
        existing = claim(resolved.name) if resolved.name else None
        if resolved.generated and (existing is None or not controlled_by(existing, pod)):
            # The claim is missing, or another's: an orphan of ours takes its place, else a new one.
            existing = orphans.get(entry.name)
            if existing is not None:
                adopt.append((entry.name, existing.metadata.name))
            else:
                _create(pod, entry.name, entry.resource_claim_template_name or "", template, create, problems)
        if existing is not None and pod.spec.node_name and _lacks_reservation(existing, pod):
            reserve.append(existing)
    return PodPlan(tuple(create), tuple(adopt), tuple(reserve), tuple(problems))


def _create(
    pod: Pod,
    entry: str,
    template_name: str,
    template: Callable[[str], ResourceClaimTemplate | None],
    create: list[tuple[str, ResourceClaim]],
    problems: list[tuple[str, str]],
) -> None:
    source = template(template_name)
    if source is None:
        problems.append((entry, f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'))
    else:
        create.append((entry, new_claim(pod, entry, source)))


def new_claim(pod: Pod, entry: str, template: ResourceClaimTemplate) -> ResourceClaim:
    """Return the claim to create for a pod's entry (upstream C2.5)."""
    metadata = template.spec.metadata
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=generate_name(pod.metadata.name, entry),
            namespace=pod.metadata.namespace,
            labels=metadata.labels,
            annotations={**metadata.annotations, POD_CLAIM_NAME: entry},
            owner_references=(
                OwnerReference(
                    api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
                ),
            ),
        ),
        spec=template.spec.spec,
    )


def controlled_by(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether this very pod is the claim's controller."""
    return any(owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references)


def claim_statuses(pod: Pod, names: Iterable[tuple[str, str]]) -> list[PodResourceClaimStatus]:
    """Return status.resourceClaimStatuses with new names merged in, sorted by entry (upstream C2.9)."""
    merged = {status.name: status for status in pod.status.resource_claim_statuses}
    for entry, name in names:
        merged[entry] = PodResourceClaimStatus(name=entry, resource_claim_name=name)
    return [merged[entry] for entry in sorted(merged)]


def reservation(pod: Pod) -> ResourceClaimConsumerReference:
    """Return the reservedFor entry of a pod."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def _lacks_reservation(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a scheduled pod uses an allocated claim without a reservation (upstream C2.12)."""
    if claim.status.allocation is None or claim.metadata.deletion_timestamp is not None:
        return False
    return all(entry.uid != pod.metadata.uid for entry in claim.status.reserved_for)
