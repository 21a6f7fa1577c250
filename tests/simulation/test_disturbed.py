"""The invariants hold, and nobody is forgotten, while watches are late and break and the API is slow."""

import pytest

from earmark.simulation import Hooks, play
from earmark.simulation.disturbance import WatchTrouble, slow_api, troubled_hooks
from earmark.simulation.report import Outcome
from support.simulation_player import OWN, complaint, scenario

TROUBLE = WatchTrouble(late=0.3, longest_seconds=1.5, broken=0.02)

# Scenarios whose end is the same whatever comes late.
SAME_END = (
    ("window.yaml", "window"),
    ("window.yaml", "window-all-restart"),
    ("window.yaml", "window-framework-away"),
    ("rivals.yaml", "equal-rival-waits"),
    ("shared.yaml", "all-users-go"),
    ("parts.yaml", "two-parts-for-the-full-device"),
    ("d-waiting.yaml", "everything-restarts-after-the-device-is-free"),
)


def at_the_end(outcome: Outcome) -> list[str]:
    return [failure.path for failure in outcome.failures if failure.at >= outcome.duration]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("file", "name"), SAME_END)
def test_late_and_broken_watches_change_nothing_in_the_end(file: str, name: str, seed: int) -> None:
    outcome = play(scenario(OWN / file, name), seed, troubled_hooks(seed, TROUBLE))
    assert outcome.violations == (), complaint(outcome)
    assert at_the_end(outcome) == [], complaint(outcome)


@pytest.mark.kep("D31", "R34")
@pytest.mark.parametrize("seed", [1, 2, 5])
@pytest.mark.parametrize(
    ("file", "name"), [*SAME_END, ("shared.yaml", "one-victim-for-two"), ("refusals.yaml", "first-deletion-refused")]
)
def test_a_slow_api_breaks_no_invariant(file: str, name: str, seed: int) -> None:
    outcome = play(scenario(OWN / file, name), seed, slow_api(Hooks(), seed, 3.0))
    assert outcome.violations == (), complaint(outcome)


@pytest.mark.kep("F2")
@pytest.mark.parametrize("seed", [32, 43])
def test_a_held_device_stays_held_while_the_plugin_is_behind(seed: int) -> None:
    hooks = slow_api(troubled_hooks(seed, TROUBLE), seed, 3.0)
    outcome = play(scenario(OWN / "d-waiting.yaml", "everything-restarts-after-the-device-is-free"), seed, hooks)
    assert at_the_end(outcome) == [], complaint(outcome)


@pytest.mark.parametrize("seed", [2])
def test_a_pod_that_the_plugin_sees_late_is_not_forgotten(seed: int) -> None:
    hooks = troubled_hooks(seed, TROUBLE)
    outcome = play(scenario(OWN / "binding.yaml", "preempted-before-it-is-bound"), seed, hooks)
    assert outcome.ok, complaint(outcome)
