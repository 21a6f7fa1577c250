"""How a command fails: with a status and one line."""

from __future__ import annotations

from pathlib import Path

# It did not hold, or could not be done.
FAILED = 1
# The input cannot be used.
BAD_INPUT = 2


class CommandError(Exception):
    """Ends the command. The text is one line for people."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(" ".join(text.split()))
        self.status = status


class BadInput(CommandError):
    """Ends the command with status 2."""

    def __init__(self, text: str) -> None:
        super().__init__(text, BAD_INPUT)


def read_text(file: Path) -> str:
    """Return what a file holds. Raises BadInput, naming the file, for one that cannot be read or is not UTF-8 text."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from error
