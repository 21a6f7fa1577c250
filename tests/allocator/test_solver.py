"""The solver finds what a plain search finds: the first solution in upstream's order, or the same error."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, assume, given, settings

from earmark.dynamicresources.allocator import solve as solver
from earmark.dynamicresources.allocator.integers import Choice, Expired, Landmine, Solution, Task, Wish
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
