"""What a pod would cost: the form's manifest becomes a request, the dry run's answer becomes JSON data. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from earmark.v1 import common_pb2, preemption_pb2

# Nodes named in one line; of more the rest is counted.
_NODES = 8
# Alternatives that are listed.
ALTERNATIVES = 20


class BadManifest(Exception):
    """The form's text is no pod. The text is one line for people."""


def pod_manifest(text: str) -> dict[str, Any]:
    """Return the pod of a manifest in YAML or JSON. Raises BadManifest."""
    try:
        documents = [item for item in yaml.safe_load_all(text) if item is not None]
    except yaml.YAMLError as error:
        raise BadManifest(f"not valid YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise BadManifest("not valid YAML: nested too deeply") from error
    if len(documents) != 1:
        raise BadManifest(f"want one pod, found {len(documents)} documents")
    manifest = documents[0]
    if not isinstance(manifest, dict) or manifest.get("kind") != "Pod":
        found = manifest.get("kind") if isinstance(manifest, dict) else type(manifest).__name__
        raise BadManifest(f"kind: want Pod, found {found}")
    for field in ("metadata", "spec"):
        if not isinstance(manifest.get(field), dict):
            raise BadManifest(f"{field}: want an object")
    return manifest


def priority_class(manifest: Mapping[str, Any]) -> str:
    """Return the class whose value is the pod's priority; "" where the manifest has the value itself, or neither."""
    spec = manifest["spec"]
    return "" if isinstance(spec.get("priority"), int) else str(spec.get("priorityClassName") or "")


def answer_data(answer: preemption_pb2.DryRunResponse, devices_of: Callable[[str], Sequence[str]]) -> dict[str, object]:
    """Return the answer as JSON data. `devices_of` says what a pod has now, by its UID."""
    chosen = _candidate(answer.chosen, devices_of) if answer.HasField("chosen") else None
    others = [item for item in answer.candidates if not chosen or item.node_name != chosen["node"]]
    return {
        "summary": _summary(answer),
        "fitsOn": answer.fits_on,
        "chosen": chosen,
        "alternatives": [_candidate(item, devices_of) for item in others[:ALTERNATIVES]],
        "moreAlternatives": max(0, len(others) - ALTERNATIVES),
        "reasons": [
            {"nodes": _nodes(item.nodes), "text": "; ".join(item.preemption.reasons or item.status.reasons)}
            for item in answer.node_reasons
        ],
    }


def _summary(answer: preemption_pb2.DryRunResponse) -> str:
    if answer.fits_on:
        return f"It fits on node {answer.fits_on}; nobody has to go."
    if not answer.HasField("chosen"):
        reasons = "; ".join(answer.status.reasons)
        return f"It would stay pending: no preemption makes room for it{f' ({reasons})' if reasons else '.'}"
    count = len(answer.chosen.victims)
    return f"It would preempt {count} pod{'' if count == 1 else 's'} on node {answer.chosen.node_name}."


def _candidate(item: preemption_pb2.CandidateResult, devices_of: Callable[[str], Sequence[str]]) -> dict[str, object]:
    return {
        "node": item.node_name,
        "victims": [_victim(pod, devices_of) for pod in item.victims],
        "budgets": item.pdb_violations,
        "priority": item.highest_victim_priority,
    }


def _victim(pod: common_pb2.PodReference, devices_of: Callable[[str], Sequence[str]]) -> dict[str, object]:
    return {"name": f"{pod.namespace}/{pod.name}", "devices": list(devices_of(pod.uid))}


def _nodes(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NODES} more" if len(names) > _NODES else ""
    return f"{', '.join(names[:_NODES])}{rest}"
