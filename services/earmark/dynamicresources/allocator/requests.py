"""A pod's claims in the form that the allocator works on: requests with alternatives, and what is wrong with them.

Everything here depends on claims and classes only, so it is made once for all nodes (upstream A3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.errors import FATAL, PANIC, AllocationError
from earmark.dynamicresources.inventory import Inventory
from earmark.kube.objects import (
    DerivedAttribute,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from earmark.kube.quantity import Quantity, QuantityError, parse_quantity

MAX_RESULTS = 32
"""AllocationResultsMaxSize: how many devices a claim can have."""


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """An exact request, or one subrequest of a prioritized list."""

    claim: int
    request: int
    name: str
    parent: str | None
    device_class: DeviceClass
    expressions: tuple[tuple[str, str], ...]
    """CEL expressions in the order of evaluation, each with the place that its errors name."""
    all_devices: bool
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]
    derived: Mapping[str, str]
    constraints: tuple[int, ...]
    """Positions of the claim's constraints that apply."""
    place: str
    """How errors name it."""

    @property
    def result_name(self) -> str:
        """The request name in results: "request" or "request/subrequest"."""
        return self.name if self.parent is None else f"{self.parent}/{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """The alternatives of a request, in order of preference, up to the first one that is in error."""

    name: str
    prioritized: bool
    alternatives: tuple[Alternative, ...]
    error: AllocationError | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """The requests of a claim, up to the first one that is in error."""

    claim: ResourceClaim
    name: str
    requests: tuple[Request, ...]
    constraints: tuple[DeviceConstraint, ...]
    error: AllocationError | None = None


@dataclass(slots=True)
class _Reader:
    inventory: Inventory
    features: frozenset[str]
    variant: str
    claim: ResourceClaim
    index: int
    name: str = field(init=False)

    def __post_init__(self) -> None:
        metadata = self.claim.metadata
        self.name = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    def request(self, number: int, request: DeviceRequest) -> Request:
        prioritized = bool(request.first_available)
        found: list[Alternative] = []
        try:
            self._check_gates(request)
            if prioritized:
                for sub in request.first_available:
                    found.append(self._alternative(number, sub, sub.name, request.name))
            else:
                if request.exactly is None:
                    raise AllocationError(PANIC, f"claim {self.name}, request {request.name}: neither exactly nor "
                                          "firstAvailable is set")  # fmt: skip
                found.append(self._alternative(number, request.exactly, request.name, None))
        except AllocationError as error:
            return Request(request.name, prioritized, tuple(found), error)
        return Request(request.name, prioritized, tuple(found))

    def _check_gates(self, request: DeviceRequest) -> None:
        if request.first_available and gates.PRIORITIZED_LIST not in self.features:
            raise self._error(
                "request", request.name, "has subrequests, but the DRAPrioritizedList feature is disabled"
            )
        if gates.CONSUMABLE_CAPACITY in self.features or self.variant == gates.STABLE:
            return
        text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
        if request.exactly is not None and request.exactly.capacity is not None:
            raise self._error("request", request.name, text)
        for sub in request.first_available:
            if sub.capacity is not None:
                raise self._error("subrequest", sub.name, text)

    def _error(self, kind: str, name: str, text: str) -> AllocationError:
        return AllocationError(FATAL, f"claim {self.name}, {kind} {name}: {text}")

    def _alternative(
        self, number: int, body: ExactDeviceRequest | DeviceSubRequest, name: str, parent: str | None
    ) -> Alternative:
        derived: dict[str, str] = {}
        if body.derived_attributes:
            if gates.DERIVED_ATTRIBUTES not in self.features:
                text = "cannot handle request with derived attributes, the feature is disabled"
                raise self._error("request", name, text)
            for entry in body.derived_attributes:
                attribute = msgspec.convert(entry, DerivedAttribute)
                derived[attribute.name] = attribute.expression
        for position, selector in enumerate(body.selectors):
            if selector.cel is None:
                raise AllocationError(FATAL, f"claim {self.name}, request {name}, selector #{position}: CEL expression "
                                      "empty (unsupported selector type?)")  # fmt: skip
        admin: bool | None = body.admin_access if isinstance(body, ExactDeviceRequest) else None
        if admin is not None and gates.ADMIN_ACCESS not in self.features:
            raise self._error("request", name, "admin access is requested, but the feature is disabled")
        if not body.device_class_name:
            raise self._error("request", name, "missing device class name (unsupported request type?)")
        device_class = self.inventory.device_class(body.device_class_name)
        if device_class is None:
            text = f'deviceclasses.resource.k8s.io "{body.device_class_name}" not found'
            text = f"could not retrieve device class {body.device_class_name}: {text}"
            raise self._error("request", name, text)
        if body.allocation_mode not in ("ExactCount", "All"):
            raise self._error("request", name, f"unsupported count mode {body.allocation_mode}")
        own = [(selector.cel.expression, f"claim {self.name}: selector #{position}")
               for position, selector in enumerate(body.selectors) if selector.cel is not None]  # fmt: skip
        class_place = f"class {device_class.metadata.name}: selector #"
        of_class = [(selector.cel.expression if selector.cel is not None else "", f"{class_place}{position}")
                    for position, selector in enumerate(device_class.spec.selectors)]  # fmt: skip
        return Alternative(
            claim=self.index,
            request=number,
            name=name,
            parent=parent,
            device_class=device_class,
            expressions=(*of_class, *own),
            all_devices=body.allocation_mode == "All",
            count=body.count,
            admin=bool(admin),
            tolerations=body.tolerations,
            capacity=self._capacity(body, name),
            derived=derived,
            constraints=tuple(
                position
                for position, constraint in enumerate(self.claim.spec.devices.constraints)
                if _applies(constraint.requests, name, parent)
            ),
            place=f"claim {self.name}, request {name}",
        )

    def _capacity(self, body: ExactDeviceRequest | DeviceSubRequest, name: str) -> dict[str, Quantity]:
        if body.capacity is None or gates.CONSUMABLE_CAPACITY not in self.features:
            return {}
        amounts = {}
        for key, text in body.capacity.requests.items():
            try:
                amounts[key] = parse_quantity(text)
            except QuantityError as error:
                raise self._error("request", name, f"capacity.requests[{key}]: {text!r}: {error}") from error
        return amounts

    def constraint_error(self) -> AllocationError | None:
        for position, constraint in enumerate(self.claim.spec.devices.constraints):
            distinct = constraint.distinct_attribute is not None and self.variant != gates.STABLE
            if constraint.match_attribute is None and not distinct:
                text = "empty constraint (unsupported constraint type?)"
                return AllocationError(FATAL, f"claim {self.name}, constraint #{position}: {text}")
        return None


def _applies(names: Sequence[str], name: str, parent: str | None) -> bool:
    """Whether a constraint with these request names concerns a (sub)request (upstream A8.1)."""
    if not names:
        return True
    return name in names if parent is None else parent in names or f"{parent}/{name}" in names


def read_claims(
    claims: Sequence[ResourceClaim], inventory: Inventory, features: frozenset[str], variant: str
) -> tuple[Claim, ...]:
    """Read claims up to the first error, which is kept in its place: an error on a node may come before it."""
    read: list[Claim] = []
    for index, claim in enumerate(claims):
        reader = _Reader(inventory, features, variant, claim, index)
        requests: list[Request] = []
        for number, request in enumerate(claim.spec.devices.requests):
            requests.append(reader.request(number, request))
            if requests[-1].error is not None:
                break
        error = reader.constraint_error()
        read.append(Claim(claim, reader.name, tuple(requests), claim.spec.devices.constraints, error))
        if error is not None or (requests and requests[-1].error is not None):
            break
    return tuple(read)
