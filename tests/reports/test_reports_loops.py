"""R45: two schedulers evict in turns. What counts as a loop is pure; the scenario shows it told and slowed down."""

from __future__ import annotations

import pytest

from earmark.preemption.loops import EvictionLoops
from support.reports_play import holds


def loops(rounds: int = 3) -> EvictionLoops:
    return EvictionLoops(rounds=rounds, first_wait=60.0, longest_wait=200.0, remembered=2)


@pytest.mark.kep("R45")
def test_r45_loop_with_another_scheduler() -> None:
    holds("r45-loop-with-another-scheduler")


@pytest.mark.kep("R45")
def test_the_third_round_is_a_loop_and_each_further_one_waits_twice_as_long() -> None:
    record = loops()
    found = [record.executed("p", ["other"], at) for at in (0.0, 10.0, 20.0, 100.0, 300.0, 600.0)]
    assert [None if loop is None else loop.until for loop in found] == [None, None, 80.0, 220.0, 500.0, 800.0]
    assert record.holding_off("p", 799.0) is not None
    assert record.holding_off("p", 800.0) is None
    assert record.holding_off("q", 799.0) is None


@pytest.mark.kep("R45")
def test_own_victims_are_no_loop_and_zero_rounds_switch_it_off() -> None:
    assert all(loops().executed("p", [], at) is None for at in range(10))
    record = loops(rounds=0)
    assert all(record.executed("p", ["other"], at) is None for at in range(10))


@pytest.mark.kep("R45")
def test_only_the_newest_preemptors_are_remembered() -> None:
    record = loops(rounds=1)
    for name in ("a", "b", "c"):
        record.executed(name, ["other"], 0.0)
    assert [record.holding_off(name, 1.0) is not None for name in ("a", "b", "c")] == [False, True, True]
