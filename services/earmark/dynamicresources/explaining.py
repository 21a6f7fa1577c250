"""What stands between a pod and the devices that it asks for, device by device. Pure; for people, decides nothing.

Whether a node fits is the allocator's answer. This looks at one device and one request at a time: what is left
unexplained where every device is free is that there are too few, or that they do not go together.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.claims import UnresolvedClaim, resolve
from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.holders import Holders, Place
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.selectorparts import SelectorParts
from earmark.dynamicresources.sliceview import SliceView
from earmark.dynamicresources.state import World
from earmark.dynamicresources.staying import why_it_stays
from earmark.kube.objects import Device, DeviceSubRequest, ExactDeviceRequest, ResourceClaim
from earmark.kube.selectors import node_selector_matches, tolerates


class Kind(enum.IntEnum):
    """The numbers are the contract's."""

    CLASS = 1
    SELECTOR = 2
    TAINT = 3
    ALLOCATED = 4
    HELD = 5
    PARTITION = 6
    FREE = 7


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One device, and why one request does not get it."""

    request: str
    device: str
    kind: Kind
    # The part of the selector that fails, the taint, or what is taken.
    detail: str = ""
    # "NAMESPACE/NAME" of the claim that has the device.
    claim: str = ""
    pods: tuple[PodRef, ...] = ()
    priority: int = 0
    # Why preempting these pods would not free it; "" where it would.
    stays: str = ""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One request of a claim, or one alternative of it."""

    name: str
    ask: ExactDeviceRequest | DeviceSubRequest

    @property
    def shares_anything(self) -> bool:
        """Whether it takes devices whoever has them."""
        return isinstance(self.ask, ExactDeviceRequest) and bool(self.ask.admin_access)


class Explainer:
    """Explains one pod over one state; what is the same for all nodes is found once."""

    def __init__(self, world: World, pod: PodFacts, *, preemption: bool) -> None:
        """Raises UnresolvedClaim where a claim of the pod is missing. preemption: the gate DRAPreemption."""
        self._world = world
        self._pod = pod
        self._preemption = preemption
        self.claims = resolve(pod, world.claim)
        self._wanted = [item for claim in self.claims if world.allocation_of(claim) is None for item in _wanted(claim)]
        self._holders = Holders(world, pod)
        self._parts = SelectorParts()

    def node(self, name: str) -> tuple[Obstacle, ...]:
        """Return what each device of the node is missing, request by request."""
        found: list[Obstacle] = []
        devices = [] if not self._wanted else list(visible_devices(self._world, name))
        for wanted in self._wanted:
            obstacles = [self._look(wanted, view, position, name) for view, position in devices]
            of_class = [item for item in obstacles if item.kind is not Kind.CLASS]
            # Where the class has devices, those of other classes are of no interest.
            found += of_class or obstacles
        return tuple(found)

    def _look(self, wanted: _Wanted, view: SliceView, position: int, node: str) -> Obstacle:
        device = view.devices[position]
        name = f"{view.driver}/{view.pool[1]}/{device.name}"
        class_ = self._world.inventory.device_class(wanted.ask.device_class_name)
        if class_ is None:
            return Obstacle(wanted.name, name, Kind.CLASS, f"class {wanted.ask.device_class_name} does not exist")
        for kind, selectors in ((Kind.CLASS, class_.spec.selectors), (Kind.SELECTOR, wanted.ask.selectors)):
            for selector in selectors:
                if selector.cel is None:
                    continue
                part = self._parts.failing(selector.cel.expression, view.driver, device)
                if part:
                    return Obstacle(wanted.name, name, kind, part)
        if wanted.shares_anything:
            return Obstacle(wanted.name, name, Kind.FREE)
        for taint in view.taints[position]:
            if not any(tolerates(toleration, taint) for toleration in wanted.ask.tolerations):
                text = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
                return Obstacle(wanted.name, name, Kind.TAINT, text)
        return self._taken(wanted.name, name, view, device, node)

    def _taken(self, request: str, name: str, view: SliceView, device: Device, node: str) -> Obstacle:
        place = Place(view.driver, view.pool[1], device.name)
        hold = self._holders.nomination(place)
        if hold is not None:
            return Obstacle(
                request, name, Kind.HELD, pods=(hold.pod,), priority=hold.priority,
                stays=f"it is held for {hold.pod.name}, which was nominated with priority {hold.priority}",
            )  # fmt: skip
        claims = self._holders.claims(place)
        if claims:
            detail = f"{len(claims)} claims take of its capacity" if len(claims) > 1 else ""
            return self._held_by(request, name, Kind.ALLOCATED, detail, claims, node)
        partition = self._holders.partition(view, device)
        if partition is not None:
            return self._held_by(request, name, Kind.PARTITION, partition.text, partition.claims, node)
        return Obstacle(request, name, Kind.FREE)

    def _held_by(
        self, request: str, name: str, kind: Kind, detail: str, claims: Sequence[ResourceClaim], node: str
    ) -> Obstacle:
        reasons = [
            why_it_stays(self._world, claim, node, self._pod, preemption=self._preemption) for claim in claims
        ]  # fmt: skip
        # The claim to name is the one that stays.
        position = next((index for index, reason in enumerate(reasons) if reason), 0)
        claim = claims[position]
        pods = self._holders.pods(claim)
        return Obstacle(
            request=request,
            device=name,
            kind=kind,
            detail=detail,
            claim="/".join(claim.key),
            pods=tuple(pod for pod, _ in pods),
            priority=max((priority for _, priority in pods), default=0),
            stays=reasons[position],
        )


def _wanted(claim: ResourceClaim) -> Iterator[_Wanted]:
    for request in claim.spec.devices.requests:
        name = f"{claim.metadata.name}/{request.name}"
        if request.exactly is not None:
            yield _Wanted(name, request.exactly)
        for sub in request.first_available:
            yield _Wanted(f"{name}/{sub.name}", sub)


def visible_devices(world: World, node: str) -> Iterator[tuple[SliceView, int]]:
    """Iterate over the devices that can be used on a node: slice and position, of each pool's newest generation."""
    inventory = world.inventory
    facts = world.nodes.get(node)
    labels = facts.labels if facts is not None else {}
    for view in (*inventory.local_slices(node), *inventory.shared_slices()):
        if view.is_counter_slice or view.generation != _newest(inventory, view):
            continue
        for position, device in enumerate(view.devices):
            name, everywhere, selector = view.node_fields(device)
            if name == node or everywhere or (selector is not None and node_selector_matches(selector, labels, node)):
                yield view, position


def _newest(inventory: Inventory, view: SliceView) -> int:
    pool = inventory.pool(view.pool)
    return max((member.generation for member in pool.slices), default=0) if pool is not None else 0


__all__ = ["Explainer", "Kind", "Obstacle", "UnresolvedClaim", "visible_devices"]
