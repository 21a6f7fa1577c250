"""The one error that a reader of scenario files meets."""

from __future__ import annotations


class ScenarioError(Exception):
    """A scenario file cannot be used.

    Attributes: `file` as it was named, `line` counted from 1 (0: the file as a whole), `field` the path inside the
    document ("" for the document itself), `problem` what is wrong and what would be right.
    """

    def __init__(self, file: str, line: int, field: str, problem: str) -> None:
        place = f"{file}:{line}" if line else file
        super().__init__(": ".join(part for part in (place, field, problem) if part))
        self.file = file
        self.line = line
        self.field = field
        self.problem = problem
