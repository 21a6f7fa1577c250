"""`earmark simulate`: scenario files in, verdicts out."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from earmark.dynamicresources.settings import DEFAULT_GATES
from earmark.simulation.encode import outcome_json
from earmark.simulation.errors import ScenarioError
from earmark.simulation.loader import load_scenarios
from earmark.simulation.player import play
from earmark.simulation.present import headline, present, problems
from earmark.simulation.progress import Progress, progress
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario

HELD, BROKEN, UNUSABLE = 0, 1, 2

# Columns where nobody looks.
_PLAIN_WIDTH = 160


def simulate(files: Sequence[Path], *, seed: int, as_json: bool, quiet: bool) -> int:
    """Play all scenarios of the files in order and print what they have shown.

    Args: `as_json` prints one JSON object a scenario and line, `quiet` nothing of what has held but a last line.
    Returns the exit status: 0 if everything held, 1 if not, 2 (and one line on stderr) if a file cannot be used.
    """
    # What services log is not for here: what they do is told by the run's own log.
    logging.getLogger("earmark").addHandler(logging.NullHandler())
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        scenarios = [scenario for path in files for scenario in load_scenarios(path, DEFAULT_GATES)]
        outcomes = _play_all(scenarios, seed, _Printer(as_json=as_json, quiet=quiet))
    except ScenarioError as error:
        errors.print(f"error: {error}", style="red", markup=False)
        return UNUSABLE
    return HELD if all(outcomes) else BROKEN


def _play_all(scenarios: Sequence[Scenario], seed: int, printer: _Printer) -> list[bool]:
    held: list[bool] = []
    with printer.progress(len(scenarios)) as shown:
        for scenario in scenarios:
            shown.begin(scenario.name)
            outcome = play(scenario, seed)
            held.append(outcome.ok)
            printer.show(outcome)
            shown.end()
    printer.summary(held)
    return held


class _Printer:
    """Where outcomes are printed: JSON on stdout as it is, everything else by rich."""

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._console = Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
        self._errors = Console(stderr=True)

    def progress(self, total: int) -> AbstractContextManager[Progress]:
        """Return a bar where somebody looks and there is more than one scenario."""
        return progress(total, wanted=not self._quiet and not self._as_json, console=self._errors)

    def show(self, outcome: Outcome) -> None:
        """Print one outcome."""
        if self._as_json:
            sys.stdout.write(outcome_json(outcome) + "\n")
            sys.stdout.flush()
        elif not self._quiet:
            present(outcome, self._console)
        elif not outcome.ok:
            self._console.print(headline(outcome))
            self._console.print(problems(outcome))

    def summary(self, held: Sequence[bool]) -> None:
        """Print how many scenarios held."""
        if self._as_json:
            return
        failed = held.count(False)
        text = f"{len(held)} scenario{'' if len(held) == 1 else 's'} played, " + (
            f"{failed} failed" if failed else "all held"
        )
        self._console.print(text, style="bold red" if failed else "bold green")
