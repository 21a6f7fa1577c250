"""The scenarios of the reference material hold, those recorded from the stock scheduler among them."""

import time

import pytest

from earmark.simulation import play
from earmark.simulation.scenario import Scenario
from support.simulation_player import SHARED, complaint, scenarios_of

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/scenarios is not there")


@pytest.mark.parametrize("scenario", scenarios_of(SHARED))
def test_the_scenario_holds(scenario: Scenario) -> None:
    begun = time.process_time()
    outcome = play(scenario)
    assert outcome.ok, complaint(outcome)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize("scenario", scenarios_of(SHARED / "stock"))
def test_the_choice_of_the_stock_scheduler_is_made_here_too(scenario: Scenario) -> None:
    outcome = play(scenario)
    assert outcome.ok, complaint(outcome)
