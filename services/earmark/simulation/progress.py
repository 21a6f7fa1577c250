"""A bar on stderr for work that takes long; nothing where nobody looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """Told what is being done."""

    def begin(self, name: str) -> None:
        """A piece of the work begins."""

    def end(self) -> None:
        """It is done."""


class _Nothing:
    def begin(self, name: str) -> None:
        """Show nothing."""

    def end(self) -> None:
        """Show nothing."""


class _Bar:
    def __init__(self, bar: RichProgress, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total)

    def begin(self, name: str) -> None:
        self._bar.update(self._task, description=name)

    def end(self) -> None:
        self._bar.advance(self._task)


@contextmanager
def progress(total: int, *, wanted: bool = True, console: Console | None = None) -> Iterator[Progress]:
    """Show a bar of `total` pieces while the block runs, if stderr is a terminal and there is more than one piece."""
    console = console or Console(stderr=True)
    if total < 2 or not wanted or not console.is_terminal:
        yield _Nothing()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, total)
