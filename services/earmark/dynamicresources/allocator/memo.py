"""Dead ends of a search, remembered by what of the state can still matter."""

from __future__ import annotations

from earmark.dynamicresources.allocator.bounds import Loads, State
from earmark.dynamicresources.allocator.integers import Choice, Task
from earmark.dynamicresources.allocator.symmetry import value_blocks, visible

Key = tuple[object, ...]

_PLENTY = -1
"""Stands for a counter of which more is left than all remaining wishes could take."""


class Memo:
    """Keys of failed states. Without landmines they leave out what no remaining wish can tell apart."""

    def __init__(
        self, task: Task, share_index: dict[int, int], strict: list[int], bare: list[int], mined: bool
    ) -> None:
        self.failed: dict[Key, int] = {}
        self.task = task
        self.share_index = share_index
        self.mined = mined
        self.strict = strict
        count = len(task.wishes)
        # What wishes from i on can look at, by wish.
        self.seen = [0] * (count + 1)
        self.listing = [False] * (count + 1)
        self.demand: list[State] = [(0,) * len(task.available)] * (count + 1)
        self.room_demand: list[dict[int, tuple[int, ...]]] = [{} for _ in range(count + 1)]
        self.admin = any(choice.admin for wish in task.wishes for choice in wish.choices)
        # How many devices a claim has so far differs only where it has prioritized requests.
        varying = {wish.claim for wish in task.wishes if wish.prioritized}
        self.counts_placed = [wish.claim in varying for wish in task.wishes]
        for i in reversed(range(count)):
            wish = task.wishes[i]
            self.seen[i] = self.seen[i + 1]
            for choice in wish.choices:
                self.seen[i] |= visible(choice)
            if not mined:
                self._add_demand(i)
        members: dict[int, int] = {}
        for device, kind in enumerate(strict):
            members[kind] = members.get(kind, 0) | 1 << device
        self.groups = [mask for mask in members.values() if mask.bit_count() > 1]
        self.grouped = sum(self.groups)
        # Values that nothing has named yet can be swapped, so only how full each of them is matters.
        blocks = None if mined or self.admin else value_blocks(task, bare)
        self.blocks = [
            (tuple((bare[masks.bit_length() - 1], masks.bit_count()) for masks in block), block)
            for block in blocks or ()
        ]
        self.charging = {device for device in share_index if device in task.counters or device in task.groups}

    def _add_demand(self, i: int) -> None:
        """The most that wishes from i on could take, per counter and per shareable device."""
        task = self.task
        most = list(self.demand[i + 1])
        room = dict(self.room_demand[i + 1])
        shares: dict[int, tuple[int, ...]] = {}
        for dim in range(len(most)):
            best = 0
            for choice in task.wishes[i].choices:
                amounts = sorted(
                    (
                        amount
                        for device, charges in task.counters.items()
                        if visible(choice) >> device & 1
                        for other, amount in charges
                        if other == dim
                    ),
                    reverse=True,
                )
                best = max(best, sum(amounts[: choice.num]))
            most[dim] += best
        for choice in task.wishes[i].choices:
            for device, share in choice.shares.items():
                if device in self.share_index:
                    old = shares.get(device)
                    shares[device] = share if old is None else tuple(map(max, old, share))
        for device, share in shares.items():
            old = room.get(device)
            room[device] = share if old is None else tuple(map(int.__add__, old, share))
        self.demand[i] = tuple(most)
        self.room_demand[i] = room

    def start_key(self, i: int, used: int, mine: int, con: State, cnt: State, grp: State, loads: Loads,
                  placed: int, lo: int) -> Key:  # fmt: skip
        """Return the key of a state in which wish i begins."""
        if self.mined:
            return (i, used, mine, con, cnt, grp, loads, placed)
        used &= self.seen[i]
        loose: object = used
        first = i == 0 or self.task.wishes[i - 1].claim != self.task.wishes[i].claim
        if self.blocks and first:
            loose = tuple(
                sorted((kinds, *[(used & mask).bit_count() for mask in block]) for kinds, block in self.blocks)
            )
            # What look-ahead has taken from the states follows from the rest of the key.
            con = ()
        elif lo == 0 and not self.admin:
            loose = (used & ~self.grouped, *[(used & mask).bit_count() for mask in self.groups])
        return (
            i,
            lo,
            loose,
            mine if self.admin else 0,
            con,
            self._counters(i, cnt),
            grp,
            self._loads(i, loads, lo == 0),
            placed if self.counts_placed[i] else 0,
        )

    def pick_key(self, i: int, choice: Choice, count: int, lo: int, used: int, mine: int, con: State,
                 cnt: State, grp: State, loads: Loads, placed: int) -> Key:  # fmt: skip
        """Return the key of a state in the middle of a choice."""
        if self.mined:
            return (i, choice.number, count, lo, used, mine, con, cnt, grp, loads, placed)
        seen = self.seen[i + 1] | choice.mask >> lo << lo
        return (
            i,
            choice.number,
            count,
            lo,
            used & seen,
            mine if self.admin else 0,
            con,
            self._counters(i, cnt),
            grp,
            self._loads(i, loads, False),
            placed if self.counts_placed[i] else 0,
        )

    def _counters(self, i: int, cnt: State) -> State:
        demand = self.demand[i]
        return tuple(_PLENTY if left >= most else left for left, most in zip(cnt, demand, strict=True))

    def _loads(self, i: int, loads: Loads, canonical: bool) -> object:
        """Loads of devices that all remaining shares fit into do not matter; equal devices' loads are sorted."""
        if not loads:
            return ()
        room, demand = self.task.room, self.room_demand[i]
        entries: list[tuple[int, object]] = []
        for device, index in self.share_index.items():
            load = loads[index]
            if load is None:
                continue
            want = demand.get(device)
            chosen = device in self.charging
            plenty = want is None or all(
                taken + more <= most for taken, more, most in zip(load, want, room[device], strict=True)
            )
            if plenty and not chosen:
                continue
            entries.append((self.strict[device] if canonical else device, () if plenty else load))
        if canonical:
            entries.sort(key=repr)
        return tuple(entries)
