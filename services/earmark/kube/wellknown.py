"""Names that Kubernetes gives a meaning to: finalizers, annotations, condition types and reasons, each once."""

from __future__ import annotations

from typing import Final

# On an allocated ResourceClaim, so that it is not gone before it is deallocated.
DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"

# On a generated ResourceClaim: the entry of the pod's spec.resourceClaims that it was made for.
POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"

# "true" on a ResourceClaim that backs an extended resource.
EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"

# The condition of a pod that is about to be made to go, and its reason where a scheduler preempts it.
DISRUPTION_TARGET: Final = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER: Final = "PreemptionByScheduler"
