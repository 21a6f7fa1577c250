"""What can go wrong with an expression, and how the place of a fault in the source is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_MAX_FAULTS: Final = 100


class CompileError(Exception):
    """An expression cannot be compiled; the text is upstream's."""


class EvaluationAborted(Exception):
    """An evaluation was stopped as a whole, so that no `||` can absorb it (cost limit, upstream's panics)."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in a source: the offset (in code points, None: nowhere) and what it is."""

    offset: int | None
    message: str


class SourceError(Exception):
    """A source has faults; raised within the compiler only."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults[0].message)
        self.faults = faults


def describe(source: str, faults: list[Fault]) -> str:
    """The faults as cel-go writes them: position, message, the line and an arrow under the column."""
    # As upstream, what is beyond the limit is dropped in the order in which it was found.
    shown = faults[:_MAX_FAULTS]
    located = sorted(((_position(source, fault.offset), fault.message) for fault in shown), key=lambda one: one[0])
    lines = [_display(source, line, column, message) for (line, column), message in located]
    if len(faults) > _MAX_FAULTS:
        lines.append(f"{len(faults) - _MAX_FAULTS} more errors were truncated")
    return "\n".join(lines)


def _position(source: str, offset: int | None) -> tuple[int, int]:
    """Line from 1 and column from 0; no position is (-1, -1)."""
    if offset is None:
        return (-1, -1)
    line_start = source.rfind("\n", 0, offset) + 1
    return (source.count("\n", 0, offset) + 1, offset - line_start)


def _display(source: str, line: int, column: int, message: str) -> str:
    text = f"ERROR: <input>:{line}:{column + 1}: {message}"
    lines = source.split("\n")
    if not 1 <= line <= len(lines) or not source:
        return text
    shown = lines[line - 1].replace("\t", " ")
    marks = ["．" if ord(char) > 127 else "." for char in shown[:column]]
    arrow = "＾" if column < len(shown) and ord(shown[column]) > 127 else "^"
    return f"{text}\n | {shown}\n | {''.join(marks)}{arrow}"
