"""Services that die at any step of an actuation: no second victims, no stolen device, nobody waits for ever."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from earmark.simulation.player import play
from earmark.simulation.scenario import Scenario
from support.persistence_kills import Kill, Steps
from support.simulation_player import complaint, scenario

# The services that are restarted against a real cluster, where the others are Kubernetes' own.
SCHEDULING = ("framework", "dynamicresources", "preemption")
EMULATED = ("claimcontroller", "nodes")

# What an actuation consists of, in this order (issue: Nominations survive).
ACTUATION = (
    "call preemption.Preempt",
    "call dynamicresources.AddNominatedPod",
    "write framework patch Pod/status preemptor",
    "call dynamicresources.ConfirmNominatedPod",
    "call dynamicresources.EndCycle",
    "call preemption.Execute",
    "call framework.PreemptPod",
    "write preemption patch Pod/status cheap-1",
    "write preemption delete Pod cheap-1",
    "write preemption delete Pod cheap-2",
    "call framework.ClearNominations",
    "write nodes delete Pod cheap-1",
    "write claimcontroller patch ResourceClaim/status cheap-1-",
    "write claimcontroller patch ResourceClaim/status cheap-2-",
    "call dynamicresources.RemoveNominatedPod",
    "call dynamicresources.Reserve",
    "call dynamicresources.PreBind",
    "write dynamicresources patch ResourceClaim preemptor-",
    "write dynamicresources patch ResourceClaim/status preemptor-",
    "write framework create Pod/binding preemptor",
    "call dynamicresources.RemoveNominatedPod",
    "call dynamicresources.EndCycle",
)


@pytest.fixture(scope="module")
def actuation() -> Scenario:
    return scenario(Path(__file__).parent / "actuation.yaml", "actuation")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Hundreds of crashes are told of in logs that nobody reads."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def steps_of(actuation: Scenario) -> list[str]:
    undisturbed = Steps()
    outcome = play(actuation, 0, undisturbed.hooks())
    assert outcome.ok, complaint(outcome)
    return undisturbed.seen


def check(actuation: Scenario, kill: Kill, name: str) -> None:
    steps = Steps(kill)
    outcome = play(actuation, 0, steps.hooks())
    where = f"{', '.join(kill.services)} ended {'after' if kill.after else 'before'} step {kill.step}: {name}"
    assert steps.seen[kill.step] == name, where
    assert outcome.ok, f"{where}\n{complaint(outcome)}"
    assert steps.held is not None, where
    assert not steps.held.victim_claims, f"{where}: {steps.held}"


def test_the_steps_are_those_of_an_actuation(actuation: Scenario) -> None:
    rest = iter(steps_of(actuation))
    for wanted in ACTUATION:
        assert any(step.startswith(wanted) for step in rest), f"no (more) {wanted}"


@pytest.mark.kep("E51", "E52", "E100", "E101", "E102")
@pytest.mark.parametrize(
    ("services", "seconds"),
    # Down for longer than victims take to go, or for a moment.
    [*(((name,), 3.0) for name in SCHEDULING), (SCHEDULING, 0.5)],
    ids=[*SCHEDULING, "all-at-once"],
)
def test_a_crash_at_any_step_changes_nothing_about_the_end(
    actuation: Scenario, services: tuple[str, ...], seconds: float
) -> None:
    for number, name in enumerate(steps_of(actuation)):
        for after in (False, True):
            check(actuation, Kill(services, number, after, seconds), name)


@pytest.mark.kep("E100")
@pytest.mark.parametrize("service", EMULATED)
def test_nor_does_a_crash_of_what_stands_for_the_cluster(actuation: Scenario, service: str) -> None:
    for number, name in enumerate(steps_of(actuation)):
        check(actuation, Kill((service,), number, True, 1.0), name)
