"""Relaxations of what the remaining wishes need: if one cannot be met, no solution follows and none is lost.

Every bound is shown against all solutions, never against what a search has visited, so all of them combine with each
other and with every other rule of the solver (docs/allocator.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Task

State = tuple[int, ...]
Loads = tuple[tuple[int, ...] | None, ...]


def allowed(use: ConstraintUse, state: int, candidates: int) -> int:
    """Return the candidates that the constraint accepts in a state."""
    accepted = 0
    tests, match = use.tests, use.match
    rest = candidates & ~use.missing
    while rest:
        low = rest & -rest
        rest ^= low
        if bool(state & tests[low.bit_length() - 1]) is match:
            accepted |= low
    return accepted


class Bounds:
    """The bounds of one problem, over the wishes before `end`."""

    def __init__(self, task: Task, end: int, share_index: dict[int, int]) -> None:
        self.task = task
        self.end = end
        self.share_index = share_index
        self._cheapest: list[list[tuple[int, int]]] | None = None
        self.plain = not any(choice.admin for wish in task.wishes for choice in wish.choices)

    @property
    def cheapest(self) -> list[list[tuple[int, int]]]:
        """Per counter the devices as (bit, amount), cheapest first; shareable ones count as free."""
        if self._cheapest is None:
            task = self.task
            self._cheapest = []
            for dim in range(len(task.available)):
                amounts = [0] * task.devices
                for device, charges in task.counters.items():
                    if not task.shareable >> device & 1:
                        for other, amount in charges:
                            if other == dim:
                                amounts[device] = amount
                order = sorted(range(task.devices), key=amounts.__getitem__)
                self._cheapest.append([(1 << device, amounts[device]) for device in order])
        return self._cheapest

    def payable(self, candidates: int, left: int, cnt: State) -> bool:
        """Whether the cheapest of the candidates can be paid for, counter by counter."""
        for order, most in zip(self.cheapest, cnt, strict=True):
            cost = _cost(order, candidates, left)
            if cost and cost > most:
                return False
        return True

    def narrowed(self, i: int, used: int, mine: int, con: State, cnt: State, loads: Loads) -> State | None:
        """Return the claim's constraint states without values that lead nowhere; None if the rest is hopeless."""
        task = self.task
        if i >= self.end:
            return con
        claim = task.wishes[i].claim
        narrowed = list(con)
        options: list[list[tuple[Choice, int]]] = []
        for j in range(i, self.end):
            wish = task.wishes[j]
            found: list[tuple[Choice, int]] = []
            for choice in wish.choices:
                free = self._free(choice, used, mine if wish.claim == claim else 0)
                if free is None:
                    continue
                states: Sequence[int] = con if wish.claim == claim else task.starts[wish.claim]
                if choice.listed is None:
                    for use in choice.constraints:
                        free = allowed(use, states[use.slot], free)
                if free.bit_count() >= choice.num:
                    found.append((choice, free))
            if not found:
                return None
            options.append(found)
        if not self._match(i, claim, options, narrowed):
            return None
        if not self._distinct(i, claim, options, con):
            return None
        if self.plain and not self._hall(options):
            return None
        if cnt and not self._counters(options, cnt):
            return None
        if loads and not self._shares(options, loads):
            return None
        return tuple(narrowed)

    def _free(self, choice: Choice, used: int, mine: int) -> int | None:
        if choice.listed is not None:
            if not choice.listed:
                return None
            mask = sum(1 << device for device in choice.listed)
            taken = mine & ~self.task.shareable if choice.admin else used
            return None if mask & (choice.blocked | taken) else mask
        return choice.mask & ~(mine if choice.admin else used)

    def _match(self, i: int, claim: int, options: list[list[tuple[Choice, int]]], con: list[int]) -> bool:
        """Keep the values that every affected wish has enough devices of (match narrowing)."""
        task = self.task
        for slot in range(task.slots[claim]):
            state = con[slot]
            alive = state
            union = 0
            total = 0
            tests: list[int] | None = None
            for offset, found in enumerate(options):
                if task.wishes[i + offset].claim != claim:
                    break
                uses = [[use for use in choice.constraints if use.slot == slot and use.match] for choice, _ in found]
                if not all(uses) or any(not choice.num or choice.listed is not None for choice, _ in found):
                    continue
                here = 0
                for (choice, free), (use, *_) in zip(found, uses, strict=True):
                    here |= _frequent(use.tests, free, choice.num, state)
                alive &= here
                if not alive:
                    return False
                if len(found) == 1 and (tests is None or tests is uses[0][0].tests):
                    tests = uses[0][0].tests
                    union |= found[0][1]
                    total += found[0][0].num
            if tests is not None and total and self.plain and not union & task.shareable:
                alive &= _frequent(tests, union, total, state)
                if not alive:
                    return False
            con[slot] = alive
        return True

    def _distinct(self, i: int, claim: int, options: list[list[tuple[Choice, int]]], con: State) -> bool:
        """There must be as many unused values as devices (each device takes at least one)."""
        task = self.task
        for slot in range(task.slots[claim]):
            values = needed = 0
            for offset, found in enumerate(options):
                if task.wishes[i + offset].claim != claim:
                    break
                uses = [
                    [use for use in choice.constraints if use.slot == slot and not use.match] for choice, _ in found
                ]
                if not all(uses):
                    continue
                needed += min(choice.num for choice, _ in found)
                for (_, free), (use, *_) in zip(found, uses, strict=True):
                    while free:
                        low = free & -free
                        free ^= low
                        values |= use.adds[low.bit_length() - 1]
            if needed and (values & ~con[slot]).bit_count() < needed:
                return False
        return True

    def _hall(self, options: list[list[tuple[Choice, int]]]) -> bool:
        """Whether the exclusive devices can be given out at all (bipartite matching, constraints aside)."""
        shareable = self.task.shareable
        demands: list[tuple[int, int]] = []
        total = union = 0
        for found in options:
            mask = 0
            need = min(choice.num for choice, _ in found)
            for _, free in found:
                mask |= free
            need -= (mask & shareable).bit_count()
            if need > 0:
                mask &= ~shareable
                demands.append((mask, need))
                total += need
                union |= mask
        if len(demands) < 2:
            return True
        if total > union.bit_count():
            return False
        if all(mask == demands[0][0] for mask, _ in demands):
            return True
        return assignable(demands)

    def _counters(self, options: list[list[tuple[Choice, int]]], cnt: State) -> bool:
        """The smallest amounts that the wishes can take must fit, wish by wish and each device once."""
        union = total = 0
        for found in options:
            total += min(choice.num for choice, _ in found)
            for _, free in found:
                union |= free
        once = self.plain and not union & self.task.shareable
        for order, left in zip(self.cheapest, cnt, strict=True):
            # A counter may be negative while nothing that is left would be charged to it.
            if once:
                cost = _cost(order, union, total)
                if cost and cost > left:
                    return False
            least = 0
            for found in options:
                least += min(_cost(order, free, choice.num) for choice, free in found)
            if least and least > left:
                return False
        return True

    def _shares(self, options: list[list[tuple[Choice, int]]], loads: Loads) -> bool:
        """Per capacity: the smallest shares together must fit into what is left of all devices together."""
        task = self.task
        needs: dict[int, int] = {}
        counts: dict[int, list[int]] = {}
        reachable = 0
        for found in options:
            free = 0
            for _, mask in found:
                free |= mask
            if free & ~task.shareable:
                continue
            reachable |= free
            least: dict[int, tuple[int, int]] = {}
            for choice, mask in found:
                for device in _bits(mask):
                    for name, amount in zip(task.room_names[device], choice.shares[device], strict=True):
                        size, number = least.get(name, (amount, choice.num))
                        least[name] = (min(size, amount), min(number, choice.num))
            if any(not task.room_names[device] for device in _bits(free)):
                continue
            for name, (size, number) in least.items():
                if all(name in task.room_names[device] for device in _bits(free)):
                    needs[name] = needs.get(name, 0) + size * number
                    counts.setdefault(name, []).extend([size] * number)
        for name, need in needs.items():
            sizes = counts[name]
            if not sizes:
                continue
            smallest = min(sizes)
            room = pieces = 0
            for device in _bits(reachable):
                if name not in task.room_names[device]:
                    continue
                position = task.room_names[device].index(name)
                load = loads[self.share_index[device]]
                left = task.room[device][position] - (load[position] if load is not None else 0)
                room += max(left, 0)
                pieces += left // smallest if smallest > 0 and left > 0 else len(sizes)
            if need > room or pieces < len(sizes):
                return False
        return True


