"""The terminal, as the commands use it."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.text import Text


class Terminal(Console):
    """Prints without colouring numbers and paths by itself, and falls silent when its reader has gone."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        super().__init__(highlight=False, stderr=stderr, quiet=quiet)

    def print_indented(self, line: str) -> None:
        """Print a line; what is folded of it stays under its beginning, two columns further in."""
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        for number, part in enumerate(Text(text).wrap(self, max(20, self.width - indent - 2))):
            self.print(" " * (indent + (2 if number else 0)) + part.plain.rstrip(), soft_wrap=True, markup=False)

    def on_broken_pipe(self) -> None:
        """Go on without output: `earmark demo | head` still cleans up after itself, and nobody gets a traceback."""
        self.quiet = True
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
