"""Objects that an API has written, with UIDs and versions: they are put into the store of a run as they are. Pure.

Objects that a person has written are created instead, and get UIDs of their own (earmark.simulation.store).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from earmark.apiserver.storage import Record
from earmark.simulation.scenario import Manifest


@dataclass(frozen=True, slots=True)
class Restored:
    """What is there before the run begins, and the newest version of it."""

    revision: int = 0
    records: tuple[Record, ...] = ()


def split(manifests: Iterable[Manifest]) -> tuple[Restored, tuple[Manifest, ...]]:
    """Return the objects that an API has written, and the others, each in order."""
    records: list[Record] = []
    others: list[Manifest] = []
    for manifest in manifests:
        metadata = manifest.data["metadata"]
        version = str(metadata.get("resourceVersion", ""))
        if not metadata.get("uid") or not version.isdigit():
            others.append(manifest)
            continue
        body = msgspec.json.encode(manifest.data)
        records.append(Record(manifest.kind, manifest.namespace, manifest.name, int(version), body))
    return Restored(max((record.revision for record in records), default=0), tuple(records)), tuple(others)
