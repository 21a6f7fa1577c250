"""The project's own scenarios hold: tests/scenarios."""

import pytest

from earmark.simulation import play
from earmark.simulation.scenario import Scenario
from support.simulation_player import OWN, complaint, scenarios_of


@pytest.mark.parametrize("scenario", scenarios_of(OWN))
def test_the_scenario_holds(scenario: Scenario) -> None:
    outcome = play(scenario, seed=1)
    assert outcome.ok, complaint(outcome)
