"""Integer problems for the solver: a plain search to compare with, and random small problems."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Landmine, Solution, Task, Wish

FAILED, FITS, LIMIT = 0, 1, 2


class PlainSearch:
    """Upstream's search as it is written: no look-ahead, no memory, one device after the other."""

    def __init__(self, task: Task, budget: int = 200_000) -> None:
        self.task = task
        self.budget = budget
        self.used: set[int] = set()
        self.mine: set[int] = set()
        self.counters = list(task.available)
        self.groups = list(task.group_start)
        self.loads: dict[int, list[tuple[int, ...]]] = {}
        self.states: list[int] = []
        self.placed = 0
        self.solution: list[tuple[int, ...]] = []

    def run(self) -> Solution | None:
        """Return the first solution; raise Landmine as upstream would stop, OverflowError if it takes too long."""
        self.enter(0)
        return tuple(self.solution) if self.wish(0) == FITS else None

    def enter(self, i: int) -> tuple[Any, ...]:
        before = (self.mine, self.states, self.placed)
        wishes = self.task.wishes
        if i < len(wishes) and (i == 0 or wishes[i - 1].claim != wishes[i].claim):
            self.mine, self.states, self.placed = set(), list(self.task.starts[wishes[i].claim]), 0
        return before

    def wish(self, i: int) -> int:
        if i == len(self.task.wishes):
            return FITS
        answer = LIMIT
        for position, choice in enumerate(self.task.wishes[i].choices):
            if choice.listed is not None and not choice.listed:
                answer = FAILED
                continue
            if choice.num > 0 and self.placed + choice.num > 32:
                continue
            got = self.device(i, position, choice, [], 0)
            if got == FITS:
                return FITS
            if got == FAILED:
                answer = FAILED
        return answer

    def device(self, i: int, position: int, choice: Choice, picked: list[int], start: int) -> int:
        self.budget -= 1
        if self.budget < 0:
            raise OverflowError
        if len(picked) >= choice.num:
            self.solution.append((position, *picked))
            mine, states, placed = self.enter(i + 1)
            border = self.mine is not mine
            got = self.wish(i + 1)
            self.mine, self.states, self.placed = mine, states, placed
            if got != FITS:
                self.solution.pop()
            return FAILED if got == LIMIT and border else got
        if choice.listed is not None:
            return self.take(i, position, choice, picked, choice.listed[len(picked)])
        for device in range(start, self.task.devices):
            bit = 1 << device
            if not (choice.mask | choice.mines) & bit or device in (self.mine if choice.admin else self.used):
                continue
            if choice.mines & bit:
                raise Landmine("selector", choice.number, device)
            got = self.take(i, position, choice, picked, device)
            if got != FAILED:
                return got
        return FAILED

    def take(self, i: int, position: int, choice: Choice, picked: list[int], device: int) -> int:
        task, bit = self.task, 1 << device
        shareable = bool(task.shareable & bit)
        if choice.listed is not None:
            taken = device in self.mine and not shareable if choice.admin else device in self.used
            if choice.blocked & bit or taken:
                return FAILED
        # Frames below may hold the lists as they are now, so changes are made to copies.
        saved = (self.counters, self.groups, self.states)
        self.counters, self.groups, self.states = list(self.counters), list(self.groups), list(self.states)
        got = FAILED
        if self.charge(choice, device, shareable):
            shares = self.loads.setdefault(device, [])
            new_mine = device not in self.mine
            if shareable:
                shares.append(choice.shares[device])
            else:
                self.used.add(device)
                self.mine.add(device)
            self.placed += 1
            fits = not shareable or all(
                sum(share[k] for share in shares) <= room for k, room in enumerate(task.room[device])
            )
            if fits and not choice.late & bit:
                twice = choice.admin and not new_mine
                got = self.device(i, position, choice, [*picked, device], device + 1)
                assert not twice or shareable
            if got != FITS:
                self.placed -= 1
                if shareable:
                    shares.pop()
                elif new_mine:
                    self.mine.discard(device)
                    if not any(device in row for row in self.others()):
                        self.used.discard(device)
        if got != FITS:
            self.counters, self.groups, self.states = saved
        return got

    def others(self) -> list[list[int]]:
        return [list(row[1:]) for row in self.solution]

    def charge(self, choice: Choice, device: int, shareable: bool) -> bool:
        task, bit = self.task, 1 << device
        if not (shareable and self.loads.get(device)):
            for slot, mask in task.groups.get(device, ()):
                if not self.groups[slot] & mask:
                    return False
                self.groups[slot] &= mask
            for dim, amount in task.counters.get(device, ()):
                self.counters[dim] -= amount
                if self.counters[dim] < 0:
                    return False
        for use in choice.constraints:
            if use.mines & bit:
                raise Landmine("derived", choice.number, device, use.slot)
            state = self.states[use.slot]
            accepted = bool(state & use.tests[device]) is use.match and not use.missing & bit
            if not accepted:
                if choice.listed is not None:
                    raise Landmine("refused", choice.number, device, use.slot)
                return False
            self.states[use.slot] = state & use.adds[device] if use.match else state | use.adds[device]
        return True


