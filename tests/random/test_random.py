"""Random scenarios: no invariant is violated, nobody who waits need not, and nobody is forgotten.

A share of the seeds is played here; `make random SEEDS=1-1000` plays as many as wanted, and writes those that fail as
scenario files with `ARGS="--keep DIR"`.
"""

from pathlib import Path

import pytest

from earmark.simulation import load_scenarios, play
from earmark.simulation.disturbance import WatchTrouble, troubled_hooks
from earmark.simulation.scenario import Scenario
from support.random_runs import run_seed
from support.random_scenarios import random_scenario
from support.simulation_player import complaint

FOUND = Path(__file__).with_name("found")
SEEDS = range(1, 61)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_scenario_holds(seed: int) -> None:
    run = run_seed(seed)
    assert not run.complaints, "\n".join([f"seed {seed}:", *run.complaints])


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(found, id=found.name) for path in sorted(FOUND.glob("*.yaml")) for found in load_scenarios(path)],
)
def test_what_random_scenarios_have_found_stays_mended(scenario: Scenario) -> None:
    outcome = play(scenario)
    assert outcome.ok, complaint(outcome)


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_victim_whose_end_is_heard_of_late_is_preempted_once(seed: int) -> None:
    (scenario,) = load_scenarios(FOUND / "room-and-a-free-device.yaml")
    outcome = play(scenario, seed, troubled_hooks(seed, WatchTrouble(late=1.0, longest_seconds=8.0)))
    assert outcome.ok, complaint(outcome)
    assert sum(entry.event == "nominated" for entry in outcome.log) == 1
    assert sum(entry.event == "event" and entry.details["reason"] == "PreemptionSettled" for entry in outcome.log) == 1


def test_random_scenarios_cover_what_may_happen() -> None:
    runs = [run_seed(seed) for seed in range(1, 21)]
    events = {event.event for run in runs if run.outcome is not None for event in run.outcome.log}
    assert {"preempted", "nominated", "deallocated", "refused", "stopped", "bound"} <= events
    assert sum(run.outcome is not None and len(run.outcome.evictions) for run in runs) > 10
    assert sum(len(run.photos[0].pending) for run in runs if run.photos) > 20
    assert sum(bool(run.photos and run.photos[0].busy) for run in runs) < 5


def test_a_kept_scenario_is_the_one_that_was_played(tmp_path: Path) -> None:
    run = run_seed(3)
    (again,) = load_scenarios(run.keep(tmp_path))
    played = random_scenario(3).scenario()
    assert [manifest.data for manifest in again.objects] == [manifest.data for manifest in played.objects]
    kept = [entry for number, entry in enumerate(played.timeline) if number not in run.refused]
    for written, entry in zip(again.timeline, kept, strict=False):
        assert (written.at, written.step.key, written.step.describe()) == (
            entry.at,
            entry.step.key,
            entry.step.describe(),
        )
