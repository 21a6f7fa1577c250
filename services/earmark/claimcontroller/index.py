"""Which pods mean a claim or a template, and which claims a pod owns: kept up to date from the informers' events."""

from __future__ import annotations

from collections.abc import Iterable

from earmark.claimcontroller.claimsync import owner_of
from earmark.claimcontroller.names import claim_names, template_names
from earmark.kube.objects import Pod, ResourceClaim

# (namespace, name) of a pod, a claim or a template.
Name = tuple[str, str]


class _Relation:
    """Targets and who points at them, both in the order of their arrival."""

    def __init__(self) -> None:
        self._sources: dict[Name, dict[Name, None]] = {}
        self._targets: dict[Name, tuple[Name, ...]] = {}

    def put(self, source: Name, targets: Iterable[Name]) -> None:
        """Have `source` point at these targets and no others."""
        self.drop(source)
        self._targets[source] = tuple(dict.fromkeys(targets))
        for target in self._targets[source]:
            self._sources.setdefault(target, {})[source] = None

    def drop(self, source: Name) -> None:
        for target in self._targets.pop(source, ()):
            sources = self._sources[target]
            del sources[source]
            if not sources:
                del self._sources[target]

    def sources(self, target: Name) -> tuple[Name, ...]:
        return tuple(self._sources.get(target, ()))


class PodIndex:
    """From claims and templates to the pods that use them."""

    def __init__(self) -> None:
        self._claims = _Relation()
        self._templates = _Relation()

    def put(self, pod: Pod) -> None:
        """Take a pod's present state."""
        namespace = pod.metadata.namespace
        self._claims.put(pod.key, ((namespace, name) for name in claim_names(pod)))
        self._templates.put(pod.key, ((namespace, name) for name in template_names(pod)))

    def drop(self, pod: Pod) -> None:
        """Forget a pod."""
        self._claims.drop(pod.key)
        self._templates.drop(pod.key)

    def users_of_claim(self, claim: Name) -> tuple[Name, ...]:
        """Return the pods that use a claim of this name."""
        return self._claims.sources(claim)

    def users_of_template(self, template: Name) -> tuple[Name, ...]:
        """Return the pods that use a template of this name."""
        return self._templates.sources(template)


class OwnedClaims:
    """Generated claims by their owner's UID, with those that were created and that no watch has shown yet (C2.7)."""

    def __init__(self) -> None:
        self._by_owner: dict[str, dict[Name, ResourceClaim]] = {}
        self._unseen: dict[Name, ResourceClaim] = {}

    def created(self, claim: ResourceClaim) -> None:
        """Take a claim that was just created."""
        self._unseen[claim.key] = claim
        self._put(claim)

    def seen(self, claim: ResourceClaim) -> None:
        """Take a claim as the watch has it."""
        self._unseen.pop(claim.key, None)
        self._put(claim)

    def gone(self, claim: ResourceClaim) -> None:
        """Forget a claim."""
        self._unseen.pop(claim.key, None)
        owner = owner_of(claim)
        if owner is not None:
            claims = self._by_owner.get(owner.uid, {})
            claims.pop(claim.key, None)
            if not claims:
                self._by_owner.pop(owner.uid, None)

    def of(self, owner_uid: str) -> tuple[ResourceClaim, ...]:
        """Return the claims of one owner."""
        return tuple(self._by_owner.get(owner_uid, {}).values())

    def unseen(self, name: Name) -> ResourceClaim | None:
        """Return a claim that was created and not seen since."""
        return self._unseen.get(name)

    def _put(self, claim: ResourceClaim) -> None:
        owner = owner_of(claim)
        if owner is not None:
            self._by_owner.setdefault(owner.uid, {})[claim.key] = claim
