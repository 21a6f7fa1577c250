"""The search for the first solution, in upstream's order (upstream A4)."""

from __future__ import annotations

from collections.abc import Callable

from earmark.dynamicresources.allocator.integers import Expired, Landmine, Solution, Task

LIMIT = "limit"
_MAX = 32


def solve(task: Task, expired: Callable[[], bool]) -> Solution | None:
    """Return the first solution, None if there is none.

    Raises Landmine where upstream stops with an error, Expired when the time is over.
    """
    return _Plain(task, expired).run()


class _Plain:
    """Plain depth-first search without any pruning."""

    def __init__(self, task: Task, expired: Callable[[], bool]) -> None:
        self.task = task
        self.expired = expired
        self.picked: list[tuple[int, ...]] = []
        self.steps = 0

    def run(self) -> Solution | None:
        task = self.task
        starts = task.starts[0] if task.starts else ()
        if self.start(0, 0, 0, starts, task.available, task.group_start, {}, 0) is True:
            return tuple(self.picked)
        return None

    def start(self, i, used, mine, con, cnt, grp, loads, placed):
        task = self.task
        if i == len(task.wishes):
            return True
        wish = task.wishes[i]
        if i and task.wishes[i - 1].claim != wish.claim:
            mine, con, placed = 0, task.starts[wish.claim], 0
        answer = LIMIT
        for position, choice in enumerate(wish.choices):
            if choice.listed is not None and not choice.listed:
                answer = False
                continue
            if placed + choice.num > _MAX:
                continue
            got = self.pick(i, choice, 0, 0, (position,), used, mine, con, cnt, grp, loads, placed)
            if got is True:
                return True
            if got is False:
                answer = False
        return answer

    def pick(self, i, choice, k, lo, picked, used, mine, con, cnt, grp, loads, placed):
        task = self.task
        self.steps += 1
        if self.steps % 256 == 0 and self.expired():
            raise Expired
        if k >= choice.num:
            self.picked.append(picked)
            got = self.start(i + 1, used, mine, con, cnt, grp, loads, placed)
            if got is not True:
                self.picked.pop()
            if got == LIMIT and i + 1 < len(task.wishes) and task.wishes[i + 1].claim != task.wishes[i].claim:
                return False
            return got
        if choice.listed is not None:
            d = choice.listed[k]
            taken = mine & ~task.shareable if choice.admin else used
            if (choice.blocked | taken) >> d & 1:
                return False
            return self.place(i, choice, k, d, True, picked, used, mine, con, cnt, grp, loads, placed) or False
        taken = mine if choice.admin else used
        cand = (choice.mask | choice.mines) & ~taken >> lo << lo
        while cand:
            low = cand & -cand
            cand ^= low
            d = low.bit_length() - 1
            if choice.mines & low:
                raise Landmine("selector", choice.number, d)
            got = self.place(i, choice, k, d, False, picked, used, mine, con, cnt, grp, loads, placed)
            if got:
                return got
        return False

    def place(self, i, choice, k, d, must, picked, used, mine, con, cnt, grp, loads, placed):
        task = self.task
        shareable = task.shareable >> d & 1
        if not (shareable and d in loads):
            groups = task.groups.get(d)
            if groups:
                new = list(grp)
                for slot, mask in groups:
                    if not new[slot] & mask:
                        return False
                    new[slot] &= mask
                grp = tuple(new)
            counters = task.counters.get(d)
            if counters:
                left = list(cnt)
                for dim, amount in counters:
                    left[dim] -= amount
                    if left[dim] < 0:
                        return False
                cnt = tuple(left)
        for use in choice.constraints:
            bit = 1 << d
            if use.mines & bit:
                raise Landmine("derived", choice.number, d, use.slot)
            state = con[use.slot]
            refused = use.missing & bit or (not state & use.tests[d] if use.match else state & use.tests[d])
            if refused:
                if must:
                    raise Landmine("refused", choice.number, d, use.slot)
                return False
            state = state & use.adds[d] if use.match else state | use.adds[d]
            con = con[: use.slot] + (state,) + con[use.slot + 1 :]
        if choice.late >> d & 1:
            return False
        if shareable:
            load = loads.get(d)
            share = choice.shares[d]
            load = share if load is None else tuple(a + b for a, b in zip(load, share, strict=True))
            if any(a > b for a, b in zip(load, task.room[d], strict=True)):
                return False
            loads = {**loads, d: load}
        else:
            used |= 1 << d
            mine |= 1 << d
        return self.pick(i, choice, k + 1, d + 1, (*picked, d), used, mine, con, cnt, grp, loads, placed + 1)
