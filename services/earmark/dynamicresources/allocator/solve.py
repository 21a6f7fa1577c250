"""The search: the first solution in upstream's order (upstream A4), without what cannot succeed.

Depth first over wishes, their choices and devices. The state is passed as arguments, so there is nothing to undo and
the state is the key under which failures are remembered. What is cut and why that is safe: docs/allocator.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from earmark.dynamicresources.allocator.bounds import Bounds, Loads, State, allowed
from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Expired, Landmine, Solution, Task
from earmark.dynamicresources.allocator.memo import Memo
from earmark.dynamicresources.allocator.symmetry import device_classes, equal_neighbours, visible

_MAX_RESULTS = 32
# The first steps run without look-ahead and memo: the median problem ends before they would pay.
_PATIENCE = 24
_CLOCK_EVERY = 256

FAILED, FITS, LIMIT = 0, 1, 2


@dataclass(slots=True)
class Statistics:
    """What a search took."""

    steps: int = 0


def solve(task: Task, expired: Callable[[], bool], statistics: Statistics | None = None) -> Solution | None:
    """Return the first solution, None if there is none.

    Raises Landmine where upstream stops with an error, Expired when the time is over.
    """
    search = _Search(task, expired)
    depth = sum(max((choice.num for choice in wish.choices), default=0) * 2 + 2 for wish in task.wishes)
    try:
        with _recursion(depth):
            return search.run()
    finally:
        if statistics is not None:
            statistics.steps = search.steps


@contextmanager
def _recursion(depth: int) -> Iterator[None]:
    """Allow for a search of that depth; ordinary ones need no change."""
    if depth < 400:
        yield
        return
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Search:
    def __init__(self, task: Task, expired: Callable[[], bool]) -> None:
        if task.counters:
            task = _binding_counters_only(task)
        self.task = task
        self.expired = expired
        self.steps = 0
        self.picked: list[tuple[int, ...]] = []
        self.share_index = {device: index for index, device in enumerate(sorted(task.room))}
        # With a landmine anywhere, the order in which states are reached can be seen: only bounds over the wishes
        # before the first one may cut, and only equal states may be recognised.
        self.end = _first_landmine(task)
        self.mined = self.end < len(task.wishes)
        self.bounds = Bounds(task, self.end, self.share_index)
        self.memo: Memo | None = None
        self.classes: list[int] | None = None
        self.equal: list[bool] = [False] * len(task.wishes)
        self.starts = list(task.starts)
        self.accepted: dict[tuple[int, int, int], int] = {}

    def run(self) -> Solution | None:
        task = self.task
        if not task.wishes:
            return ()
        loads: Loads = (None,) * len(self.share_index)
        if not self.mined and not self._narrow_starts(loads):
            return None
        con = self.starts[task.wishes[0].claim]
        if self._start(0, 0, 0, con, task.available, task.group_start, loads, 0, 0) == FITS:
            return tuple(reversed(self.picked))
        return None

    def _narrow_starts(self, loads: Loads) -> bool:
        """Look ahead once before the search, from each claim on; False if one of them is hopeless."""
        seen = -1
        for i, wish in enumerate(self.task.wishes):
            if wish.claim != seen:
                seen = wish.claim
                narrowed = self.bounds.narrowed(i, 0, 0, self.starts[seen], self.task.available, loads)
                if narrowed is None:
                    return False
                self.starts[seen] = narrowed
        return True

    def _warm_up(self) -> None:
        """Turn on what costs something to set up."""
        loose, strict, bare = device_classes(self.task)
        if not self.mined:
            self.classes = loose
            self.equal = equal_neighbours(self.task)
        self.memo = Memo(self.task, self.share_index, strict, bare, self.mined)

    def _start(self, i: int, used: int, mine: int, con: State, cnt: State, grp: State, loads: Loads,
               placed: int, lo: int) -> int:  # fmt: skip
        """Fill wish i and all after it. lo: the first device that the wish may take."""
        task = self.task
        if i == len(task.wishes):
            return FITS
        self._step()
        memo = self.memo
        key = None
        if memo is not None:
            if i < self.end:
                narrowed = self.bounds.narrowed(i, used, mine, con, cnt, loads)
                if narrowed is None:
                    return FAILED
                if not self.mined:
                    con = narrowed
            key = memo.start_key(i, used, mine, con, cnt, grp, loads, placed, lo)
            known = memo.failed.get(key)
            if known is not None:
                return known
        answer = LIMIT
        for position, choice in enumerate(task.wishes[i].choices):
            if choice.listed is not None and not choice.listed:
                answer = FAILED
                continue
            if placed + choice.num > _MAX_RESULTS and choice.num > 0:
                continue
            got = self._pick(i, choice, (position,), lo, used, mine, con, cnt, grp, loads, placed)
            if got == FITS:
                return FITS
            if got == FAILED:
                answer = FAILED
        if key is not None and memo is not None:
            memo.failed[key] = answer
        return answer

    def _next(self, i: int, picked: tuple[int, ...], used: int, mine: int, con: State, cnt: State, grp: State,
              loads: Loads, placed: int) -> int:  # fmt: skip
        """Go on after wish i is filled."""
        wishes = self.task.wishes
        lo = 0
        border = False
        if i + 1 < len(wishes):
            claim = wishes[i + 1].claim
            border = claim != wishes[i].claim
            if border:
                mine, con, placed = 0, self.starts[claim], 0
            elif self.equal[i + 1]:
                lo = picked[1]
        got = self._start(i + 1, used, mine, con, cnt, grp, loads, placed, lo)
        if got == FITS:
            self.picked.append(picked)
        return FAILED if got == LIMIT and border else got

    def _pick(self, i: int, choice: Choice, picked: tuple[int, ...], lo: int, used: int, mine: int, con: State,
              cnt: State, grp: State, loads: Loads, placed: int) -> int:  # fmt: skip
        """Pick the remaining devices of a choice, none before lo."""
        count = len(picked) - 1
        if count >= choice.num:
            return self._next(i, picked, used, mine, con, cnt, grp, loads, placed)
        self._step()
        if choice.listed is not None:
            device = choice.listed[count]
            taken = mine & ~self.task.shareable if choice.admin else used
            if (choice.blocked | taken) >> device & 1:
                return FAILED
            return self._place(i, choice, picked, device, used, mine, con, cnt, grp, loads, placed)
        candidates = (choice.mask | choice.mines) & ~(mine if choice.admin else used) >> lo << lo
        key = None
        memo = self.memo
        if not self.mined:
            for use in choice.constraints:
                candidates &= self._allowed(use, choice.number, con[use.slot], choice.mask)
            left = choice.num - count
            if candidates.bit_count() < left:
                return FAILED
            if memo is not None and cnt and left > 1 and not self.bounds.payable(candidates, left, cnt):
                return FAILED
        if memo is not None and count and choice.num - count > 1:
            key = memo.pick_key(i, choice, count, lo, used, mine, con, cnt, grp, loads, placed)
            known = memo.failed.get(key)
            if known is not None:
                return known
        failed: set[object] = set()
        left = choice.num - count
        while candidates:
            low = candidates & -candidates
            device = low.bit_length() - 1
            if choice.mines & low:
                raise Landmine("selector", choice.number, device)
            if self.classes is not None:
                kind = self._kind(device, choice, used, mine, loads)
                if kind in failed:
                    candidates ^= low
                    continue
                failed.add(kind)
                if candidates.bit_count() < left:
                    break
            candidates ^= low
            got = self._place(i, choice, picked, device, used, mine, con, cnt, grp, loads, placed)
            if got != FAILED:
                if got == LIMIT and key is not None and memo is not None:
                    memo.failed[key] = LIMIT
                return got
        if key is not None and memo is not None:
            memo.failed[key] = FAILED
        return FAILED

    def _kind(self, device: int, choice: Choice, used: int, mine: int, loads: Loads) -> object:
        """The class of a device together with all that this state knows of it."""
        assert self.classes is not None
        kind = self.classes[device]
        if self.task.shareable >> device & 1:
            return kind, loads[self.share_index[device]]
        return (kind, used >> device & 1, mine >> device & 1) if choice.admin else kind

    def _allowed(self, use: ConstraintUse, number: int, state: int, mask: int) -> int:
        """The devices of the choice's mask that the constraint accepts in a state, remembered per state."""
        key = (number, use.slot, state)
        found = self.accepted.get(key)
        if found is None:
            found = self.accepted[key] = allowed(use, state, mask)
        return found

    def _place(self, i: int, choice: Choice, picked: tuple[int, ...], device: int, used: int, mine: int,
               con: State, cnt: State, grp: State, loads: Loads, placed: int) -> int:  # fmt: skip
        """Take one device, with the checks in upstream's order (upstream A4.13), and go on."""
        task = self.task
        shareable = task.shareable >> device & 1
        index = self.share_index[device] if shareable else -1
        if not shareable or loads[index] is None:
            groups = task.groups.get(device)
            if groups is not None:
                states = list(grp)
                for slot, mask in groups:
                    states[slot] &= mask
                    if not states[slot]:
                        return FAILED
                grp = tuple(states)
            counters = task.counters.get(device)
            if counters is not None:
                left = list(cnt)
                for dim, amount in counters:
                    left[dim] -= amount
                    if left[dim] < 0:
                        return FAILED
                cnt = tuple(left)
        if choice.constraints:
            entered = self._constrain(choice, device, con)
            if entered is None:
                return FAILED
            con = entered
        if choice.late >> device & 1:
            return FAILED
        if shareable:
            load, share = loads[index], choice.shares[device]
            total = share if load is None else tuple(map(int.__add__, load, share))
            if any(map(int.__gt__, total, task.room[device])):
                return FAILED
            loads = (*loads[:index], total, *loads[index + 1 :])
        else:
            used |= 1 << device
            mine |= 1 << device
        return self._pick(i, choice, (*picked, device), device + 1, used, mine, con, cnt, grp, loads, placed + 1)

    def _constrain(self, choice: Choice, device: int, con: State) -> State | None:
        """Return the constraint states with the device; None if one refuses it."""
        bit = 1 << device
        states = list(con)
        for use in choice.constraints:
            if use.mines & bit:
                raise Landmine("derived", choice.number, device, use.slot)
            state = states[use.slot]
            if use.missing & bit or bool(state & use.tests[device]) is not use.match:
                if choice.listed is not None:
                    raise Landmine("refused", choice.number, device, use.slot)
                return None
            states[use.slot] = state & use.adds[device] if use.match else state | use.adds[device]
        return tuple(states)

    def _step(self) -> None:
        self.steps += 1
        if self.steps == _PATIENCE:
            self._warm_up()
        if self.steps % _CLOCK_EVERY == 0 and self.expired():
            raise Expired


