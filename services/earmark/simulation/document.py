"""Values of a scenario file that know where they were written, and say so when they are not what they should be.

The YAML is read by earmark.kube.manifests. What the values mean is not known here (earmark.simulation.loader).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from earmark.kube.manifests import ManifestError, load_documents, render
from earmark.simulation.durations import parse_duration
from earmark.simulation.errors import ScenarioError

Keys = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Field:
    """A value, its place in the file and its path in the document."""

    file: str
    keys: Keys
    value: Any
    # Line of each path of the document.
    lines: Mapping[Keys, int]

    @property
    def line(self) -> int:
        """The line of the file, counted from 1."""
        keys = self.keys
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return self.lines.get(keys, 0)

    @property
    def path(self) -> str:
        """The path in the document: spec.timeline[0].at."""
        return render(self.keys)

    def fail(self, problem: str) -> NoReturn:
        """Raise ScenarioError for this place."""
        raise ScenarioError(self.file, self.line, self.path, problem)

    @property
    def is_null(self) -> bool:
        """Whether the value is null or empty."""
        return self.value is None

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.value, list)

    def _child(self, key: str | int, value: Any) -> Field:
        return Field(self.file, (*self.keys, key), value, self.lines)

    def mapping(self, allowed: Collection[str] | None = None, required: Collection[str] = ()) -> dict[str, Field]:
        """Return the entries of a mapping in file order.

        Raises ScenarioError where the value is no mapping, a key is not in `allowed` (None: any key), or a `required`
        one is missing.
        """
        if not isinstance(self.value, dict):
            self.fail(f"must be a mapping, is {self._kind()}")
        entries = {key: self._child(key, value) for key, value in self.value.items()}
        for key, field in entries.items():
            if allowed is not None and key not in allowed:
                field.fail(f"unknown field; known are {', '.join(sorted(allowed))}")
        for key in required:
            if key not in entries:
                self._child(key, None).fail("is missing")
        return entries

    def items(self) -> list[Field]:
        """Return the entries of a list; raises ScenarioError where the value is none."""
        if not isinstance(self.value, list):
            self.fail(f"must be a list, is {self._kind()}")
        return [self._child(index, value) for index, value in enumerate(self.value)]

    def string(self, *, one_of: Collection[str] = ()) -> str:
        """Return a string that is not empty; raises ScenarioError for anything else or what is not in `one_of`."""
        if not isinstance(self.value, str):
            self.fail(f"must be a string, is {self._kind()}")
        if not self.value:
            self.fail("must not be empty")
        if one_of and self.value not in one_of:
            self.fail(f"{self.value!r} is not one of {', '.join(sorted(one_of))}")
        return self.value

    def integer(self, minimum: int = 0) -> int:
        """Return a whole number; raises ScenarioError for anything else or less than `minimum`."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail(f"must be a whole number, is {self._kind()}")
        if self.value < minimum:
            self.fail(f"must be at least {minimum}")
        return self.value

    def number(self) -> float:
        """Return a number; raises ScenarioError for anything else."""
        if not isinstance(self.value, int | float) or isinstance(self.value, bool):
            self.fail(f"must be a number, is {self._kind()}")
        return float(self.value)

    def boolean(self) -> bool:
        """Return true or false; raises ScenarioError for anything else."""
        if not isinstance(self.value, bool):
            self.fail(f"must be true or false, is {self._kind()}")
        return self.value

    def duration(self) -> float:
        """Return the seconds of a Go duration; raises ScenarioError for anything else."""
        if self.value == 0 and isinstance(self.value, int) and not isinstance(self.value, bool):
            return 0.0
        if not isinstance(self.value, str):
            self.fail(f"must be a duration like 90s, 5m or 1h2m, is {self._kind()}")
        try:
            return parse_duration(self.value)
        except ValueError as error:
            self.fail(str(error))

    def _kind(self) -> str:
        if isinstance(self.value, dict):
            return "a mapping"
        if isinstance(self.value, list):
            return "a list"
        if self.value is None:
            return "null"
        if isinstance(self.value, bool):
            return str(self.value).lower()
        return f"the string {self.value!r}" if isinstance(self.value, str) else f"the number {self.value}"


def read_documents(path: Path, name: str = "") -> list[Field]:
    """Return the YAML documents of a file that are not empty; `name` is what errors call it (default: its path).

    Raises ScenarioError where the file cannot be read or is no YAML.
    """
    file = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ScenarioError(file, 0, "", "is no UTF-8 text") from None
    except OSError as error:
        raise ScenarioError(file, 0, "", f"cannot be read: {error.strerror or error}") from None
    return parse_documents(text, file)


def parse_documents(text: str, file: str) -> list[Field]:
    """Return the YAML documents of a text that are not empty; raises ScenarioError where it is no YAML."""
    try:
        documents = load_documents(text, file)
    except ManifestError as error:
        raise ScenarioError(file, error.line, error.field, error.message) from None
    return [Field(file, (), document.data, document.lines) for document in documents]
