"""The terminal, as the commands use it."""

from __future__ import annotations

import os
import sys

from rich.console import Console


class Terminal(Console):
    """Prints without colouring numbers and paths by itself, and falls silent when its reader has gone."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(highlight=False, stderr=stderr, quiet=quiet)

    def on_broken_pipe(self) -> None:
        """Go on without output: `earmark demo | head` still cleans up after itself, and nobody gets a traceback."""
        self.quiet = True
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
