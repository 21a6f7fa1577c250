"""`make mutants`: break the core on purpose, fault by fault, and show which scenario notices.

Exit status 1 if a fault is not noticed. `--all` goes on after the first catch and names them all; FAULT... chooses.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

_TESTS = Path(__file__).resolve().parents[1]
if str(_TESTS) not in sys.path:
    sys.path.insert(0, str(_TESTS))

from support.mutants_catalogue import FAULTS  # noqa: E402
from support.mutants_running import catches, own_scenarios  # noqa: E402

_PLAIN_WIDTH = 160


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description="Which scenario catches which seeded fault.")
    parser.add_argument("--all", action="store_true", help="name every scenario that catches a fault, not only one")
    parser.add_argument("fault", nargs="*", help="names of faults; default: all")
    options = parser.parse_args(argv)
    chosen = [fault for fault in FAULTS if not options.fault or fault.name in options.fault]
    console = Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("fault", "what is wrong", "caught by", "proves"):
        table.add_column(column, overflow="fold")
    scenarios, begun, missed = own_scenarios(), time.monotonic(), 0
    for fault in chosen:
        found = []
        for catch in catches(fault, scenarios):
            found.append(catch)
            if not options.all:
                break
        missed += not found
        names = "\n".join(catch.scenario for catch in found) or "[red]nothing[/]"
        proves = "\n".join(" ".join(catch.proves) for catch in found)
        table.add_row(fault.name, fault.text, names, proves)
    console.print(table)
    seconds = time.monotonic() - begun
    text = f"{len(chosen)} faults, {missed} not caught, {seconds:.0f} s"
    console.print(text, style="bold red" if missed else "bold green")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
