"""Every own scenario once more with DRAPreemption off: nobody is preempted for a device, and nothing is held."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earmark.simulation import play
from earmark.simulation.loader import load_scenarios
from earmark.simulation.scenario import Scenario
from earmark.simulation.steps.expect import Expect
from earmark.simulation.steps.nodes import Attach
from support.kep_stories import stories
from support.simulation_player import OWN, complaint

GATE = "DRAPreemption"

PAIRS = [
    pytest.param(scenario, story.evicted_without_gate, id=f"{path.stem}/{scenario.name}")
    for path in sorted(OWN.glob("*.yaml"))
    for scenario, story in zip(load_scenarios(path), stories(path), strict=True)
]


def switched_off(scenario: Scenario) -> Scenario:
    """Return the scenario without the gate, and without what is only there with it on: expectations, new devices."""
    timeline = tuple(entry for entry in scenario.timeline if not isinstance(entry.step, Expect | Attach))
    return replace(scenario, feature_gates={**scenario.feature_gates, GATE: False}, timeline=timeline)


@pytest.mark.kep("E2", "E6", "E8", "E105")
@pytest.mark.parametrize(("scenario", "evicted"), PAIRS)
def test_without_the_gate_nobody_is_evicted_for_a_device(scenario: Scenario, evicted: tuple[str, ...]) -> None:
    outcome = play(switched_off(scenario), seed=1)
    assert outcome.ok, complaint(outcome)
    assert outcome.evicted == tuple(sorted(evicted)), complaint(outcome)
    assert not outcome.settlements
