"""The solver finds what a plain search finds: the first solution in upstream's order, or the same error."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, assume, given, settings

from earmark.dynamicresources.allocator import solve as solver
from earmark.dynamicresources.allocator.integers import Choice, ConstraintUse, Expired, Landmine, Solution, Task, Wish
from earmark.dynamicresources.allocator.solve import Statistics, solve
from support.allocator_tasks import PlainSearch, tasks

_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

Answer = Solution | tuple[str, int, int, int] | None


def answer_of(search: object) -> Answer:
    """Run a search; an error becomes a value."""
    try:
        return search()  # type: ignore[operator, no-any-return]
    except Landmine as mine:
        return mine.reason, mine.choice, mine.device, mine.constraint


def never() -> bool:
    return False


def check(task: Task) -> None:
    try:
        expected = answer_of(PlainSearch(task).run)
    except OverflowError:
        assume(False)
    assert answer_of(lambda: solve(task, never)) == expected


@settings(max_examples=600, deadline=None, suppress_health_check=_RELAXED)
@given(tasks())
def test_the_first_solution_is_that_of_a_plain_search(task: Task) -> None:
    check(task)


@settings(max_examples=600, deadline=None, suppress_health_check=_RELAXED)
@given(tasks(landmines=False))
def test_pruning_from_the_first_step_changes_nothing(task: Task) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Otherwise small problems end before look-ahead and memory begin.
        patch.setattr(solver, "_PATIENCE", 1)
        check(task)


@settings(max_examples=300, deadline=None, suppress_health_check=_RELAXED)
@given(tasks())
def test_landmines_are_met_where_a_plain_search_meets_them(task: Task) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_PATIENCE", 1)
        check(task)


def test_a_search_whose_time_is_over_stops() -> None:
    # Subset sum with different amounts: nothing here is interchangeable.
    chance = random.Random(5)
    task = _partition(sorted(chance.sample(range(1000, 9000), 24)), 12, 60_000, 59_999)
    with pytest.raises(Expired):
        solve(task, lambda: True)


def test_statistics_count_the_steps() -> None:
    statistics = Statistics()
    solve(_partition([1, 1, 1], 2, 2, 20_000), never, statistics)
    assert statistics.steps > 0


def _partition(amounts: list[int], want: int, available: int, other: int) -> Task:
    count = len(amounts)
    choice = Choice(0, want, False, (1 << count) - 1, 0, None, 0, (), {})
    counters = {device: ((0, amount), (1, 10_000 - amount)) for device, amount in enumerate(amounts)}
    return Task(count, (Wish(0, (choice,), False),), (0,), ((),), 0, {}, {}, counters,
                (available, other), {}, ())  # fmt: skip


def test_the_limit_of_32_is_remembered_with_what_the_claim_has_so_far() -> None:
    # 31 devices leave no room for two more; the second alternative does, and looks the same to the second request.
    first, second = (1 << 31) - 1, 0b11 << 31
    many = Choice(0, 31, False, first, 0, None, 0, (), {})
    few = Choice(1, 2, False, first, 0, None, 0, (), {})
    rest = Choice(2, 2, False, second, 0, None, 0, (), {})
    wishes = (Wish(0, (many, few), True), Wish(0, (rest,), False))
    task = Task(33, wishes, (0,), ((),), 0, {}, {}, {}, (), {}, ())
    assert solve(task, never) == ((1, 0, 1), (0, 31, 32))


def test_equal_requests_are_not_swapped_where_the_order_of_values_counts() -> None:
    # The value of device 1 is accepted from the first device only, so device 0 has to come second.
    use = ConstraintUse(0, False, [2, -1, 2], [2, 1, 2], 0, 0)
    wishes = tuple(Wish(0, (Choice(number, 1, False, 0b111, 0, None, 0, (use,), {}),), False) for number in range(2))
    task = Task(3, wishes, (1,), ((0,),), 0, {}, {}, {}, (), {}, ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver, "_PATIENCE", 1)
        assert solve(task, never) == ((0, 1), (0, 0))
