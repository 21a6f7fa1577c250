"""Playing scenario files in tests: which there are, and what a failed run says."""

from pathlib import Path

import pytest

from earmark.simulation.durations import format_duration
from earmark.simulation.loader import load_scenarios
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario
from support.kep_stories import Story, stories

REPOSITORY = Path(__file__).resolve().parents[2]
OWN = REPOSITORY / "tests" / "scenarios"
SHARED = REPOSITORY.parent / "shared" / "scenarios"


def scenarios_of(folder: Path) -> list[object]:
    """Return a pytest parameter for each scenario of a folder's files."""
    return [
        pytest.param(scenario, id=f"{path.stem}/{scenario.name}", marks=_marks(story))
        for path in sorted(folder.glob("*.yaml"))
        for scenario, story in zip(load_scenarios(path), stories(path), strict=True)
    ]


def _marks(story: Story) -> list[pytest.MarkDecorator]:
    return [pytest.mark.kep(*story.proves)] if story.proves else []


def scenario(path: Path, name: str) -> Scenario:
    """Return one scenario of a file."""
    return next(found for found in load_scenarios(path) if found.name == name)


def complaint(outcome: Outcome) -> str:
    """Return what did not hold and what happened, for a failed assertion."""
    lines = [f"{outcome.scenario}: expectations or invariants do not hold"]
    for failure in outcome.failures:
        lines.append(f"{format_duration(failure.at)} {failure.path}: want {failure.want!r}, got {failure.got!r}")
    for violation in outcome.violations:
        lines.append(f"{format_duration(violation.at)} {violation.invariant}: {violation.detail}")
    for entry in outcome.log:
        lines.append(f"    {entry.at:10.3f} {entry.service} {entry.event} {dict(entry.details)}")
    return "\n".join(lines)
