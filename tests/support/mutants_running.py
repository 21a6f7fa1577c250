"""Plays scenarios against a fault until one of them fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from earmark.simulation import play
from earmark.simulation.durations import format_duration
from earmark.simulation.loader import load_scenarios
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario
from support.kep_stories import stories
from support.mutants_catalogue import Fault
from support.mutants_patching import in_place
from support.simulation_player import OWN

CRASHES = "services do not crash"


@dataclass(frozen=True, slots=True)
class Played:
    """A scenario with the requirements that it proves."""

    scenario: Scenario
    proves: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catch:
    """What has caught a fault, and how it showed."""

    scenario: str
    proves: tuple[str, ...]
    why: str


def own_scenarios() -> dict[str, Played]:
    """Return the project's scenarios by name."""
    return {
        scenario.name: Played(scenario, story.proves)
        for path in sorted(OWN.glob("*.yaml"))
        for scenario, story in zip(load_scenarios(path), stories(path), strict=True)
    }


def catches(fault: Fault, scenarios: dict[str, Played]) -> Iterator[Catch]:
    """Yield what catches a fault: the expected scenario first, then the others in their order."""
    first = scenarios[fault.likely]
    others = [item for name, item in scenarios.items() if name != fault.likely]
    for item in (first, *others):
        with in_place(fault.apply):
            outcome = play(item.scenario, seed=1)
        if any(violation.invariant == CRASHES for violation in outcome.violations):
            raise AssertionError(f"{fault.name} is no fault but a crash: {outcome.violations[0].detail}")
        if not outcome.ok:
            yield Catch(item.scenario.name, item.proves, _why(outcome))


def _why(outcome: Outcome) -> str:
    if outcome.failures:
        failure = outcome.failures[0]
        return f"{format_duration(failure.at)} {failure.path}: want {failure.want}, got {failure.got}"
    violation = outcome.violations[0]
    return f"{format_duration(violation.at)} {violation.invariant}: {violation.detail}"
