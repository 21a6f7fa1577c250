"""What differs between kinds: defaults, validation, what an update may change, how long a deletion takes.

A strategy is pure: it works on JSON data that the caller owns, and looks at other objects only through a View.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from earmark.apiserver.errors import Cause, forbidden, invalid
from earmark.apiserver.names import is_subdomain
from earmark.kube.resources import Resource

Data = dict[str, Any]


class View(Protocol):
    """The objects that are stored, and the time."""

    def lookup(self, kind: str, namespace: str, name: str) -> Data | None:
        """Return an object's data."""

    def all(self, kind: str) -> Sequence[Data]:
        """Return the data of all objects of a kind, sorted by namespace and name."""

    def now(self) -> datetime:
        """Return the time."""

    def selector_problem(self, expression: str) -> str:
        """Return why a device selector does not compile; "" if it does."""


class Strategy:
    """The rules of a kind without rules of its own."""

    # Whether spec changes raise metadata.generation.
    tracks_generation = False
    # Whether an update has to carry the resourceVersion.
    needs_version = False
    # Metadata that a write of the status subresource may change.
    status_metadata: tuple[str, ...] = ()
    # Whether a deletion answers with the object rather than with a Status.
    returns_deleted = False
    # Fields of field selectors beside metadata.name and metadata.namespace, with what an unset one is read as.
    selectable: dict[str, str] = {}  # noqa: RUF012 - a constant that subclasses replace

    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    @property
    def has_status(self) -> bool:
        """Whether the kind has a status subresource."""
        return "status" in self.resource.subresources

    def prepare_create(self, data: Data, view: View) -> None:
        """Set defaults, and drop what a creation may not set."""
        if self.has_status:
            data.pop("status", None)

    def prepare_update(self, new: Data, old: Data, view: View) -> None:
        """Set defaults, and keep what an update may not change silently."""
        if self.has_status:
            _restore(new, old, "status")

    def prepare_status(self, new: Data, old: Data, view: View) -> None:
        """Keep everything but the status (and `status_metadata`)."""
        meta = dict(old["metadata"])
        for key in self.status_metadata:
            meta.pop(key, None)
            if key in new["metadata"]:
                meta[key] = new["metadata"][key]
        if "resourceVersion" in new["metadata"]:
            meta["resourceVersion"] = new["metadata"]["resourceVersion"]
        new["metadata"] = meta
        for key in [key for key in (*old, *new) if key not in ("metadata", "status")]:
            _restore(new, old, key)

    def validate_name(self, name: str) -> list[Cause]:
        """Check metadata.name."""
        if is_subdomain(name):
            return []
        return [
            invalid(
                "metadata.name",
                name,
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
                "must start and end with an alphanumeric character",
            )
        ]

    def validate(self, data: Data, view: View) -> list[Cause]:
        """Check a new object."""
        return []

    def validate_update(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check a change of everything but the status."""
        return self.validate(new, view)

    def validate_status(self, new: Data, old: Data, view: View) -> list[Cause]:
        """Check a change of the status."""
        return []

    def may_delete(self, data: Data) -> str:
        """Return why an object may not be deleted; "" if it may."""
        return ""

    def grace_seconds(self, data: Data, requested: int | None) -> int:
        """Return how many seconds a deletion takes; 0 removes the object at once."""
        return 0

    def field(self, data: Data, name: str) -> str | None:
        """Return the text of a field for field selectors; None if it cannot be selected by."""
        if name in ("metadata.name", "metadata.namespace"):
            return str(data["metadata"].get(name.removeprefix("metadata."), ""))
        default = self.selectable.get(name)
        if default is None:
            return None
        value: Any = data
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value is None:
            return default
        return str(value).lower() if isinstance(value, bool) else str(value)


def _restore(new: Data, old: Data, key: str) -> None:
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def immutable(new: Data, old: Data, path: str, detail: str = "field is immutable") -> list[Cause]:
    """Refuse a change of what `path` names."""
    before, after = read(old, path), read(new, path)
    return [] if before == after else [invalid(path, after, detail)]


def read(data: Any, path: str) -> Any:
    """Return what a dotted path leads to, None if there is nothing."""
    for part in path.split("."):
        data = data.get(part) if isinstance(data, dict) else None
    return data


def validate_metadata_update(new: Data, old: Data) -> list[Cause]:
    """Check what every kind's metadata may become."""
    causes: list[Cause] = []
    if "deletionTimestamp" in old["metadata"]:
        before = set(old["metadata"].get("finalizers", ()))
        added = [name for name in new["metadata"].get("finalizers", ()) if name not in before]
        if added:
            causes.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[{', '.join(added)}]",
                )
            )
    return causes
