"""Scenario files, read strictly: whatever is unknown or out of place is one error with file, line and field."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from earmark.simulation.document import Field, read_documents
from earmark.simulation.errors import ScenarioError
from earmark.simulation.manifests import read_manifests
from earmark.simulation.scenario import API_VERSION, KIND, Delays, Manifest, Scenario, Source, TimelineEntry
from earmark.simulation.steps.registry import READERS

END = "end"


@dataclass(frozen=True, slots=True)
class _Context:
    """What steps need while they are read."""

    directory: Path

    def manifests(self, field: Field) -> tuple[Manifest, ...]:
        """Return the manifests of a list, included files among them."""
        return read_manifests(field, self.directory)


def load_scenarios(path: Path, known_gates: Collection[str] | None = None) -> tuple[Scenario, ...]:
    """Return the scenarios of a file, in order.

    Args: `known_gates` are the feature gates that can be set (None: any). Raises ScenarioError: no file, no YAML,
    nothing in it, or a field that is wrong.
    """
    documents = read_documents(path)
    if not documents:
        raise ScenarioError(str(path), 0, "", "holds no scenario")
    return tuple(_scenario(document, path.parent, known_gates) for document in documents)


def _scenario(document: Field, directory: Path, known_gates: Collection[str] | None) -> Scenario:
    fields = document.mapping({"apiVersion", "kind", "metadata", "spec"}, required=("apiVersion", "kind"))
    fields["apiVersion"].string(one_of=(API_VERSION,))
    fields["kind"].string(one_of=(KIND,))
    document.mapping(required=("metadata", "spec"))
    name = fields["metadata"].mapping({"name"}, required=("name",))["name"].string()
    known = {"description", "featureGates", "delays", "objects", "timeline"}
    spec = fields["spec"].mapping(known, required=("timeline",))
    context = _Context(directory)
    return Scenario(
        name=name,
        description=_text(spec.get("description")),
        feature_gates=_gates(spec.get("featureGates"), known_gates),
        delays=_delays(spec.get("delays")),
        objects=context.manifests(spec["objects"]) if "objects" in spec else (),
        timeline=_timeline(spec["timeline"], context),
        source=_source(document),
    )


def _source(field: Field) -> Source:
    return Source(field.file, field.line, field.path)


def _text(field: Field | None) -> str:
    return "" if field is None or field.is_null else field.string().strip()


def _gates(field: Field | None, known: Collection[str] | None) -> Mapping[str, bool]:
    if field is None:
        return {}
    return {name: value.boolean() for name, value in field.mapping(known).items()}


def _delays(field: Field | None) -> Delays:
    if field is None:
        return Delays()
    values = {name: value.duration() for name, value in field.mapping({"deallocation", "startup"}).items()}
    return Delays(**values)


def _timeline(field: Field, context: _Context) -> tuple[TimelineEntry, ...]:
    entries = [_entry(item, context) for item in field.items()]
    # Stable: steps of the same instant stay in file order. "end" comes after every moment.
    return tuple(sorted(entries, key=lambda entry: float("inf") if entry.at is None else entry.at))


def _entry(item: Field, context: _Context) -> TimelineEntry:
    fields = item.mapping({"at", *READERS}, required=("at",))
    keys = [key for key in fields if key != "at"]
    if len(keys) != 1:
        what = f"has {' and '.join(keys)}" if keys else "has no step"
        item.fail(f"{what}; a timeline entry has exactly one of {', '.join(READERS)}")
    at = fields["at"]
    is_end = at.value == END
    return TimelineEntry(
        at=None if is_end else at.duration(),
        step=READERS[keys[0]](fields[keys[0]], context),
        source=_source(item),
    )
