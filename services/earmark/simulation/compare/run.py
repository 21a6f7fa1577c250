"""`earmark compare`: every scenario under every mode, as a table or as CSV."""

from __future__ import annotations

import csv as csv_format
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.settings import DEFAULT_GATES, DRA_PREEMPTION
from earmark.dynamicresources.settings import Settings as DynamicResourcesSettings
from earmark.runtime.component import Component, Environment
from earmark.simulation.compare.alternatives import MODES, Mode
from earmark.simulation.compare.measure import Figures, figures
from earmark.simulation.compare.promises import Book, Keeping
from earmark.simulation.composition import builders
from earmark.simulation.errors import ScenarioError
from earmark.simulation.expectation import Expectation
from earmark.simulation.hooks import Hooks
from earmark.simulation.loader import load_scenarios
from earmark.simulation.player import play
from earmark.simulation.progress import Progress, progress
from earmark.simulation.scenario import Scenario, TimelineEntry
from earmark.simulation.steps.expect import Expect

DONE, UNUSABLE = 0, 2

_PLAIN_WIDTH = 160
_COLUMNS = (
    "scenario", "mode", "seed", "evictions", "second_evictions", "stolen_devices", "idle_device_seconds",
    "mean_time_to_schedule_seconds", "bound", "pending",
)  # fmt: skip


def measured(scenario: Scenario, mode: Mode, seed: int = 1) -> Figures:
    """Play a scenario in a mode, whatever it expects, to its end. Raises ScenarioError where it cannot be played."""
    book = Book()

    def composed(played: Scenario) -> Mapping[str, Callable[[Environment], Component]]:
        settings = DynamicResourcesSettings(feature_gates=dict(played.feature_gates))

        def build(env: Environment) -> DynamicResources:
            component = dynamicresources.build(settings, env, mode.core)
            assert isinstance(component.core, Keeping)
            component.core.keep(book)
            mode.attach(component, env)
            return component

        return {**builders(played), "dynamicresources": build}

    return figures(play(_to_the_end(scenario), seed, Hooks(builders=composed)), book)


def _shown(shown: Progress, scenario: Scenario, mode: Mode, seed: int) -> Figures:
    shown.begin(f"{scenario.name}: {mode.name}")
    found = measured(scenario, mode, seed)
    shown.end()
    return found


def _to_the_end(scenario: Scenario) -> Scenario:
    steps = [entry for entry in scenario.timeline if not isinstance(entry.step, Expect)]
    return replace(scenario, timeline=(*steps, TimelineEntry(None, Expect(Expectation()))))


def compare(files: Sequence[Path], *, seeds: int, csv: bool) -> int:
    """Play the files' scenarios with the gate on under each mode and print what each costs.

    Args: `seeds` is the number of runs of each (seeds 1, 2, ...): a table shows means, CSV every run. Returns the exit
    status: 0, or 2 (and one line on stderr) if a file cannot be used.
    """
    logging.getLogger("earmark").addHandler(logging.NullHandler())
    try:
        found = [scenario for path in files for scenario in load_scenarios(path, DEFAULT_GATES)]
        scenarios = [scenario for scenario in found if scenario.feature_gates.get(DRA_PREEMPTION, False)]
        with progress(len(scenarios) * len(MODES) * seeds) as shown:
            runs = [
                (scenario, mode, [_shown(shown, scenario, mode, seed) for seed in _seeds(seeds)])
                for scenario in scenarios
                for mode in MODES
            ]
    except ScenarioError as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(f"error: {error}", style="red", markup=False)
        return UNUSABLE
    if csv:
        _write_csv(runs)
    else:
        console = Console(highlight=False, width=None if sys.stdout.isatty() else _PLAIN_WIDTH)
        print_table(runs, console)
        if skipped := len(found) - len(scenarios):
            console.print(f"{skipped} scenario(s) with the gate off left out", style="dim")
    return DONE


def _seeds(count: int) -> range:
    return range(1, max(1, count) + 1)


_Runs = Sequence[tuple[Scenario, Mode, Sequence[Figures]]]


def _write_csv(runs: _Runs) -> None:
    writer = csv_format.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for scenario, mode, results in runs:
        for seed, item in zip(_seeds(len(results)), results, strict=True):
            mean = "" if item.mean_time is None else f"{item.mean_time:.3f}"
            writer.writerow((
                scenario.name, mode.name, seed, item.evictions, item.second_evictions, item.stolen,
                f"{item.idle_device_seconds:.3f}", mean, len(item.times_to_schedule), item.pending,
            ))  # fmt: skip


def print_table(runs: _Runs, console: Console) -> None:
    """Print scenarios by mode, the sums of several, and what the modes are."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("scenario", overflow="fold")
    table.add_column("mode", no_wrap=True)
    for heading in ("evictions", "second", "stolen", "idle device-s", "time to schedule", "pending"):
        table.add_column(heading, justify="right")
    last = None
    for scenario, mode, results in runs:
        if last is not None and last != scenario.name:
            table.add_section()
        _add_row(table, "" if last == scenario.name else scenario.name, mode.name, results)
        last = scenario.name
    if len(runs) > len(MODES):
        table.add_section()
        for mode in MODES:
            _add_row(table, "all" if mode is MODES[0] else "", mode.name, _sums(runs, mode))
    console.print(table)
    for mode in MODES:
        console.print(f"{mode.name:>15}  {mode.text}", style="dim")


def _add_row(table: Table, name: str, mode: str, results: Sequence[Figures]) -> None:
    def mean(values: Sequence[float]) -> str:
        return f"{sum(values) / len(values):.4g}" if values else "-"

    def bad(values: Sequence[float]) -> str:
        text = mean(values)
        return text if text == "0" else f"[bold red]{text}[/]"

    times = [item.mean_time for item in results if item.mean_time is not None]
    table.add_row(
        name,
        mode,
        mean([item.evictions for item in results]),
        bad([item.second_evictions for item in results]),
        bad([item.stolen for item in results]),
        f"{sum(item.idle_device_seconds for item in results) / len(results):.1f}",
        f"{sum(times) / len(times):.1f} s" if times else "never",
        mean([item.pending for item in results]),
    )


def _sums(runs: _Runs, mode: Mode) -> list[Figures]:
    """Return the sum over all scenarios, for each seed."""
    mine = [results for _, other, results in runs if other is mode]
    return [
        Figures(
            evictions=sum(item.evictions for item in column),
            second_evictions=sum(item.second_evictions for item in column),
            stolen=sum(item.stolen for item in column),
            idle_device_seconds=sum(item.idle_device_seconds for item in column),
            times_to_schedule=tuple(time for item in column for time in item.times_to_schedule),
            pending=sum(item.pending for item in column),
        )
        for column in zip(*mine, strict=True)
    ]
