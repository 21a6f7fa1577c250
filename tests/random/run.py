"""Plays many random scenarios: `make random SEEDS=1-1000 ARGS="--keep DIR --jobs 2"`. Status 1 if one does not hold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

TESTS = Path(__file__).resolve().parents[1]
if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support.random_runs import run_seed  # noqa: E402


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        found = range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither SEED nor FIRST-LAST") from None
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} holds no seed")
    return found


def _play(seed: int, keep: Path | None) -> tuple[int, list[str], Path | None]:
    """Play one seed; return what is wrong and where the scenario was written."""
    run = run_seed(seed)
    return seed, run.complaints, run.keep(keep) if keep is not None and run.complaints else None


def _all(seeds: range, keep: Path | None, jobs: int, stack: ExitStack) -> Iterator[tuple[int, list[str], Path | None]]:
    if jobs == 1:
        return (_play(seed, keep) for seed in seeds)
    pool = stack.enter_context(ProcessPoolExecutor(jobs))
    return iter(pool.map(_play, seeds, [keep] * len(seeds), chunksize=4))


def main() -> int:
    """Read the command line and play."""
    parser = argparse.ArgumentParser(prog="make random", description="Play random scenarios.")
    parser.add_argument("seeds", type=_seeds, help="SEED or FIRST-LAST, such as 1-1000")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the scenarios that fail into this folder")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    errors = Console(stderr=True)
    failed: list[int] = []
    with ExitStack() as stack:
        columns = (TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        bar = stack.enter_context(Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal))
        task = bar.add_task("", total=len(options.seeds))
        for seed, complaints, path in _all(options.seeds, options.keep, max(1, options.jobs), stack):
            bar.advance(task)
            if complaints:
                failed.append(seed)
                console.print(f"seed {seed}:", style="bold red", markup=False)
                for text in complaints:
                    console.print(f"  {text}", markup=False)
                if path is not None:
                    console.print(f"  written to {path}", markup=False)
    if failed:
        console.print(f"{len(failed)} of {len(options.seeds)} seeds failed: {' '.join(map(str, failed))}", style="red")
        return 1
    console.print(f"{len(options.seeds)} random scenarios held", style="bold green")
    return 0


if __name__ == "__main__":
    sys.exit(main())
