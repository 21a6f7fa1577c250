"""A node as one problem sees it: its pools, the numbering of their devices, the signature."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.allocator.pools import GatheredPool, gather_pools
from earmark.dynamicresources.allocator.rows import Numbering
from earmark.dynamicresources.allocator.signature import ReadSet, devices_of, node_signature
from earmark.dynamicresources.allocator.usage import PoolState, pool_state
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.lazy import lazy
from earmark.dynamicresources.ledger import Ledger


class NodeView:
    """What does not depend on ledgers; kept with the node's slices where those alone decide it."""

    def __init__(self, pools: list[GatheredPool], node: NodeFacts, reads: ReadSet) -> None:
        self.pools = pools
        self.usable = [pool for pool in pools if not (pool.incomplete or pool.invalid)]
        self.only = self.usable[0] if len(self.usable) == 1 else None
        self.signature = reads.interner.number(node_signature(pools, node, reads))
        self._devices: dict[int, tuple[int, ...]] = {}

    @lazy
    def broken(self) -> bool:
        """Whether a pool is invalid, which turns "does not fit" into an error."""
        return any(pool.invalid for pool in self.pools)

    @lazy
    def special(self) -> bool:
        """Whether devices differ by more than their content: taints, or the node that they choose."""
        return any(
            view.tainted or view.per_device or view.slice.spec.skip_node_operations
            for pool in self.usable
            for view in pool.targets
        )

    @lazy
    def choosy(self) -> bool:
        """Whether the node's labels or declared features matter."""
        return any(
            view.per_device or view.slice.spec.skip_node_operations for pool in self.usable for view in pool.targets
        )

    def devices(self, pool: int, reads: ReadSet) -> tuple[int, ...]:
        """Return the content numbers of a usable pool's devices."""
        found = self._devices.get(pool)
        if found is None:
            found = tuple(number for view in self.usable[pool].targets for number in devices_of(view, reads))
            self._devices[pool] = found
        return found

    @lazy
    def numbering(self) -> Numbering:
        """The devices' numbers."""
        return Numbering(self.pools)

    def states(self, ledgers: Sequence[Ledger]) -> list[list[PoolState]]:
        """Return the pools' states per ledger; a ledger that says the same as the one before is left out."""
        if len(ledgers) == 1:
            ledger = ledgers[0]
            if self.only is not None:
                return [[pool_state(self.only, ledger.pool(self.only.id))]]
            return [[pool_state(pool, ledger.pool(pool.id)) for pool in self.usable]]
        found: list[list[PoolState]] = []
        for ledger in ledgers:
            states = [pool_state(pool, ledger.pool(pool.id)) for pool in self.usable]
            if not found or any(one is not other for one, other in zip(states, found[-1], strict=True)):
                found.append(states)
        return found


def view_node(inventory: Inventory, node: NodeFacts, features: frozenset[str], reads: ReadSet) -> NodeView:
    """Return the node's view. Raises AllocationError for a node selector that cannot be read."""
    if inventory.shared_slices():
        return NodeView(gather_pools(inventory, node, features), node, reads)
    local = inventory.local(node.name)
    if local is None:
        return NodeView([], node, reads)
    known: NodeView | None = local.views.get(reads)
    if known is not None:
        return known
    view = NodeView(gather_pools(inventory, node, features), node, reads)
    # A pool that is not complete on the node is judged by its slices elsewhere, so it can change without them; what
    # depends on the node itself can change, too.
    if all(pool.self_contained for pool in view.pools) and len(view.pools) == local.pools and not view.choosy:
        local.views[reads] = view
    return view
