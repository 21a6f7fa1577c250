"""Server-side apply: who owns which field, what an apply changes, and when it conflicts. Pure.

Ownership of updates is kept for objects that have been applied; the others have no managedFields. What such an object
had before its first apply is owned by "before-first-apply", as upstream does for objects of old.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from earmark.apiserver.errors import Cause, StatusError, bad_request
from earmark.apiserver.fieldsets import (
    Data,
    FieldSetError,
    Path,
    from_fields,
    leaves,
    merged,
    shown,
    to_fields,
    without,
)
from earmark.apiserver.schema import Schema

BEFORE = "before-first-apply"

# What is no client's to own.
_IDENTITY = ("apiVersion", "kind")
_METADATA = frozenset(
    {
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "selfLink", "managedFields", "generateName",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Owner:
    """An entry of managedFields."""

    manager: str
    operation: str
    subresource: str
    api_version: str
    time: str
    paths: frozenset[Path]

    def same(self, manager: str, operation: str, subresource: str) -> bool:
        """Whether this is the entry of a manager."""
        return (self.manager, self.operation, self.subresource) == (manager, operation, subresource)


def read_owners(data: Data) -> list[Owner]:
    """Return the entries of an object's managedFields."""
    return [
        Owner(
            entry.get("manager", ""),
            entry.get("operation", ""),
            entry.get("subresource", ""),
            entry.get("apiVersion", ""),
            entry.get("time", ""),
            frozenset(from_fields(entry.get("fieldsV1"))),
        )
        for entry in data["metadata"].get("managedFields", ())
    ]


def write_owners(data: Data, owners: list[Owner]) -> None:
    """Set an object's managedFields; entries without fields go."""
    entries = []
    for owner in owners:
        if not owner.paths:
            continue
        entry: Data = {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": owner.api_version,
            "time": owner.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields(owner.paths),
        }
        if owner.subresource:
            entry["subresource"] = owner.subresource
        entries.append(entry)
    if entries:
        data["metadata"]["managedFields"] = entries
    else:
        data["metadata"].pop("managedFields", None)


def fields_of(schema: Schema, type_name: str, data: Data) -> dict[Path, Any]:
    """Return the fields of an object that can be owned, with their values.

    Raises StatusError 400 where a list with keys has an element without one.
    """
    content = {key: value for key, value in data.items() if key not in _IDENTITY}
    meta = {key: value for key, value in data.get("metadata", {}).items() if key not in _METADATA}
    if meta:
        content["metadata"] = meta
    else:
        content.pop("metadata", None)
    try:
        return leaves(schema, type_name, content)
    except FieldSetError as error:
        raise bad_request(f"failed to create typed patch object: {error}") from error


@dataclass(frozen=True, slots=True)
class Apply:
    """An apply: by whom, to which subresource, whether conflicts are won, and when."""

    manager: str
    subresource: str
    force: bool
    api_version: str
    time: str


def apply(schema: Schema, type_name: str, live: Data | None, applied: Data, how: Apply) -> Data:
    """Return what an object becomes by an apply, managedFields included.

    Raises StatusError 409 for fields that another manager owns and that would change, unless forced.
    """
    wanted = fields_of(schema, type_name, applied)
    own = Owner(how.manager, "Apply", how.subresource, how.api_version, how.time, frozenset(wanted))
    if live is None:
        result = {**applied, "metadata": dict(applied["metadata"])}
        write_owners(result, [own])
        return result
    present = fields_of(schema, type_name, live)
    owners = read_owners(live)
    if not owners and present:
        owners = [Owner(BEFORE, "Update", "", how.api_version, how.time, frozenset(present))]
    before = next((owner for owner in owners if owner.same(how.manager, "Apply", how.subresource)), None)
    others = [owner for owner in owners if owner is not before]
    changed = {path for path, value in wanted.items() if path in present and present[path] != value}
    conflicts = [(owner, sorted(owner.paths & changed)) for owner in others if owner.paths & changed]
    if conflicts and not how.force:
        raise _conflict(conflicts)
    others = [replace(owner, paths=owner.paths - changed) for owner in others]
    result = merged(schema, type_name, live, applied)
    if before is not None:
        result = without(schema, type_name, result, _given_up(before.paths - own.paths, others, own))
    if before is not None and before.paths == own.paths:
        own = before
    result["metadata"] = dict(result["metadata"])
    write_owners(result, [own, *others])
    return result


def _given_up(paths: frozenset[Path], others: list[Owner], own: Owner) -> list[Path]:
    """Return the fields that nobody holds any more."""
    held = {path[:length] for owner in (own, *others) for path in owner.paths for length in range(1, len(path) + 1)}
    return [path for path in paths if path not in held]


def _conflict(conflicts: list[tuple[Owner, list[Path]]]) -> StatusError:
    causes, texts = [], []
    for owner, paths in conflicts:
        using = f' with subresource "{owner.subresource}"' if owner.subresource else ""
        text = f'conflict with "{owner.manager}"{using} using {owner.api_version}'
        causes += [Cause("FieldManagerConflict", text, shown(path)) for path in paths]
        texts += [f"{text}: {shown(path)}" for path in paths]
    number = f"{len(texts)} conflict{'s' if len(texts) > 1 else ''}"
    return StatusError(409, "Conflict", f"Apply failed with {number}: {', '.join(texts)}", causes=causes)


def after_update(schema: Schema, type_name: str, old: Data, new: Data, how: Apply) -> None:
    """Set the managedFields of an object that was changed by something else than an apply."""
    owners = read_owners(old)
    if not owners:
        new["metadata"].pop("managedFields", None)
        return
    before, after = fields_of(schema, type_name, old), fields_of(schema, type_name, new)
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = set(before) - set(after)
    if changed or gone:
        mine = next((owner for owner in owners if owner.same(how.manager, "Update", how.subresource)), None)
        paths = frozenset(changed | ((mine.paths if mine is not None else frozenset()) - gone))
        owners = [replace(owner, paths=owner.paths - changed - gone) for owner in owners if owner is not mine]
        if paths:
            time = mine.time if mine is not None and mine.paths == paths else how.time
            owners.append(Owner(how.manager, "Update", how.subresource, how.api_version, time, paths))
    write_owners(new, owners)
