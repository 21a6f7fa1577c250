"""Yes or no without a search, for problems whose devices only have to be counted.

The order of devices, and with it the first solution, is of no concern here. A problem is of this kind if every request
has one alternative and wants exclusive devices by number, and its constraints are matchAttributes: then a solution
exists exactly if for some value of each constraint the devices with these values can be given out and paid for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from earmark.dynamicresources.allocator.bounds import assignable
from earmark.dynamicresources.allocator.counting import UNGROUPED, Pairs
from earmark.dynamicresources.allocator.integers import ConstraintUse
from earmark.dynamicresources.allocator.rows import bits
from earmark.dynamicresources.allocator.skeleton import Skeleton
from earmark.dynamicresources.allocator.symmetry import ordered_values
from earmark.dynamicresources.allocator.usage import PoolState

# Combinations of values beyond this many are left to the search, and so are subsets that take more steps.
_COMBINATIONS = 64
_STEPS = 400

Demand = tuple[int, int]
"""Devices as a mask, and how many of them."""


class _Match:
    """A matchAttribute: the demands that it concerns, and the devices of each value that enough devices have."""

    __slots__ = ("members", "values")

    def __init__(self, members: Sequence[int], values: Sequence[int]) -> None:
        self.members = members
        self.values = values


class Quick:
    """The questions that one skeleton poses."""

    __slots__ = ("_charges", "_consuming", "_demands", "_devices", "_firsts", "_matches", "_one")

    def __init__(self, skeleton: Skeleton, demands: list[Demand], matches: list[_Match]) -> None:
        self._firsts = skeleton.firsts
        self._demands = demands
        self._matches = matches
        self._devices = 0
        for mask, _ in demands:
            self._devices |= mask
        self._charges: dict[int, tuple[int, Pairs]] = {
            1 << device: (pool, amounts)
            for device, (pool, amounts, _) in skeleton.consumption.items()
            if self._devices >> device & 1
        }
        self._consuming: list[int] = [0] * len(skeleton.firsts)
        for bit, (pool, _) in self._charges.items():
            self._consuming[pool] |= bit
        # The commonest question of all needs nothing but a population count.
        plain = len(demands) == 1 and not matches and not self._charges
        self._one = demands[0] if plain else None

    @classmethod
    def of(cls, skeleton: Skeleton) -> Quick | None:
        """Return the quick form of a skeleton, None if it has none."""
        if skeleton.mine_errors or skeleton.derive_errors or skeleton.many_terms:
            return None
        demands: list[Demand] = []
        uses: dict[tuple[int, int], list[tuple[int, ConstraintUse]]] = {}
        for wish in skeleton.wishes:
            if len(wish.choices) != 1:
                return None
            choice = wish.choices[0]
            wanted = choice.alternative
            if choice.listed is not None or wanted.admin or wanted.derived or choice.mask & skeleton.shareable:
                return None
            if not choice.num:
                continue
            for use in choice.uses:
                if not use.match or ordered_values(use):
                    return None
                uses.setdefault((wish.claim, use.slot), []).append((len(demands), use))
            demands.append((choice.mask, choice.num))
        concerned = 0
        for mask, _ in demands:
            concerned |= mask
        for device, (_, _, groups) in skeleton.consumption.items():
            if concerned >> device & 1 and any(mask != UNGROUPED for _, mask in groups):
                return None
        matches = [_match(demands, members) for members in uses.values()]
        combinations = 1
        for match in matches:
            combinations *= max(len(match.values), 1)
        if combinations > _COMBINATIONS:
            return None
        if not matches:
            demands = _merged(demands)
        return cls(skeleton, demands, matches)

    def fits(self, states: Sequence[Sequence[PoolState]]) -> bool | None:
        """Whether the requests can be met in every ledger; None if that takes a search."""
        one = self._one
        if one is not None and len(states) == 1 and len(states[0]) == 1:
            only = states[0][0]
            if not only.shared:
                return (one[0] & ~only.exclusive).bit_count() >= one[1]
        taken = 0
        for ledger in states:
            for first, state in zip(self._firsts, ledger, strict=True):
                taken |= state.exclusive << first
                for position, _ in state.shared:
                    if self._devices >> first + position & 1:
                        return None
        if one is not None:
            return (one[0] & ~taken).bit_count() >= one[1]
        if self._charges:
            for ledger in states:
                for consuming, state in zip(self._consuming, ledger, strict=True):
                    # One overcommitted counter refuses every device that would be charged (upstream A11.3).
                    if state.left is not None and state.left.overcommitted:
                        taken |= consuming
        demands = [(mask & ~taken, count) for mask, count in self._demands]
        if any(mask.bit_count() < count for mask, count in demands):
            return False
        return self._matched(demands, 0, states)

    def _matched(self, demands: list[Demand], place: int, states: Sequence[Sequence[PoolState]]) -> bool | None:
        """Try the values of the constraints from `place` on."""
        if place == len(self._matches):
            return self._given_out(_merged(demands), states)
        match = self._matches[place]
        answer: bool | None = False
        for value in match.values:
            narrowed = demands.copy()
            for member in match.members:
                mask, count = demands[member]
                if (mask & value).bit_count() < count:
                    break
                narrowed[member] = (mask & value, count)
            else:
                got = self._matched(narrowed, place + 1, states)
                if got:
                    return True
                if got is None:
                    answer = None
        return answer

    def _given_out(self, demands: list[Demand], states: Sequence[Sequence[PoolState]]) -> bool | None:
        if any(mask.bit_count() < count for mask, count in demands):
            return False
        if len(demands) > 1 and not assignable(demands):
            return False
        union = 0
        for mask, _ in demands:
            union |= mask
        rows, limits = self._rows(union, states)
        if not limits:
            return True
        if len(demands) > 1:
            # Several different demands that share counters: a bound refuses, all else is the search's.
            total = sum(count for _, count in demands)
            return None if _cheap_enough(rows, limits, total) else False
        return affordable(rows, limits, demands[0][1])

    def _rows(self, union: int, states: Sequence[Sequence[PoolState]]) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return what each device of a mask takes of the counters that could run out, and what is left of those."""
        charges = self._charges
        charged = [(bit, *charges[bit]) for bit in _low_bits(union) if bit in charges]
        totals: dict[tuple[int, int], int] = {}
        for _, pool, pairs in charged:
            for counter, amount in pairs:
                totals[pool, counter] = totals.get((pool, counter), 0) + amount
        # Every ledger is charged the same, so the one that has least left decides.
        columns: dict[tuple[int, int], int] = {}
        limits: list[int] = []
        for (pool, counter), total in totals.items():
            lefts = [left.amounts[counter] for ledger in states if (left := ledger[pool].left) is not None]
            least = min(lefts, default=total)
            if total > least:
                columns[pool, counter] = len(limits)
                limits.append(least)
        if not limits:
            return [], limits
        rows = [(0,) * len(limits)] * (union.bit_count() - len(charged))
        for _, pool, pairs in charged:
            row = [0] * len(limits)
            for counter, amount in pairs:
                column = columns.get((pool, counter))
                if column is not None:
                    row[column] = amount
            rows.append(tuple(row))
        return rows, limits