def _binding_counters_only(task: Task) -> Task:
    """Leave out counters that all devices together could not use up.

    The devices of mode All count too, also ones that a constraint will refuse: a counter's refusal comes before that.
    """
    choices = [choice for wish in task.wishes for choice in wish.choices]
    if any(choice.admin for choice in choices):
        # The same device may be charged more than once.
        return task
    reachable = 0
    for choice in choices:
        reachable |= visible(choice)
    totals = [0] * len(task.available)
    for device, charges in task.counters.items():
        if reachable >> device & 1:
            for dim, amount in charges:
                totals[dim] += amount
    binding = [dim for dim, total in enumerate(totals) if total > task.available[dim]]
    if len(binding) == len(totals):
        return task
    place = {dim: index for index, dim in enumerate(binding)}
    counters = {}
    for device, charges in task.counters.items():
        rest = tuple((place[dim], amount) for dim, amount in charges if dim in place)
        if rest:
            counters[device] = rest
    return replace(task, counters=counters, available=tuple(task.available[dim] for dim in binding))


def _first_landmine(task: Task) -> int:
    for index, wish in enumerate(task.wishes):
        for choice in wish.choices:
            if choice.mines or any(use.mines for use in choice.constraints):
                return index
            if choice.listed is not None and choice.constraints:
                return index
    return len(task.wishes)
