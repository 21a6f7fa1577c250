"""Public reports as scenario files: tests/reports/scenarios/rNN-*.yaml."""

from __future__ import annotations

from earmark.simulation import load_scenarios, play
from earmark.simulation.report import Outcome
from support.simulation_player import REPOSITORY, complaint

FOLDER = REPOSITORY / "tests" / "reports" / "scenarios"


def holds(stem: str) -> list[Outcome]:
    """Play all scenarios of a file; fail with what did not hold."""
    outcomes = [play(scenario, seed=1) for scenario in load_scenarios(FOLDER / f"{stem}.yaml")]
    for outcome in outcomes:
        assert outcome.ok, complaint(outcome)
    return outcomes
