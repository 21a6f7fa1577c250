"""No device, share, counter or capacity is allocated beyond what its slices offer; admin access aside.

An allocated device that no slice offers any more cannot be counted and is left out (it was offered when it was
allocated; that it is gone is its driver's doing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from earmark.kube import objects
from earmark.kube.quantity import parse_quantity
from earmark.simulation.cluster import Cluster, allocated, device_name, display
from earmark.simulation.invariants.base import Broken

EXCLUSIVE = "exclusive device held once"
SHARE = "share held once"
CAPACITY = "capacity not exceeded"
COUNTER = "counters not exceeded"

Pool = tuple[str, str]


@dataclass(slots=True)
class _Offer:
    """The newest generation of a pool."""

    generation: int = -1
    devices: dict[str, objects.Device] = field(default_factory=dict)
    counters: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Use:
    claim: str
    result: objects.DeviceRequestAllocationResult


def over_allocation(cluster: Cluster) -> Iterator[Broken]:
    """Yield what is allocated more often, or more of it, than there is."""
    offers = _offers(cluster)
    uses = _uses(cluster)
    for pool, devices in uses.items():
        offer = offers.get(pool, _Offer())
        for name, device_uses in devices.items():
            device = offer.devices.get(name)
            if device is not None and not device.allow_multiple_allocations:
                yield from _exclusive(device_uses)
            elif device is not None:
                yield from _shares(device_uses)
                yield from _capacity(device, device_uses)
        yield from _counters(pool, offer, devices)


def _offers(cluster: Cluster) -> dict[Pool, _Offer]:
    offers: dict[Pool, _Offer] = {}
    for piece in cluster.slices.values():
        spec = piece.spec
        key = (spec.driver, spec.pool.name)
        offer = offers.get(key)
        if offer is None or offer.generation < spec.pool.generation:
            offer = offers[key] = _Offer(spec.pool.generation)
        if offer.generation > spec.pool.generation:
            continue
        offer.devices.update((device.name, device) for device in spec.devices)
        for counter_set in spec.shared_counters:
            for name, counter in counter_set.counters.items():
                offer.counters[counter_set.name, name] = _amount(counter.value)
    return offers


def _uses(cluster: Cluster) -> Mapping[Pool, Mapping[str, list[_Use]]]:
    uses: dict[Pool, dict[str, list[_Use]]] = defaultdict(lambda: defaultdict(list))
    for claim in cluster.claims.values():
        for result in allocated(claim):
            if not result.admin_access:
                use = _Use(display(*claim.key), result)
                uses[result.driver, result.pool][result.device].append(use)
    return uses


def _amount(text: str) -> int:
    """Return a quantity in billionths."""
    return parse_quantity(text).nano


def _text(amount: int) -> str:
    return str(amount // 10**9) if amount % 10**9 == 0 else f"{amount}n"


def _claims(uses: list[_Use]) -> str:
    return ", ".join(use.claim for use in uses)


def _exclusive(uses: list[_Use]) -> Iterator[Broken]:
    if len(uses) > 1:
        name = device_name(uses[0].result)
        yield Broken(EXCLUSIVE, name, f"{name} is allocated to {_claims(uses)}")


def _shares(uses: list[_Use]) -> Iterator[Broken]:
    by_share: dict[str, list[_Use]] = defaultdict(list)
    for use in uses:
        if use.result.share_id:
            by_share[use.result.share_id].append(use)
    for share, holders in by_share.items():
        if len(holders) > 1:
            name = f"{device_name(holders[0].result)} share {share}"
            yield Broken(SHARE, name, f"{name} is allocated to {_claims(holders)}")


def _capacity(device: objects.Device, uses: list[_Use]) -> Iterator[Broken]:
    for capacity, offered in device.capacity.items():
        amounts = [(use.result.consumed_capacity or {}).get(capacity) for use in uses]
        consumed = sum(_amount(amount) for amount in amounts if amount is not None)
        if consumed > _amount(offered.value):
            name = f"{device_name(uses[0].result)} {capacity}"
            yield Broken(CAPACITY, name, f"{name}: {_text(consumed)} of {offered.value} consumed by {_claims(uses)}")


def _counters(pool: Pool, offer: _Offer, devices: Mapping[str, list[_Use]]) -> Iterator[Broken]:
    consumed: dict[tuple[str, str], int] = defaultdict(int)
    by: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name in devices:
        device = offer.devices.get(name)
        # A device consumes its counters once, whoever shares it.
        for consumption in device.consumes_counters if device is not None else ():
            for counter, amount in consumption.counters.items():
                key = (consumption.counter_set, counter)
                consumed[key] += _amount(amount.value)
                by[key].append(name)
    for key, amount_used in consumed.items():
        there = offer.counters.get(key)
        if there is not None and amount_used > there:
            name = f"{pool[0]}/{pool[1]} {key[0]}.{key[1]}"
            yield Broken(
                COUNTER, name, f"{name}: {_text(amount_used)} of {_text(there)} consumed by {', '.join(by[key])}"
            )
