"""YAML with line numbers: every value of a scenario file knows where it was written.

What the values mean is not known here (earmark.simulation.loader).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import yaml

from earmark.simulation.durations import parse_duration
from earmark.simulation.errors import ScenarioError

_TAG = "tag:yaml.org,2002:"
# More nodes than any real file has; what aliases of aliases unfold to stays below it.
_MAX_NODES = 2_000_000


class _Loader(yaml.CSafeLoader):
    """Leaves timestamps as text, as Kubernetes' YAML does."""

    yaml_implicit_resolvers: ClassVar[Any] = {  # type: ignore[misc]
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
        for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


@dataclass(frozen=True, slots=True)
class Field:
    """A YAML value, its place in the file and its path in the document."""

    file: str
    path: str
    node: yaml.Node

    @property
    def line(self) -> int:
        """The line of the file, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def fail(self, problem: str) -> NoReturn:
        """Raise ScenarioError for this place."""
        raise ScenarioError(self.file, self.line, self.path, problem)

    @property
    def is_null(self) -> bool:
        """Whether the value is null or empty."""
        return self.node.tag == _TAG + "null"

    @property
    def is_list(self) -> bool:
        """Whether the value is a list."""
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        """Whether the value is a mapping."""
        return isinstance(self.node, yaml.MappingNode)

    def mapping(
        self, allowed: Collection[str] | None = None, required: Collection[str] = (), *, depth: int = 0
    ) -> dict[str, Field]:
        """Return the entries of a mapping in file order.

        Raises ScenarioError where the value is no mapping, a key is no string, is there twice, is not in `allowed`
        (None: any key) or a `required` one is missing.
        """
        if not isinstance(self.node, yaml.MappingNode):
            self.fail(f"must be a mapping, is {self._kind()}")
        entries: dict[str, Field] = {}
        merged: dict[str, Field] = {}
        for key_node, value_node in self.node.value:
            place = Field(self.file, self.path, key_node)
            if key_node.tag == _TAG + "merge":
                if depth > 20:
                    place.fail("merge keys are nested too deeply")
                for entry in self._merged(Field(self.file, self.path, value_node), depth):
                    merged = {**entry, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _TAG + "str":
                place.fail("keys must be strings; quote this one")
            key = str(key_node.value)
            path = f"{self.path}.{key}" if self.path else key
            if key in entries:
                Field(self.file, path, key_node).fail("is there twice")
            if allowed is not None and key not in allowed:
                Field(self.file, path, key_node).fail(f"unknown field; known are {', '.join(sorted(allowed))}")
            entries[key] = Field(self.file, path, value_node)
        for key, field in merged.items():
            if allowed is None or key in allowed:
                entries.setdefault(key, field)
        for key in required:
            if key not in entries:
                Field(self.file, f"{self.path}.{key}" if self.path else key, self.node).fail("is missing")
        return entries

    @staticmethod
    def _merged(value: Field, depth: int) -> Iterator[dict[str, Field]]:
        for field in value.items() if value.is_list else [value]:
            yield field.mapping(depth=depth + 1)

    def items(self) -> list[Field]:
        """Return the entries of a list; raises ScenarioError where the value is none."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail(f"must be a list, is {self._kind()}")
        return [Field(self.file, f"{self.path}[{i}]", node) for i, node in enumerate(self.node.value)]

    def string(self, *, one_of: Collection[str] = ()) -> str:
        """Return a string that is not empty; raises ScenarioError for anything else or what is not in `one_of`."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag != _TAG + "str":
            self.fail(f"must be a string, is {self._kind()}")
        value = str(self.node.value)
        if not value:
            self.fail("must not be empty")
        if one_of and value not in one_of:
            self.fail(f"{value!r} is not one of {', '.join(sorted(one_of))}")
        return value

    def integer(self, minimum: int = 0) -> int:
        """Return a whole number; raises ScenarioError for anything else or less than `minimum`."""
        if self.node.tag != _TAG + "int":
            self.fail(f"must be a whole number, is {self._kind()}")
        value = self.data()
        if not isinstance(value, int) or value < minimum:
            self.fail(f"must be at least {minimum}")
        return value

    def number(self) -> float:
        """Return a number; raises ScenarioError for anything else."""
        if self.node.tag not in (_TAG + "int", _TAG + "float"):
            self.fail(f"must be a number, is {self._kind()}")
        return float(self.data())

    def boolean(self) -> bool:
        """Return true or false; raises ScenarioError for anything else."""
        if self.node.tag != _TAG + "bool":
            self.fail(f"must be true or false, is {self._kind()}")
        return bool(self.data())

    def duration(self) -> float:
        """Return the seconds of a Go duration; raises ScenarioError for anything else."""
        text = str(self.node.value) if isinstance(self.node, yaml.ScalarNode) else ""
        if self.node.tag != _TAG + "str" and text != "0":
            self.fail(f"must be a duration like 90s, 5m or 1h2m, is {self._kind()}")
        try:
            return parse_duration(text)
        except ValueError as error:
            self.fail(str(error))

    def data(self) -> Any:
        """Return the value as plain JSON data; raises ScenarioError where it is none."""
        return _Plain().convert(self)

    def _kind(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        if self.is_null:
            return "null"
        return {"str": "the string {!r}", "int": "the number {}", "float": "the number {}", "bool": "{}"}.get(
            self.node.tag.removeprefix(_TAG), "{!r}"
        ).format(self.node.value)


class _Plain:
    """One conversion to plain data, with what guards it against endless files."""

    def __init__(self) -> None:
        self._constructor = yaml.constructor.SafeConstructor()
        self._open: set[int] = set()
        self._count = 0

    def convert(self, field: Field) -> Any:
        self._count += 1
        if self._count > _MAX_NODES:
            field.fail("is too large")
        node = field.node
        if isinstance(node, yaml.ScalarNode):
            if node.tag == _TAG + "str":
                return node.value
            try:
                return self._constructor.construct_object(node)
            except (yaml.YAMLError, ValueError) as error:
                field.fail(f"cannot be read: {getattr(error, 'problem', None) or error}")
        if id(node) in self._open:
            field.fail("contains itself")
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.convert(item) for item in field.items()]
            return {key: self.convert(value) for key, value in field.mapping().items()}
        finally:
            self._open.discard(id(node))


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
        nodes = list(yaml.compose_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ScenarioError(file, mark.line + 1 if mark else 0, "", f"is no YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ScenarioError(file, 0, "", f"is no YAML: {error}") from None
    except RecursionError:
        raise ScenarioError(file, 0, "", "is nested too deeply") from None
    fields = (Field(file, "", node) for node in nodes if node is not None)
    return [field for field in fields if not field.is_null]
