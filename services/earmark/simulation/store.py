"""The scenario's own hand on the API: objects as they are written, without the faults that are meant for services."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import DeleteOptions, Registry, WriteOptions
from earmark.kube import objects
from earmark.kube.api import PatchType
from earmark.kube.resources import BY_KIND
from earmark.simulation.budgets import allows_nothing, fail_safe
from earmark.simulation.errors import ScenarioError
from earmark.simulation.observe import Request, request
from earmark.simulation.scenario import Manifest
from earmark.simulation.stage import StepRefused

CLIENT = "scenario"

_STRICT = WriteOptions(strict=True)

# Of the objects that are there from the start these come first: others name them.
_FIRST = ("Namespace", "PriorityClass", "DeviceClass", "Node")


class ScenarioStore:
    """Writes to the registry, at once and as itself."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def load(self, manifests: tuple[Manifest, ...]) -> None:
        """Create the objects that exist from the start; raises ScenarioError that names the field."""
        ranks = {kind: rank for rank, kind in enumerate(_FIRST)}
        for manifest in sorted(manifests, key=lambda manifest: ranks.get(manifest.kind, len(_FIRST))):
            self.apply(manifest)
        for manifest in manifests:
            # Pods may come after the budgets that cover them.
            if manifest.kind == "PodDisruptionBudget" and "status" in manifest.data:
                self.apply(manifest)

    def apply(self, manifest: Manifest) -> None:
        """Create an object, or replace the spec (and the status where one is given) of the one that exists.

        Raises ScenarioError where the API refuses it.
        """
        resource = BY_KIND[manifest.kind]
        data = copy.deepcopy(dict(manifest.data))
        status = data.pop("status", None)
        try:
            existing = self._registry.lookup(manifest.kind, manifest.namespace, manifest.name)
            if existing is None:
                with request(self._request("create", manifest.kind, manifest.namespace, manifest.name)):
                    self._registry.create(resource, manifest.namespace, data, _STRICT)
            else:
                changed = _replaced(existing, data)
                with request(self._request("update", manifest.kind, manifest.namespace, manifest.name)):
                    self._registry.update(resource, manifest.namespace, manifest.name, changed, options=_STRICT)
            if status is not None:
                self._set_status(manifest, status)
        except StatusError as error:
            source = manifest.source
            fields = [f"{source.field}.{cause.field}" for cause in error.causes if cause.field]
            raise ScenarioError(
                source.file, source.line, fields[0] if fields else source.field, error.message
            ) from None

    def _set_status(self, manifest: Manifest, status: Any) -> None:
        if manifest.kind == "PodDisruptionBudget":
            budget = msgspec.convert(dict(manifest.data), objects.PodDisruptionBudget)
            pods = (msgspec.convert(data, objects.Pod) for data in self._registry.all("Pod"))
            if allows_nothing(budget, pods):
                status = fail_safe(status)
        made = self._request("patch", manifest.kind, manifest.namespace, manifest.name, "status")
        with request(made):
            self._registry.patch(
                BY_KIND[manifest.kind],
                manifest.namespace,
                manifest.name,
                {"status": status},
                PatchType.MERGE,
                subresource="status",
            )

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object with its default grace period; raises StepRefused."""
        try:
            with request(self._request("delete", kind, namespace, name)):
                self._registry.delete(BY_KIND[kind], namespace, name, DeleteOptions())
        except StatusError as error:
            raise StepRefused(error.message) from None

    def patch(self, kind: str, namespace: str, name: str, subresource: str, merge: Mapping[str, Any]) -> None:
        """Change an object by a JSON merge patch; raises StepRefused."""
        try:
            with request(self._request("patch", kind, namespace, name, subresource)):
                self._registry.patch(
                    BY_KIND[kind], namespace, name, copy.deepcopy(dict(merge)), PatchType.MERGE, subresource=subresource
                )
        except StatusError as error:
            raise StepRefused(error.message) from None

    @staticmethod
    def _request(verb: str, kind: str, namespace: str, name: str, subresource: str = "") -> Request:
        return Request(CLIENT, verb, kind, namespace, name, subresource)


def _replaced(existing: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the existing object with what the manifest says instead of what it said."""
    changed = {**existing, **{key: value for key, value in wanted.items() if key != "metadata"}}
    if wanted["kind"] == "Pod":
        # What admission, the scheduler and defaulting have put into a pod's spec stays.
        changed["spec"] = {**existing.get("spec", {}), **wanted.get("spec", {})}
    metadata = dict(existing["metadata"])
    for key in ("labels", "annotations", "finalizers", "ownerReferences"):
        if key in wanted["metadata"]:
            metadata[key] = wanted["metadata"][key]
    changed["metadata"] = metadata
    return changed
