"""`earmark compare`: the KEP's way beside simpler ones. What it does is earmark.simulation.compare's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.", metavar="FILE...")],
    csv: Annotated[bool, typer.Option("--csv", help="Print every run as CSV.")] = False,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs of each scenario; a table shows means.")] = 1,
) -> None:
    """Play scenarios with the KEP's nomination and with simpler ways, and print what each costs."""
    from earmark.simulation.compare import compare as run

    raise typer.Exit(run(files, seeds=seeds, csv=csv))
