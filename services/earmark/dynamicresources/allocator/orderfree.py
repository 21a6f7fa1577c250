"""A key for yes or no: without landmines the answer depends on which devices are free, not on their order."""

from __future__ import annotations

from earmark.dynamicresources.allocator.nodeview import NodeView
from earmark.dynamicresources.allocator.signature import ReadSet
from earmark.dynamicresources.allocator.usage import PoolState


def order_free_key(view: NodeView, states: list[list[PoolState]], reads: ReadSet) -> tuple[object, ...] | None:
    """Return the multiset of free devices with what is left of counters; None where that does not say enough.

    Only for problems without mode All, admin access and derived attributes. Devices of which shares are held, taints,
    and devices that choose their node are left to the exact key.
    """
    if view.special or any(state.shared for ledger in states for state in ledger):
        return None
    free: list[tuple[int, int] | int] = []
    counters: list[object] = []
    for index, pool in enumerate(view.usable):
        exclusive = 0
        for ledger in states:
            exclusive |= ledger[index].exclusive
        numbers = view.devices(index, reads)
        if pool.counter_sets:
            counters.append((tuple(pool.counter_sets), *[
                (left.amounts, left.groups) for ledger in states if (left := ledger[index].left) is not None
            ]))  # fmt: skip
            place = len(counters)
            free.extend((place, number) for position, number in enumerate(numbers) if not exclusive >> position & 1)
        else:
            free.extend((0, number) for position, number in enumerate(numbers) if not exclusive >> position & 1)
    free.sort()
    return ("free", view.broken, tuple(free), *counters)
