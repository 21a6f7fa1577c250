"""Reads manifests: YAML or JSON, several documents, List kinds. Errors name the source, the line and the field.

What a manifest may contain beyond apiVersion, kind and metadata.name is the API's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

# libyaml is ten times as fast; PyYAML can be built without it.
if TYPE_CHECKING or not hasattr(yaml, "CSafeLoader"):
    from yaml import SafeLoader as _Base
else:
    from yaml import CSafeLoader as _Base

# Anchors may not blow a small file up into a huge object ("billion laughs").
MOST_NODES = 1_000_000
DEEPEST = 100


class ManifestError(ValueError):
    """A manifest cannot be used. The text begins with source and line."""

    def __init__(self, source: str, line: int, message: str, field: str = "") -> None:
        where = f"{source}:{line}" if line else source
        super().__init__(f"{where}: {field}: {message}" if field else f"{where}: {message}")
        self.source = source
        self.line = line
        self.field = field
        self.message = message


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object: its data, where it came from, and the line where it begins (1 is the first)."""

    data: dict[str, Any]
    source: str
    line: int

    @property
    def kind(self) -> str:
        """The object's kind."""
        return str(self.data["kind"])

    @property
    def name(self) -> str:
        """The object's name, "" if one is to be generated."""
        return str(self.data["metadata"].get("name", ""))

    @property
    def namespace(self) -> str:
        """The object's namespace, "" if none is given."""
        return str(self.data["metadata"].get("namespace", ""))

    def error(self, message: str, field: str = "") -> ManifestError:
        """Return an error about this object."""
        return ManifestError(self.source, self.line, f"{self.kind} {self.name}: {message}", field)


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document as data, with the line where it begins and the lines of its fields by path."""

    data: Any
    line: int
    lines: dict[tuple[str | int, ...], int]


class _Loader(_Base):
    """YAML 1.1 as Kubernetes reads it, but that dates stay text and that a key may not be given twice."""


# A timestamp in an annotation or a status is text in JSON.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_documents(text: str, source: str) -> list[Document]:
    """Read YAML (or JSON) documents as data; empty ones are left out.

    Raises ManifestError for text that cannot be read, duplicate keys, keys that are no text, and data that is too big
    or too deep.
    """
    documents: list[Document] = []
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            reader = _Reader(source)
            data = reader.read(node, (), 0)
            if data is not None:
                documents.append(Document(data, node.start_mark.line + 1, reader.lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be read"
        raise ManifestError(source, mark.line + 1 if mark else 0, f"not valid YAML: {problem}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError(source, 0, f"not valid YAML: {_one_line(error)}") from error
    return documents


def _one_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


class _Reader:
    """Turns one document's nodes into data."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0
        self._constructor = yaml.constructor.SafeConstructor()
        self.lines: dict[tuple[str | int, ...], int] = {}

    def read(self, node: yaml.Node, path: tuple[str | int, ...], depth: int) -> Any:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MOST_NODES or depth > DEEPEST:
            raise ManifestError(self._source, line, "the document is too big or too deep", render(path[:4]))
        self.lines[path] = line
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, path, depth))
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index), depth + 1) for index, item in enumerate(node.value)]
        if node.tag == "tag:yaml.org,2002:binary" or not node.tag.startswith("tag:yaml.org,2002:"):
            raise ManifestError(self._source, line, f"the tag {node.tag} is not supported", render(path))
        try:
            value = self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise ManifestError(self._source, line, f"cannot be read: {_one_line(error)}", render(path)) from error
        if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
            raise ManifestError(self._source, line, "not a number that JSON has", render(path))
        return value

    def _pairs(
        self, node: yaml.MappingNode, path: tuple[str | int, ...], depth: int
    ) -> Iterator[tuple[str, Any]]:  # fmt: skip
        seen: set[str] = set()
        merged: list[tuple[str, Any]] = []
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == "tag:yaml.org,2002:merge":
                sources = value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]
                for source in sources:
                    if not isinstance(source, yaml.MappingNode):
                        raise ManifestError(self._source, line, "<<: needs a mapping", render(path))
                    merged.extend(self._pairs(source, path, depth + 1))
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise ManifestError(self._source, line, "a key has to be text", render(path))
            # As in Kubernetes, `on:` and `1:` are the texts "true" and "1" as keys; the written form is meant here.
            key = str(key_node.value)
            if key in seen:
                raise ManifestError(self._source, line, f"the key {key!r} is there twice", render(path))
            seen.add(key)
            value = self.read(value_node, (*path, key), depth + 1)
            self.lines[(*path, key)] = line
            yield key, value
        for key, value in reversed(merged):
            if key not in seen:
                seen.add(key)
                yield key, value


def render(path: tuple[str | int, ...]) -> str:
    """Return a path as Kubernetes writes it: spec.containers[0].name."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def load_manifests(text: str, source: str) -> list[Manifest]:
    """Read the objects of a text; Lists are opened.

    Raises ManifestError.
    """
    manifests: list[Manifest] = []
    for document in load_documents(text, source):
        manifests.extend(_open(document, document.data, (), source))
    return manifests


def _open(document: Document, data: Any, path: tuple[str | int, ...], source: str) -> list[Manifest]:
    line = document.lines.get(path, document.line)
    _check_head(document, data, path, source)
    if data["kind"].endswith("List") and "items" in data:
        items = data["items"]
        if not isinstance(items, list):
            raise ManifestError(source, line, "must be a list", render((*path, "items")))
        return [
            manifest
            for index, item in enumerate(items)
            for manifest in _open(document, item, (*path, "items", index), source)
        ]
    metadata = data.get("metadata")
    here = document.lines.get((*path, "metadata"), line)
    if not isinstance(metadata, dict):
        raise ManifestError(source, here, f"{data['kind']} needs metadata", render((*path, "metadata")))
    for key in ("name", "namespace", "generateName"):
        if key in metadata and not isinstance(metadata[key], str):
            where = document.lines.get((*path, "metadata", key), here)
            raise ManifestError(source, where, "must be text", render((*path, "metadata", key)))
    if not metadata.get("name") and not metadata.get("generateName"):
        raise ManifestError(source, here, f"{data['kind']} needs a name", render((*path, "metadata", "name")))
    return [Manifest(data, source, line)]


def _check_head(document: Document, data: Any, path: tuple[str | int, ...], source: str) -> None:
    line = document.lines.get(path, document.line)
    if not isinstance(data, dict):
        raise ManifestError(source, line, "an object is a mapping with apiVersion, kind and metadata", render(path))
    for key in ("apiVersion", "kind"):
        if not isinstance(data.get(key), str) or not data[key]:
            where = document.lines.get((*path, key), line)
            raise ManifestError(source, where, "is missing or no text", render((*path, key)))