def _frequent(tests: list[int], devices: int, count: int, state: int) -> int:
    """Return the values in `state` that at least `count` of the devices have."""
    if count == 1:
        mask = 0
        for device in _bits(devices):
            mask |= tests[device]
        return mask & state
    numbers: dict[int, int] = {}
    for device in _bits(devices):
        values = tests[device] & state
        while values:
            low = values & -values
            values ^= low
            numbers[low] = numbers.get(low, 0) + 1
    # A state of -1 has endless bits; only those that devices have can be alive.
    return sum(value for value, number in numbers.items() if number >= count)


def _cost(order: list[tuple[int, int]], devices: int, count: int) -> int:
    """What the cheapest `count` of the devices cost together."""
    cost = 0
    if count > 0:
        for bit, amount in order:
            if devices & bit:
                cost += amount
                count -= 1
                if not count:
                    break
    return cost


def assignable(demands: list[tuple[int, int]]) -> bool:
    """Whether devices can be given out: each demand is a mask and how many of it (bipartite matching)."""
    owner: dict[int, int] = {}
    assigned = 0

    def assign(index: int, seen: list[int]) -> bool:
        nonlocal assigned
        mask = demands[index][0]
        free = mask & ~assigned
        if free:
            low = free & -free
            assigned |= low
            owner[low] = index
            return True
        rest = mask & ~seen[0]
        while rest:
            low = rest & -rest
            rest ^= low
            seen[0] |= low
            other = owner[low]
            if other != index and assign(other, seen):
                owner[low] = index
                return True
            rest &= ~seen[0]
        return False

    # The scarcest first: most failures show at once.
    for index in sorted(
        range(len(demands)), key=lambda position: demands[position][0].bit_count() - demands[position][1]
    ):
        for _ in range(demands[index][1]):
            if not assign(index, [0]):
                return False
    return True


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
