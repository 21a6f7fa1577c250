"""Kubernetes manifests in scenario files: what can be checked before an API sees them."""

from __future__ import annotations

import copy
from pathlib import Path

from earmark.kube.resources import BY_KIND
from earmark.simulation.document import Field, read_documents
from earmark.simulation.errors import ScenarioError
from earmark.simulation.scenario import Manifest, Source

DEFAULT_NAMESPACE = "default"
# A file that includes itself must not be read for ever.
_MAX_INCLUDES = 16


def read_manifests(field: Field, directory: Path, *, depth: int = 0) -> tuple[Manifest, ...]:
    """Return the manifests of a list, in order; `- file: PATH` stands for all manifests of that file.

    Args: `directory` is what relative paths are relative to. Raises ScenarioError.
    """
    found: list[Manifest] = []
    for item in field.items():
        fields = item.mapping()
        if "file" in fields and "kind" not in fields:
            item.mapping({"file"})
            found += _included(fields["file"], directory, depth)
        else:
            found += _expanded(item, fields)
    return tuple(found)


def _included(field: Field, directory: Path, depth: int) -> list[Manifest]:
    if depth >= _MAX_INCLUDES:
        field.fail("files include each other too deeply")
    path = directory / field.string()
    try:
        documents = read_documents(path, str(path))
    except ScenarioError as error:
        if error.line:
            raise
        field.fail(f"{path} {error.problem}")
    found: list[Manifest] = []
    for document in documents:
        if document.is_list:
            found += read_manifests(document, path.parent, depth=depth + 1)
        else:
            found += _expanded(document, document.mapping())
    return found


def _expanded(item: Field, fields: dict[str, Field]) -> list[Manifest]:
    if "kind" in fields and fields["kind"].string() == "List":
        entries = fields["items"].items() if "items" in fields else []
        return [manifest for entry in entries for manifest in _expanded(entry, entry.mapping())]
    return [read_manifest(item)]


def read_manifest(item: Field) -> Manifest:
    """Return one manifest with its namespace filled in; raises ScenarioError that names the field."""
    fields = item.mapping(required=("apiVersion", "kind", "metadata"))
    kind = fields["kind"].string(one_of=BY_KIND)
    resource = BY_KIND[kind]
    fields["apiVersion"].string(one_of=(resource.api_version,))
    metadata = fields["metadata"].mapping(required=("name",))
    name = metadata["name"].string()
    namespace = ""
    if "namespace" in metadata and not metadata["namespace"].is_null:
        namespace = metadata["namespace"].string()
        if not resource.namespaced:
            metadata["namespace"].fail(f"{kind} has no namespace")
    elif resource.namespaced:
        namespace = DEFAULT_NAMESPACE
    data = copy.deepcopy(item.value)
    if namespace:
        data["metadata"]["namespace"] = namespace
    return Manifest(kind, name, namespace, data, Source(item.file, item.line, item.path))