@st.composite
def tasks(draw: st.DrawFn, *, landmines: bool = True) -> Task:
    """Random problems of up to 7 devices, 4 wishes, 2 claims, on which a search must backtrack."""
    count = draw(st.integers(2, 7))
    everything = (1 << count) - 1
    masks = st.integers(0, everything)
    shareable = draw(masks) if draw(st.booleans()) else 0
    amounts = st.integers(0, 4)
    columns: list[list[ConstraintUse]] = []
    claims = draw(st.integers(1, 2))
    starts = []
    for _ in range(claims):
        uses = [draw(_constraint(slot, count, landmines)) for slot in range(draw(st.integers(0, 2)))]
        columns.append(uses)
        starts.append(tuple(-1 if use.match else 0 for use in uses))
    room = {device: (draw(st.integers(2, 8)),) for device in range(count) if shareable >> device & 1}
    number = 0
    wishes = []
    for claim in range(claims):
        for _ in range(draw(st.integers(1, 3))):
            choices = []
            prioritized = draw(st.integers(0, 3)) == 0
            for _ in range(draw(st.integers(1, 3)) if prioritized else 1):
                choices.append(draw(_choice(number, count, shareable, columns[claim], landmines)))
                number += 1
            wishes.append(Wish(claim, tuple(choices), prioritized))
    dims = draw(st.integers(0, 2))
    groups = draw(st.integers(0, 1)) if dims else 0
    counters: dict[int, tuple[tuple[int, int], ...]] = {}
    grouped: dict[int, tuple[tuple[int, int], ...]] = {}
    for device in range(count):
        if dims and draw(st.booleans()):
            counters[device] = tuple((dim, draw(amounts)) for dim in range(dims))
            if groups:
                grouped[device] = ((0, draw(st.integers(1, 7))),)
    return Task(
        devices=count,
        wishes=tuple(wishes),
        slots=tuple(len(uses) for uses in columns),
        starts=tuple(starts),
        shareable=shareable,
        room=room,
        room_names=dict.fromkeys(room, (0,)),
        counters=counters,
        available=tuple(draw(st.integers(0, 9)) for _ in range(dims)),
        groups=grouped,
        group_start=(-1,) * groups,
    )


@st.composite
def _constraint(draw: st.DrawFn, slot: int, count: int, landmines: bool) -> ConstraintUse:
    match = draw(st.booleans())
    values = [1 << draw(st.integers(1, 3)) for _ in range(count)]
    if draw(st.booleans()):
        values = [value | draw(st.sampled_from([0, 2, 4])) for value in values]
    tests, adds = list(values), list(values)
    odd = draw(st.integers(-count, count - 1))
    if odd >= 0:
        tests[odd], adds[odd] = (1, 0) if match else (-1, 1)
    rare = st.integers(0, (1 << count) - 1) if draw(st.integers(0, 3)) == 0 else st.just(0)
    missing = draw(rare)
    mines = draw(rare) & ~missing if landmines else 0
    return ConstraintUse(slot, match, tests, adds, missing, mines)


@st.composite
def _choice(
    draw: st.DrawFn, number: int, count: int, shareable: int, uses: list[ConstraintUse], landmines: bool
) -> Choice:
    everything = (1 << count) - 1
    mask = draw(st.one_of(st.just(everything), st.integers(0, everything)))
    applied = tuple(use for use in uses if draw(st.booleans()))
    shares = {device: (draw(st.integers(0, 4)),) for device in range(count) if shareable >> device & 1}
    admin = draw(st.integers(0, 9)) == 0
    if landmines and draw(st.integers(0, 7)) == 0:
        listed = tuple(device for device in range(count) if mask >> device & 1)
        return Choice(number, len(listed), admin, 0, 0, listed, draw(st.sampled_from([0, 0, 1])), applied, shares,
                      draw(st.sampled_from([0, 0, 0, 2])))  # fmt: skip
    for use in applied:
        mask &= ~(use.missing & ~use.mines)
    mines = draw(st.integers(0, everything)) if landmines and draw(st.integers(0, 5)) == 0 else 0
    return Choice(number, draw(st.integers(0, 4)), admin, mask & ~mines, mines, None, 0, applied, shares)
