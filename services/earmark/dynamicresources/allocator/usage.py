"""How a ledger sees one pool, as bit masks over the pool's devices (positions within the pool)."""

from __future__ import annotations

from dataclasses import dataclass

from earmark.dynamicresources.allocator.counting import Left, left_after, left_in
from earmark.dynamicresources.allocator.pools import GatheredPool
from earmark.dynamicresources.lazy import lazy
from earmark.dynamicresources.ledger import PoolUse

# A record of use can live long while its slices are published again and again; states of old ones are dropped.
_REVISIONS = 8

Taken = tuple[tuple[str, int], ...]


@dataclass(slots=True, eq=False)
class PoolState:
    """One pool under one ledger.

    exclusive: devices held as a whole. shared: devices of which shares are held, with what is taken of each capacity.
    left: counters and groups, None if the pool has none. key: all of this, hashable.
    """

    exclusive: int
    shared: tuple[tuple[int, Taken], ...]
    left: Left | None
    key: object


def pool_state(pool: GatheredPool, use: PoolUse) -> PoolState:
    """Return the pool's state under a record of use, computed once for the two."""
    if use.seen is pool:
        known: PoolState = use.state
        return known
    if not use.devices:
        # The empty record is shared by all pools, so what is derived from it is kept with the pool.
        return _untouched(pool, use)
    views = use.views
    found: PoolState | None = views.get(pool) if views is not None else None
    if found is None:
        found = _stepped(pool, use) or _read(pool, use)
        use.before, use.changed = None, ()
        if use.seen is None:
            # Mostly the only one.
            use.seen, use.state = pool, found
        else:
            if views is None:
                views = use.views = {}
            elif len(views) >= _REVISIONS:
                views.clear()
            views[pool] = found
    return found


def _untouched(pool: GatheredPool, use: PoolUse) -> PoolState:
    found: PoolState | None = pool.views.get("untouched")
    if found is None:
        found = pool.views["untouched"] = _read(pool, use)
    return found


def _stepped(pool: GatheredPool, use: PoolUse) -> PoolState | None:
    """Derive the state from that of the record before: a fork differs from it in a few devices."""
    before = use.before
    if before is None:
        return None
    old: PoolState | None = before.state if before.seen is pool else None
    if old is None and before.views is not None:
        old = before.views.get(pool)
    if old is None or old.shared:
        return None
    exclusive = old.exclusive
    positions = pool.positions
    devices = use.devices
    for name in use.changed:
        held = devices.get(name)
        if held is not None and (held.shares or held.aggregated):
            return None
        position = positions.get(name)
        if position is not None:
            bit = 1 << position
            exclusive = exclusive & ~bit if held is None else exclusive | bit
    left = old.left
    if left is None:
        return PoolState(exclusive, (), None, exclusive)
    stepped = left_after(pool, left, before.devices, devices, use.changed)
    if stepped is None:
        return None
    return PoolState(exclusive, (), stepped, (exclusive, (), (stepped.amounts, stepped.groups)))


def _read(pool: GatheredPool, use: PoolUse) -> PoolState:
    exclusive = 0
    shared: list[tuple[int, Taken]] = []
    if use.devices:
        positions = pool.positions
        for name, held in use.devices.items():
            position = positions.get(name)
            if position is None:
                continue
            whole, shares, _, aggregated = held
            if whole:
                exclusive |= 1 << position
            if shares or aggregated:
                taken = tuple(sorted((capacity, amount) for capacity, (amount, _) in held.consumed.items()))
                shared.append((position, taken))
        shared.sort()
    left = left_in(pool, use) if pool.counter_sets else None
    key: object = exclusive
    if shared or left is not None:
        key = (exclusive, tuple(shared), None if left is None else (left.amounts, left.groups))
    return PoolState(exclusive, tuple(shared), left, key)


class Merged:
    """Pool states of several ledgers over the numbering of a whole problem (F5: free only where free in each)."""

    def __init__(self, firsts: list[int], states: list[list[PoolState]]) -> None:
        self.firsts = firsts
        self.states = states

    @lazy
    def exclusive(self) -> int:
        """Devices that some ledger holds as a whole."""
        mask = 0
        for ledger in self.states:
            for first, state in zip(self.firsts, ledger, strict=True):
                mask |= state.exclusive << first
        return mask

    def charged(self, ledger: int) -> int:
        """Devices of which the ledger holds shares."""
        mask = 0
        for first, state in zip(self.firsts, self.states[ledger], strict=True):
            for position, _ in state.shared:
                mask |= 1 << first + position
        return mask

    @lazy
    def taken(self) -> dict[int, dict[str, int]]:
        """Per device what is taken of its capacities: the most of what any ledger says."""
        found: dict[int, dict[str, int]] = {}
        for ledger in self.states:
            for first, state in zip(self.firsts, ledger, strict=True):
                for position, taken in state.shared:
                    if taken:
                        amounts = found.setdefault(first + position, {})
                        for name, amount in taken:
                            amounts[name] = max(amounts.get(name, amount), amount)
        return found
