"""What is allocated: which claim holds which devices and shares, per pool, as an immutable value.

Every charge and every release of the service goes through Ledger.charge and Ledger.release, for live state, forks and
nominations alike. Counters are not kept here: the allocator derives them from the slices and the devices that are
allocated (upstream A11.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from earmark.dynamicresources.overlay import OverlayMap
from earmark.kube.objects import AllocationResult, DeviceRequestAllocationResult
from earmark.kube.quantity import parse_quantity

PoolId = tuple[str, str]
"""Driver and pool name."""

DeviceId = tuple[str, str, str]
"""Driver, pool and device name."""


_NOTHING: Mapping[str, Any] = {}


class DeviceUse(NamedTuple):
    """How one device is held.

    exclusive: by how many results without a share. shares: number of results by share ID. consumed: by capacity name
    the sum in nano units and how many results added to it. aggregated: how many results listed consumed capacity.
    """

    exclusive: int = 0
    shares: Mapping[str, int] = _NOTHING
    consumed: Mapping[str, tuple[int, int]] = _NOTHING
    aggregated: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing holds the device."""
        return not (self.exclusive or self.shares or self.aggregated)

    def moved(self, result: DeviceRequestAllocationResult, sign: int, consumable: bool) -> DeviceUse:
        """Return the use with one result more (sign 1) or less (sign -1)."""
        if not consumable or result.share_id is None:
            if self is _UNUSED and sign == 1:
                return _HELD
            if self is _HELD and sign == -1:
                return _UNUSED
            return DeviceUse(self.exclusive + sign, self.shares, self.consumed, self.aggregated)
        shares = dict(self.shares)
        holders = shares.pop(result.share_id, 0) + sign
        if holders:
            shares[result.share_id] = holders
        if result.consumed_capacity is None:
            return DeviceUse(self.exclusive, shares, self.consumed, self.aggregated)
        consumed = dict(self.consumed)
        for name, amount in result.consumed_capacity.items():
            total, results = consumed.pop(name, (0, 0))
            if results + sign:
                consumed[name] = (total + sign * parse_quantity(amount).nano, results + sign)
        return DeviceUse(self.exclusive, shares, consumed, self.aggregated + sign)


_UNUSED = DeviceUse()
_HELD = DeviceUse(1)


class PoolUse:
    """The devices of one pool that are held; immutable, compared by value."""

    __slots__ = ("_key", "before", "changed", "devices", "seen", "state", "views")

    def __init__(
        self, devices: dict[str, DeviceUse], before: PoolUse | None = None, changed: Sequence[str] = ()
    ) -> None:
        """Make a record. before: one that differs only in the `changed` devices; what is derived from it is known."""
        self.devices = devices
        # One step back is enough: what nothing has been derived from is of no use, and chains would keep everything.
        self.before = before if before is not None and before.seen is not None else None
        self.changed = changed
        # What the allocator derives from this record: `state` for the pool `seen`, and those for others in `views`.
        self.seen: Any = None
        self.state: Any = None
        self.views: dict[Any, Any] | None = None
        self._key: frozenset[Any] | None = None

    @property
    def key(self) -> frozenset[Any]:
        """What the allocator can see of the pool's use, hashable; who holds it is not part of it."""
        if self._key is None:
            self._key = frozenset(
                (name, use.exclusive > 0, bool(use.shares), tuple(sorted((k, v[0]) for k, v in use.consumed.items())))
                for name, use in self.devices.items()
            )
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PoolUse) and self.devices == other.devices

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"PoolUse({dict(self.devices)!r})"


