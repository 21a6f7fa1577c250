"""The state of a cluster as one file: written for `earmark dump`, read by whatif and simulate, fit for a bug report.

The file is a Kubernetes List with a section `earmark` beside its items, so that `- file: DUMP` in a scenario takes it
as it is. It has what decides about scheduling and nothing else: no Secrets and ConfigMaps, no environment, commands or
arguments of containers, no contents of volumes, no drivers' parameters, no annotations but Kubernetes' and earmark's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from earmark.kube import objects
from earmark.kube.resources import BY_KIND, to_manifest
from earmark.simulation.document import Field, read_documents
from earmark.simulation.errors import ScenarioError
from earmark.simulation.manifests import read_manifest
from earmark.simulation.scenario import Manifest

VERSION = 1

# What a dump has, in this order.
KINDS: tuple[type[objects.Object], ...] = (
    objects.Namespace,
    objects.PriorityClass,
    objects.Node,
    objects.DeviceClass,
    objects.DeviceTaintRule,
    objects.ResourceSlice,
    objects.ResourceClaimTemplate,
    objects.ResourceClaim,
    objects.PodDisruptionBudget,
    objects.Pod,
)

# Of annotations with other domains nobody knows what they hold; kubectl's has the object as it was applied.
_DOMAINS = ("kubernetes.io", "k8s.io", "earmark.dev")
_NOT = "kubectl.kubernetes.io"


@dataclass(frozen=True, slots=True)
class About:
    """What a dump says besides its objects."""

    taken: datetime
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    # For people who read a bug report; nothing is restored from these.
    nominations: tuple[Mapping[str, Any], ...] = ()
    settlements: tuple[Mapping[str, Any], ...] = ()
    queue: tuple[Mapping[str, Any], ...] = ()
    # Services that did not answer.
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump as it was taken or read."""

    about: About
    manifests: tuple[Manifest, ...]


def manifests_of(values: Iterable[objects.Object]) -> tuple[Manifest, ...]:
    """Return objects as a dump has them."""
    found = []
    for value in values:
        data = redacted(to_manifest(value))
        namespace, name = value.key
        found.append(Manifest(data["kind"], name, namespace, data))
    return tuple(found)


def redacted(data: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what a dump must not have."""
    metadata = dict(data["metadata"])
    annotations = {key: text for key, text in metadata.pop("annotations", {}).items() if _is_known(key)}
    if annotations:
        metadata["annotations"] = annotations
    new: dict[str, Any] = _without_parameters({**data, "metadata": metadata})
    spec = new.get("spec")
    if new["kind"] == "Pod" and isinstance(spec, dict) and "volumes" in spec:
        new["spec"] = {**spec, "volumes": [_volume(volume) for volume in spec["volumes"]]}
    return new


def _is_known(key: str) -> bool:
    domain = key.partition("/")[0] if "/" in key else ""
    return domain != _NOT and any(domain == known or domain.endswith(f".{known}") for known in _DOMAINS)


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    """A volume's name and kind; of a PersistentVolumeClaim its name, which scheduling looks at."""
    return {
        key: value if key in ("name", "persistentVolumeClaim") or not isinstance(value, dict) else {}
        for key, value in volume.items()
    }


def _without_parameters(value: Any) -> Any:
    """Empty the opaque parameters of drivers, wherever they are."""
    if isinstance(value, dict):
        return {
            key: {**item, "parameters": {}}
            if key == "opaque" and isinstance(item, dict) and "parameters" in item
            else _without_parameters(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_parameters(item) for item in value]
    return value


def text_of(dump: Dump) -> str:
    """Return a dump as YAML."""
    about = dump.about
    section: dict[str, Any] = {
        "version": VERSION,
        "taken": about.taken.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "featureGates": dict(sorted(about.feature_gates.items())),
        "nominations": [dict(item) for item in about.nominations],
        "settlements": [dict(item) for item in about.settlements],
        "queue": [dict(item) for item in about.queue],
    }
    if about.missing:
        section["missing"] = list(about.missing)
    whole = {
        "apiVersion": "v1",
        "kind": "List",
        "earmark": section,
        "items": [manifest.data for manifest in dump.manifests],
    }
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(msgspec.to_builtins(whole), Dumper=dumper, sort_keys=False, width=160, allow_unicode=True)
    return text


def read_dump(path: Path, now: datetime) -> Dump:
    """Return the dump of a file, or the objects that `kubectl get -o yaml` has written, which are taken as of `now`.

    Raises ScenarioError.
    """
    about = About(now)
    found: list[Manifest] = []
    documents = read_documents(path)
    for document in documents:
        fields = document.mapping(required=("apiVersion", "kind"))
        if fields["kind"].value != "List":
            found.append(read_manifest(document))
            continue
        if "earmark" in fields:
            about = _about(fields["earmark"])
        for item in fields["items"].items() if "items" in fields else ():
            # What an export has besides decides nothing.
            if item.mapping(required=("kind",))["kind"].value in BY_KIND:
                found.append(read_manifest(item))
    if not found:
        raise ScenarioError(str(path), 0, "", "holds no objects of a cluster")
    return Dump(about, tuple(found))


def _about(section: Field) -> About:
    fields = section.mapping(required=("version", "taken"))
    if fields["version"].integer() != VERSION:
        fields["version"].fail(f"is no version that can be read; want {VERSION}")
    taken = fields["taken"]
    try:
        moment = datetime.fromisoformat(str(taken.value).replace("Z", "+00:00"))
    except ValueError:
        taken.fail("must be a time like 2026-01-01T00:00:00Z")
    gates = fields["featureGates"].mapping() if "featureGates" in fields else {}
    return About(
        moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC),
        {name: gate.boolean() for name, gate in gates.items()},
    )
