"""Reads Kubernetes manifests from files, with the line of each for messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from earmark.cli.errors import BadInput
from earmark.kube.resources import BY_KIND, Resource

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file."""

    # "FILE:LINE", for messages.
    where: str
    resource: Resource
    body: dict[str, Any]

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The object's namespace; empty for cluster-scoped kinds."""
        return str(self.body["metadata"].get("namespace", "")) if self.resource.namespaced else ""

    def __str__(self) -> str:
        return f"{self.resource.kind.lower()}/{self.name}"


def read_manifests(paths: Sequence[Path], namespace: str) -> list[Manifest]:
    """Return the objects of files and folders (their *.yaml, *.yml and *.json by name), in order.

    Objects of namespaced kinds without a namespace get `namespace`. Raises BadInput, naming file and line, for the
    first that cannot be used; so nothing is applied unless all can be read.
    """
    return [manifest for path in paths for file in _files(path) for manifest in _read(file, namespace)]


def _files(path: Path) -> list[Path]:
    if str(path) == "-" or path.is_file():
        return [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
        if not files:
            raise BadInput(f"{path}: no manifests in this folder (*.yaml, *.yml, *.json)")
        return files
    raise BadInput(f"{path}: no such file or folder")


def _read(file: Path, namespace: str) -> list[Manifest]:
    name = "stdin" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{name}: {error}") from error
    found: list[Manifest] = []
    try:
        loader = _LOADER(text)
        while loader.check_node():
            node = loader.get_node()
            if node is None:
                break
            where = f"{name}:{node.start_mark.line + 1}"
            document = loader.construct_document(node)
            if document is not None:
                found += _objects(document, where, namespace)
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark is not None else ""
        raise BadInput(f"{name}{line}: {error.problem or error}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise BadInput(f"{name}: {error}") from error
    return found


def _objects(document: Any, where: str, namespace: str) -> list[Manifest]:
    if not isinstance(document, dict):
        raise BadInput(f"{where}: want a Kubernetes object, found a {type(document).__name__}")
    if document.get("kind") == "List" and isinstance(document.get("items"), list):
        return [manifest for item in document["items"] for manifest in _objects(item, where, namespace)]
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or not kind:
        raise BadInput(f"{where}: kind: missing")
    if not isinstance(api_version, str) or not api_version:
        raise BadInput(f"{where}: apiVersion: missing")
    resource = BY_KIND.get(kind)
    if resource is None:
        raise BadInput(f"{where}: kind: {kind!r} is not served; there are {', '.join(sorted(BY_KIND))}")
    if api_version != resource.api_version:
        raise BadInput(f"{where}: apiVersion: {kind} is served as {resource.api_version!r}, not {api_version!r}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        raise BadInput(f"{where}: metadata.name: missing")
    if resource.namespaced:
        document = {**document, "metadata": {**metadata, "namespace": metadata.get("namespace") or namespace}}
    return [Manifest(where, resource, document)]
