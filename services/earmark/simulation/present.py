"""An outcome for people: a timeline, the settling windows, and what did not hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from earmark.simulation.durations import format_duration
from earmark.simulation.lanes import picture
from earmark.simulation.report import LogEntry, Outcome, SettlementRecord

# What the short timeline shows, how and in which words; everything else is only in the JSON log.
_SHOWN: dict[str, tuple[str, str]] = {
    "bound": ("green", "{pod} is bound to {node}"),
    "running": ("green", "{pod} runs"),
    "failed": ("yellow", "{pod} has failed"),
    "succeeded": ("green", "{pod} has finished"),
    "preempted": ("red", "{pod} is deleted to make room"),
    "terminating": ("red", "{pod} terminates, {grace} s of grace"),
    "deleted": ("dim", "{object} is gone"),
    "nominated": ("magenta", "{pod} is nominated to {node}"),
    "nomination cleared": ("magenta", "{pod} is no longer nominated to {node}"),
    "unschedulable": ("yellow", "{pod}: {message}"),
    "allocated": ("blue", "{claim}: {devices} allocated"),
    "deallocated": ("blue", "{claim}: {devices} deallocated"),
    "refused": ("yellow", "{verb} of {object} refused with {status}"),
    "stopped": ("yellow", "stopped"),
    "started": ("yellow", "started"),
    "crashed": ("bold red", "crashed: {error}"),
    "already gone": ("yellow", "{object} is gone already"),
    "failure": ("bold red", "{path} does not hold"),
}


def present(outcome: Outcome, console: Console) -> None:
    """Print one outcome: verdict, timeline, windows with their picture, failures."""
    console.print(headline(outcome))
    console.print(timeline(outcome.log))
    if outcome.settlements:
        console.print(settlements(outcome.settlements))
        for line in picture(outcome.log, outcome.settlements):
            console.print(line, no_wrap=True, crop=False, overflow="ignore")
    console.print(problems(outcome))


def headline(outcome: Outcome) -> Text:
    """Return the scenario's name and whether it held."""
    verdict = ("passed", "bold green") if outcome.ok else ("failed", "bold red")
    evictions = len(outcome.evictions)
    tail = f"  {evictions} eviction{'' if evictions == 1 else 's'}, {format_duration(outcome.duration)} of virtual time"
    return Text.assemble(verdict, " ", (outcome.scenario, "bold"), (tail, "dim"))


def timeline(log: Iterable[LogEntry]) -> Table:
    """Return the moments that matter, in order."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for entry in log:
        line = _line(entry)
        if line is not None:
            table.add_row(format_duration(round(entry.at, 3)), entry.service, line)
    return table


def _line(entry: LogEntry) -> Text | None:
    if entry.event == "step":
        return None if entry.details["step"] == "expect" else Text(_step(entry.details), style="cyan")
    shown = _SHOWN.get(entry.event)
    if shown is None or (entry.at == 0 and entry.event == "started"):
        return None
    style, words = shown
    return Text(words.format_map({key: _value(value) for key, value in entry.details.items()}), style=style)


def _step(details: Mapping[str, Any]) -> str:
    told = [_value(value) for key, value in details.items() if key != "step" and value not in ("", None)]
    return " ".join([str(details["step"]), *told])


def settlements(records: Iterable[SettlementRecord]) -> Table:
    """Return the settling windows: t0 victims deleted, t1 gone, t3 claims deallocated, t4 preemptor scheduled."""
    table = Table(title="settling windows", title_justify="left", box=None, pad_edge=False, padding=(0, 1))
    for column in ("preemptor", "node", "victims", "claims", "t0", "t1", "t3", "t4"):
        table.add_column(column, overflow="fold")
    for record in records:
        moments = (record.t0, record.t1, record.t3, record.t4)
        table.add_row(
            record.preemptor,
            record.node,
            ", ".join(record.victims),
            ", ".join(record.claims),
            *("-" if moment is None else format_duration(round(moment, 3)) for moment in moments),
        )
    return table


def problems(outcome: Outcome) -> RenderableType:
    """Return what did not hold; nothing where all did."""
    lines: list[Text] = []
    for failure in outcome.failures:
        lines.append(Text(f"{format_duration(failure.at)}: {failure.path}", style="bold red"))
        lines.append(Text(f"  want {_exact(failure.want)}"))
        lines.append(Text(f"  got  {_exact(failure.got)}"))
    for violation in outcome.violations:
        lines.append(Text(f"{format_duration(violation.at)}: invariant: {violation.invariant}", style="bold red"))
        lines.append(Text(f"  {violation.detail}"))
    return Group(*lines)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "none"
    return json.dumps(value, ensure_ascii=False)


def _exact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