def _low_bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low
        mask ^= low


def _merged(demands: list[Demand]) -> list[Demand]:
    """Requests for the same devices are one: without order, nothing tells them apart."""
    if len(demands) < 2:
        return demands
    counts: dict[int, int] = {}
    for mask, count in demands:
        counts[mask] = counts.get(mask, 0) + count
    return list(counts.items())


def _match(demands: list[Demand], members: list[tuple[int, ConstraintUse]]) -> _Match:
    """Return a constraint with the devices of each value; values that too few devices have are left out."""
    by_value: dict[int, int] = {}
    for member, use in members:
        for device in bits(demands[member][0] & ~use.missing):
            rest = use.tests[device]
            while rest:
                low = rest & -rest
                rest ^= low
                by_value[low] = by_value.get(low, 0) | 1 << device
    places = [member for member, _ in members]
    needed = sum(demands[place][1] for place in places)
    values = dict.fromkeys(mask for mask in by_value.values() if mask.bit_count() >= needed)
    return _Match(places, list(values))


def _cheap_enough(rows: list[tuple[int, ...]], limits: list[int], count: int) -> bool:
    """Whether the cheapest devices could be paid for, counter by counter."""
    return all(
        sum(sorted(column)[:count]) <= limit for column, limit in zip(zip(*rows, strict=True), limits, strict=True)
    )


def affordable(rows: list[tuple[int, ...]], limits: list[int], count: int) -> bool | None:
    """Whether `count` of the rows sum up to no more than the limits; None if that takes too many steps."""
    rows = [row for row in rows if all(map(int.__le__, row, limits))]
    if len(rows) < count:
        return False
    if count == 1:
        return True
    if not _cheap_enough(rows, limits, count):
        return False
    # Any weights make a bound of their own; these let every counter count by what is left of it.
    scale = max(limits) << 10
    weights = [scale // limit if limit else 0 for limit in limits]
    weighed = sorted((sum(map(int.__mul__, row, weights)), row) for row in rows)
    budget = sum(map(int.__mul__, limits, weights))
    prices = [0]
    for price, _ in weighed:
        prices.append(prices[-1] + price)
    steps = _STEPS

    def choose(place: int, missing: int, price: int, left: Sequence[int]) -> bool | None:
        """Take `missing` more rows, none before `place`."""
        nonlocal steps
        if not missing:
            return True
        seen = None
        for position in range(place, len(weighed) - missing + 1):
            if price + prices[position + missing] - prices[position] > budget:
                return False
            cost, row = weighed[position]
            if row == seen:
                continue
            seen = row
            rest = list(map(int.__sub__, left, row))
            if min(rest) < 0:
                continue
            steps -= 1
            if not steps:
                return None
            got = choose(position + 1, missing - 1, price + cost, rest)
            if got is not False:
                return got
        return False

    return choose(0, count, 0, limits)
