"""An outcome for people: a timeline, the settling windows, and what did not hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from earmark.simulation.durations import format_duration
from earmark.simulation.report import LogEntry, Outcome, SettlementRecord

# What the short timeline shows; everything else is only in the JSON log.
_STYLES = {
    "step": "cyan",
    "bound": "green",
    "preempted": "red",
    "nominated": "magenta",
    "nomination cleared": "magenta",
    "deallocated": "blue",
    "deleted": "red",
    "running": "green",
    "refused": "yellow",
    "stopped": "yellow",
    "started": "yellow",
    "failure": "bold red",
    "violation": "bold red",
}


def present(outcome: Outcome, console: Console) -> None:
    """Print one outcome: verdict, timeline, windows, failures."""
    console.print(headline(outcome))
    console.print(timeline(outcome.log))
    if outcome.settlements:
        console.print(settlements(outcome.settlements))
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
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for entry in log:
        style = _STYLES.get(entry.event)
        if style is not None:
            when = format_duration(round(entry.at, 3))
            details = " ".join(_detail(key, value) for key, value in entry.details.items() if value not in ("", None))
            table.add_row(when, Text(entry.service, style="dim"), Text(entry.event, style=style), Text(details))
    return table


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
        lines.append(Text(f"  want {_value(failure.want)}"))
        lines.append(Text(f"  got  {_value(failure.got)}"))
    for violation in outcome.violations:
        lines.append(Text(f"{format_duration(violation.at)}: invariant: {violation.invariant}", style="bold red"))
        lines.append(Text(f"  {violation.detail}"))
    return Group(*lines)


def _detail(key: str, value: Any) -> str:
    return f"{key}={value if isinstance(value, str) else _value(value)}"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
