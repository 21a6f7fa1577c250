"""Who has which device, for explanations: by claim, by nomination, and by the counters that partitions share. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.nominations import ClaimNomination, Phase
from earmark.dynamicresources.releasable import consumers
from earmark.dynamicresources.sliceview import SliceView
from earmark.dynamicresources.state import World
from earmark.kube.objects import Device, ResourceClaim
from earmark.kube.quantity import parse_quantity


class Place(NamedTuple):
    """Names a device."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class Partition:
    """A counter of which too little is left, and the claims whose devices take of it."""

    text: str
    claims: tuple[ResourceClaim, ...]


class Holders:
    """Everything that is taken in one state, as one pod sees it."""

    def __init__(self, world: World, pod: PodFacts) -> None:
        self._world = world
        # By UID: claims cannot be hashed.
        self._claims: dict[Place, dict[str, ResourceClaim]] = {}
        self._held: dict[Place, ClaimNomination] = {}
        for uid, allocation in world.ledger.claims():
            claim = world.claim_by_uid(uid)
            if claim is None:
                continue
            for result in allocation.devices.results:
                # An administrator's look at a device takes nothing.
                if not result.admin_access:
                    self._claims.setdefault(Place(result.driver, result.pool, result.device), {})[uid] = claim
        for nomination in world.nominations.all():
            mine = nomination.pod.uid == pod.uid
            if mine or nomination.phase is Phase.ASSIGNED or nomination.priority < pod.priority:
                continue
            for held in nomination.results:
                for result in held.allocation.devices.results:
                    self._held.setdefault(Place(result.driver, result.pool, result.device), nomination)

    def nomination(self, place: Place) -> ClaimNomination | None:
        """Return the nomination that holds a device against the pod."""
        return self._held.get(place)

    def claims(self, place: Place) -> tuple[ResourceClaim, ...]:
        """Return the claims that have a device."""
        return tuple(self._claims.get(place, {}).values())

    def pods(self, claim: ResourceClaim) -> tuple[tuple[PodRef, int], ...]:
        """Return the pods that use a claim, with their priorities; of one that is gone only the name is known."""
        names = {entry.uid: entry.name for entry in claim.status.reserved_for}
        found = []
        for uid in consumers(self._world, claim):
            pod = self._world.pods.get(uid)
            if pod is not None:
                found.append((pod.ref, pod.priority))
            else:
                found.append((PodRef(claim.metadata.namespace, names.get(uid, ""), uid), 0))
        return tuple(found)

    def partition(self, view: SliceView, device: Device) -> Partition | None:
        """Return the counter of which the device needs more than its siblings have left (upstream A11)."""
        if not device.consumes_counters:
            return None
        pool = self._world.inventory.pool(view.pool)
        if pool is None:
            return None
        members = [member for member in pool.slices if member.generation == view.generation]
        sets = {item.name: item.counters for member in members for item in member.slice.spec.shared_counters}
        for use in device.consumes_counters:
            for counter, amount in use.counters.items():
                total = sets.get(use.counter_set, {}).get(counter)
                if total is None:
                    continue
                taken, claims = self._consumed(members, use.counter_set, counter)
                if claims and taken + parse_quantity(amount.value).nano > parse_quantity(total.value).nano:
                    return Partition(f"counter {use.counter_set}/{counter}, of which {amount.value} is needed", claims)
        return None

    def _consumed(
        self, members: list[SliceView], counter_set: str, counter: str
    ) -> tuple[int, tuple[ResourceClaim, ...]]:
        taken, claims = 0, dict[str, ResourceClaim]()
        for member in members:
            for device in member.devices:
                holders = self.claims(Place(*member.pool, device.name)) if device.consumes_counters else ()
                if not holders:
                    continue
                for use in device.consumes_counters:
                    if use.counter_set == counter_set and counter in use.counters:
                        taken += parse_quantity(use.counters[counter].value).nano
                        claims.update((claim.metadata.uid, claim) for claim in holders)
        return taken, tuple(claims.values())
