"""Applies manifests: creates what does not exist, and replaces the spec (and status where given) of what does.

That is what scenario files and `earmark apply` mean by it. It knows no last-applied state: what a manifest leaves out
of metadata stays, what it leaves out of the rest goes.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from earmark.kube.api import ApiError
from earmark.kube.manifests import Manifest, ManifestError
from earmark.kube.raw import RawApi
from earmark.kube.resources import BY_KIND, Resource

ATTEMPTS = 5

# What the others need is created first; kinds not named come in the order of the file.
_FIRST = {
    kind: position
    for position, kind in enumerate(
        ("Namespace", "PriorityClass", "DeviceClass", "Node", "ResourceSlice", "ResourceClaimTemplate", "ResourceClaim")
    )
}


class Outcome(enum.Enum):
    """What an apply did."""

    CREATED = "created"
    CONFIGURED = "configured"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Applied:
    """One applied object."""

    resource: Resource
    namespace: str
    name: str
    outcome: Outcome


def resource_of(manifest: Manifest) -> Resource:
    """Return the resource of a manifest; raises ManifestError for a kind or version that is not served."""
    resource = BY_KIND.get(manifest.kind)
    if resource is None:
        known = ", ".join(sorted(BY_KIND))
        raise manifest.error(f"the kind is not served; served are: {known}", "kind")
    if manifest.data["apiVersion"] != resource.api_version:
        raise manifest.error(
            f"{manifest.data['apiVersion']} is not served for this kind; {resource.api_version} is", "apiVersion"
        )
    return resource


def in_order(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Return manifests with what others refer to first, otherwise in their order."""
    return sorted(manifests, key=lambda manifest: _FIRST.get(manifest.kind, len(_FIRST)))


async def apply(api: RawApi, manifest: Manifest, default_namespace: str = "default") -> Applied:
    """Apply one object.

    Raises ManifestError (which names source, line and field) where the API refuses it, and ApiUnavailable.
    """
    resource = resource_of(manifest)
    namespace = (manifest.namespace or default_namespace) if resource.namespaced else ""
    try:
        return await _apply(api, resource, namespace, manifest.data)
    except ApiError as error:
        raise refused(manifest, error) from error


def refused(manifest: Manifest, error: ApiError) -> ManifestError:
    """Return what the API's refusal of a manifest says, with source, line and field."""
    if len(error.causes) == 1:
        field, message = error.causes[0]
        return manifest.error(message, field)
    return manifest.error(error.message)


async def _apply(api: RawApi, resource: Resource, namespace: str, data: dict[str, Any]) -> Applied:
    meta = data["metadata"]
    name = meta.get("name", "")
    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        try:
            current = msgspec.json.decode(await api.get_raw(resource, namespace, name)) if name else None
        except ApiError as error:
            if not error.not_found:
                raise
            current = None
        try:
            if current is None:
                made = msgspec.json.decode(await api.create_raw(resource, namespace, data))
                await _put_status(api, resource, namespace, data, made)
                return Applied(resource, namespace, made["metadata"]["name"], Outcome.CREATED)
            before = current["metadata"]["resourceVersion"]
            changed = await _replace(api, resource, namespace, data, current)
            changed = await _put_status(api, resource, namespace, data, changed)
            same = changed["metadata"]["resourceVersion"] == before
            return Applied(resource, namespace, name, Outcome.UNCHANGED if same else Outcome.CONFIGURED)
        except ApiError as error:
            # Somebody else wrote or created it in between (or deleted it): look again.
            if last or not (error.conflict or (error.not_found and current is not None)):
                raise
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _replace(
    api: RawApi, resource: Resource, namespace: str, data: dict[str, Any], current: dict[str, Any]
) -> dict[str, Any]:
    meta = {key: value for key, value in data["metadata"].items() if key not in ("resourceVersion", "uid")}
    merged = {**current["metadata"], **meta}
    for key in ("labels", "annotations"):
        if isinstance(meta.get(key), dict):
            merged[key] = {**current["metadata"].get(key, {}), **meta[key]}
    new = {key: value for key, value in data.items() if key not in ("metadata", "status")}
    new["metadata"] = merged
    if resource.kind == "Pod":
        new["spec"] = _pod_spec(new.get("spec"), current.get("spec", {}))
    if "status" in current:
        new["status"] = current["status"]
    replaced: dict[str, Any] = msgspec.json.decode(
        await api.update_raw(resource, namespace, meta.get("name", ""), new)
    )  # fmt: skip
    return replaced


def _pod_spec(spec: Any, current: dict[str, Any]) -> Any:
    """Keep what the server or a scheduler set in a pod and a manifest does not repeat."""
    if not isinstance(spec, dict):
        return spec
    kept = ("nodeName", "priority", "preemptionPolicy", "priorityClassName", "serviceAccountName")
    return {**{key: current[key] for key in kept if key in current}, **spec}


async def _put_status(
    api: RawApi, resource: Resource, namespace: str, data: dict[str, Any], current: dict[str, Any]
) -> dict[str, Any]:
    status = data.get("status")
    if not status or "status" not in resource.subresources:
        return current
    if isinstance(status, dict) and isinstance(current.get("status"), dict):
        status = {**current["status"], **status}
    new = {**current, "status": status}
    name = current["metadata"]["name"]
    written: dict[str, Any] = msgspec.json.decode(await api.update_raw(resource, namespace, name, new, "status"))
    return written
