"""Metadata, alike for all kinds: what a creation sets, and which names, labels and annotations are valid."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from earmark.apiserver import names
from earmark.apiserver.errors import Cause, duplicate, invalid, required, too_long
from earmark.apiserver.strategies.base import Data, Strategy
from earmark.kube.resources import Resource

LONGEST_ANNOTATIONS_BYTES = 256 * 1024


def stamp_new(
    data: Data, resource: Resource, namespace: str, uid: str, now: datetime, suffix: Callable[[str, int], str]
) -> None:
    """Set what the server sets in a new object's metadata, and drop what only it may set."""
    meta = data["metadata"]
    given = dict(meta)
    for key in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                "managedFields"):  # fmt: skip
        given.pop(key, None)
    name = given.pop("name", "")
    base = given.get("generateName", "")
    if not name and base:
        name = base[: names.LONGEST_GENERATED_BASE] + suffix(names.SUFFIX_ALPHABET, names.SUFFIX_LENGTH)
    meta.clear()
    if name:
        meta["name"] = name
    if base:
        meta["generateName"] = base
    if resource.namespaced:
        meta["namespace"] = namespace
    meta["uid"] = uid
    meta["creationTimestamp"] = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)
    for key, value in given.items():
        meta.setdefault(key, value)


def validate_metadata(data: Data, resource: Resource, strategy: Strategy) -> list[Cause]:
    """Check the metadata of a new or changed object."""
    meta = data["metadata"]
    causes: list[Cause] = []
    name = meta.get("name", "")
    if not name:
        causes.append(required("metadata.name", "name or generateName is required"))
    else:
        causes += strategy.validate_name(name)
    causes += validate_labels(meta.get("labels", {}), "metadata.labels")
    causes += validate_annotations(meta.get("annotations", {}), "metadata.annotations")
    for index, finalizer in enumerate(meta.get("finalizers", ())):
        if not names.is_qualified(finalizer):
            causes.append(invalid(f"metadata.finalizers[{index}]", finalizer, "name part must be a qualified name"))
    controllers = 0
    for index, owner in enumerate(meta.get("ownerReferences", ())):
        path = f"metadata.ownerReferences[{index}]"
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                causes.append(invalid(f"{path}.{key}", "", "must not be empty"))
        controllers += owner.get("controller") is True
    if controllers > 1:
        causes.append(
            invalid("metadata.ownerReferences", controllers, "Only one reference can have Controller set to true")
        )  # fmt: skip
    return causes


def validate_labels(labels: dict[str, Any], path: str) -> list[Cause]:
    """Check label keys and values."""
    causes = []
    for key, value in labels.items():
        if not names.is_qualified(key):
            causes.append(invalid(path, key, "name part must consist of alphanumeric characters, '-', '_' or '.'"))
        if not names.is_label_value(value):
            causes.append(
                invalid(
                    path,
                    value,
                    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
                    "at most 63 of them, and must start and end with an alphanumeric character",
                )
            )
    return causes


def validate_annotations(annotations: dict[str, str], path: str) -> list[Cause]:
    """Check annotation keys and the size of all together."""
    causes = [
        invalid(path, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
        for key in annotations
        if not names.is_qualified(key.lower())
    ]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > LONGEST_ANNOTATIONS_BYTES:
        causes.append(too_long(path, LONGEST_ANNOTATIONS_BYTES))
    return causes


def unique(values: list[Any], path: str) -> list[Cause]:
    """Refuse a list of scalars with duplicates."""
    seen: set[Any] = set()
    causes = []
    for index, value in enumerate(values):
        if value in seen:
            causes.append(duplicate(f"{path}[{index}]", value))
        seen.add(value)
    return causes
