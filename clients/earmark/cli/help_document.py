"""Writes docs/cli.md from the program's own help: `python -m earmark.cli.help_document > docs/cli.md`.

A test compares the file with what this makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from earmark.cli.main import app

_WIDTH = 100

_PREFACE = """\
# The command line

Made from the program's help (`python -m earmark.cli.help_document > docs/cli.md`). What `explain`, `timeline`, `whatif`
and `dump` print is shown in [asking.md](asking.md).

Exit status: 0; 1 where something did not hold or could not be done; 2 for input that cannot be used; 130 after Ctrl-C.
Errors are one line on stderr. Settings come from `--config` (or `EARMARK_CONFIG`), then from the environment.
"""


def document() -> str:
    """Return docs/cli.md."""
    return "\n".join([_PREFACE, *_sections(typer.main.get_command(app), "earmark", None)]) + "\n"


def _sections(command: Any, name: str, parent: Any) -> Iterator[str]:
    # typer brings its own copy of click, whose types have no public name.
    context = command.context_class(
        command, info_name=name, parent=parent, terminal_width=_WIDTH, help_option_names=["-h", "--help"]
    )  # fmt: skip
    path = context.command_path
    yield f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
    if hasattr(command, "list_commands"):
        for word in command.list_commands(context):
            member = command.get_command(context, word)
            if member is not None:
                yield from _sections(member, word, context)


if __name__ == "__main__":
    print(document(), end="")