class Ledger:
    """An immutable account of allocations; a change makes a new one and copies only the pool's record that changes."""

    __slots__ = ("_claims", "_consumable", "_pools")

    def __init__(self, *, consumable_capacity: bool = True) -> None:
        """Make an empty ledger.

        consumable_capacity: the gate DRAConsumableCapacity; without it a result with a share ID counts as exclusive.
        """
        self._pools: OverlayMap[PoolId, PoolUse] = OverlayMap()
        self._claims: OverlayMap[str, AllocationResult] = OverlayMap()
        self._consumable = consumable_capacity

    @classmethod
    def from_allocated_state(
        cls,
        allocated_devices: Iterable[DeviceId] = (),
        shared_devices: Iterable[tuple[DeviceId, str]] = (),
        aggregated_capacity: Iterable[tuple[DeviceId, Mapping[str, str]]] = (),
        *,
        consumable_capacity: bool = True,
    ) -> Ledger:
        """Make a ledger from upstream's form of the state, which does not say who holds what."""
        pools: dict[PoolId, dict[str, DeviceUse]] = {}

        def use(device: DeviceId) -> tuple[dict[str, DeviceUse], DeviceUse]:
            devices = pools.setdefault(device[:2], {})
            return devices, devices.get(device[2], DeviceUse())

        for device in allocated_devices:
            devices, old = use(device)
            devices[device[2]] = DeviceUse(old.exclusive + 1, old.shares, old.consumed, old.aggregated)
        for device, share in shared_devices:
            devices, old = use(device)
            devices[device[2]] = DeviceUse(old.exclusive, {**old.shares, share: 1}, old.consumed, old.aggregated)
        for device, amounts in aggregated_capacity:
            devices, old = use(device)
            consumed = dict(old.consumed)
            for name, amount in amounts.items():
                total, results = consumed.get(name, (0, 0))
                consumed[name] = (total + parse_quantity(amount).nano, results + 1)
            devices[device[2]] = DeviceUse(old.exclusive, old.shares, consumed, old.aggregated + 1)
        ledger = cls(consumable_capacity=consumable_capacity)
        ledger._pools = OverlayMap({pool: PoolUse(devices) for pool, devices in pools.items()})
        return ledger

    def charge(self, claim_uid: str, allocation: AllocationResult) -> Ledger:
        """Return the ledger in which the claim holds the allocation.

        Charging the same allocation again changes nothing; another one replaces it. Results with admin access are
        remembered with the claim and never counted (F39, upstream A7.4).
        """
        held = self._claims.get(claim_uid)
        if held is not None:
            if held is allocation or held == allocation:
                return self
            return self.release(claim_uid).charge(claim_uid, allocation)
        return self._moved((allocation,), 1, self._claims.with_new(claim_uid, allocation))

    def release(self, claim_uid: str) -> Ledger:
        """Return the ledger without the claim: the exact opposite of charge (E16). Unknown claims change nothing."""
        held = self._claims.get(claim_uid)
        if held is None:
            return self
        return self._moved((held,), -1, self._claims.without(claim_uid))

    def release_all(self, claim_uids: Iterable[str]) -> Ledger:
        """Return the ledger without all of these claims: as release one after another, with fewer copies."""
        claims = self._claims
        held: dict[str, AllocationResult] = {}
        for uid in claim_uids:
            allocation = claims.get(uid)
            if allocation is not None:
                held[uid] = allocation
        return self._moved(held.values(), -1, claims.without_all(held)) if held else self

    def _moved(
        self, allocations: Iterable[AllocationResult], sign: int, claims: OverlayMap[str, AllocationResult]
    ) -> Ledger:
        pools, consumable = self._pools, self._consumable
        # Per pool that changes: its record so far, the devices from now on, and which of them are held differently.
        changed: dict[PoolId, tuple[PoolUse | None, dict[str, DeviceUse], list[str]]] = {}
        for allocation in allocations:
            for result in allocation.devices.results:
                if result.admin_access:
                    continue
                pool, name = (result.driver, result.pool), result.device
                change = changed.get(pool)
                if change is None:
                    record = pools.get(pool)
                    change = changed[pool] = record, {} if record is None else record.devices.copy(), []
                _, devices, names = change
                names.append(name)
                use = devices.get(name, _UNUSED).moved(result, sign, consumable)
                if use is _HELD or not (use is _UNUSED or use.empty):
                    devices[name] = use
                else:
                    devices.pop(name, None)
        for pool, (record, devices, names) in changed.items():
            if devices:
                use_of_pool = PoolUse(devices, record, names)
                pools = pools.with_new(pool, use_of_pool) if record is None else pools.with_other(pool, use_of_pool)
            else:
                pools = pools.without(pool)
        return self._with(pools, claims)

    def _with(self, pools: OverlayMap[PoolId, PoolUse], claims: OverlayMap[str, AllocationResult]) -> Ledger:
        new = Ledger.__new__(Ledger)
        new._pools, new._claims, new._consumable = pools, claims, self._consumable
        return new

    def holds(self, claim_uid: str) -> bool:
        """Whether the claim has been charged."""
        return claim_uid in self._claims

    def allocation_of(self, claim_uid: str) -> AllocationResult | None:
        """Return what the claim holds, if anything."""
        return self._claims.get(claim_uid)

    def claims(self) -> Iterator[tuple[str, AllocationResult]]:
        """Iterate over claim UIDs and what they hold."""
        return self._claims.items()

    def pool(self, pool: PoolId) -> PoolUse:
        """Return the record of one pool; the empty one if nothing of it is held."""
        return self._pools.get(pool) or _EMPTY_POOL

    def device(self, driver: str, pool: str, device: str) -> DeviceUse:
        """Return how a device is held."""
        return self.pool((driver, pool)).devices.get(device, _UNUSED)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return self._claims == other._claims and self._pools == other._pools

    def __hash__(self) -> int:
        return hash((self._claims, self._pools))


_EMPTY_POOL = PoolUse({})
