"""A solution that answers more questions than its own: as long as its devices are free, the answer is yes."""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.allocator.counting import NOBODY, UNGROUPED
from earmark.dynamicresources.allocator.integers import Solution
from earmark.dynamicresources.allocator.skeleton import Skeleton
from earmark.dynamicresources.allocator.usage import PoolState


class Witness:
    """The devices of a solution and what they take of counters, pool by pool.

    It is good for yes or no only, since another state may have another first solution. Solutions with shareable devices
    and problems with landmines or groups are not used: there more than free devices matters.
    """

    def __init__(self, skeleton: Skeleton, solution: Solution) -> None:
        devices = 0
        for _, *picked in solution:
            for device in picked:
                devices |= 1 << device
        ends = [*skeleton.firsts[1:], skeleton.total]
        pools = zip(skeleton.firsts, ends, strict=True)
        self._devices = [devices >> first & ((1 << end - first) - 1) for first, end in pools]
        taken: list[dict[int, int]] = [{} for _ in skeleton.firsts]
        grouped = False
        for device, (pool, amounts, groups) in skeleton.consumption.items():
            if devices >> device & 1:
                for counter, amount in amounts:
                    taken[pool][counter] = taken[pool].get(counter, 0) + amount
                grouped = grouped or any(mask != UNGROUPED for _, mask in groups)
        self._taken = [tuple(amounts.items()) for amounts in taken]
        self._charged = [bool(skeleton.consumption) and bool(mask) for mask in self._devices]
        self._usable = not (
            devices & skeleton.shareable or grouped or skeleton.mine_errors or skeleton.derive_errors
            or any(choice.listed is not None or choice.alternative.admin
                   for wish in skeleton.wishes for choice in wish.choices)
        )  # fmt: skip

    def holds(self, states: Sequence[Sequence[PoolState]]) -> bool:
        """Whether the solution can be had in every ledger."""
        if not self._usable:
            return False
        for ledger in states:
            for devices, taken, charged, state in zip(self._devices, self._taken, self._charged, ledger, strict=True):
                if devices & state.exclusive or state.shared:
                    return False
                left = state.left
                if left is not None and charged:
                    # One overcommitted counter refuses every device that would be charged (upstream A11.3).
                    if left.overcommitted or any(members not in (NOBODY, UNGROUPED) for members in left.groups):
                        return False
                    if any(amount > left.amounts[counter] for counter, amount in taken):
                        return False
        return True
