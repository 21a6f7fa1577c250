"""`earmark apply` and `earmark delete`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from earmark.cli.errors import BadInput, CommandError
from earmark.cli.manifests import Manifest, read_manifests
from earmark.cli.running import open_api, run
from earmark.kube.api import ApiError
from earmark.kube.http import HttpApi
from earmark.kube.resources import RESOURCES, Resource
from earmark.runtime.process import RuntimeSettings


def apply_files(runtime: RuntimeSettings, paths: Sequence[Path], namespace: str) -> None:
    """Create or change the objects of manifest files and print a line for each.

    All files are read before anything is written. Raises BadInput for what cannot be used (nothing is written if that
    shows in reading), CommandError for what the API refuses.
    """
    manifests = read_manifests(paths, namespace)

    async def work() -> None:
        async with open_api(runtime) as api:
            for manifest in manifests:
                print(f"{manifest} {await apply_manifest(api, manifest)}")

    run(work())


async def apply_manifest(api: HttpApi, manifest: Manifest) -> str:
    """Create or change one object, and return "created", "configured" or "unchanged"."""
    try:
        return await _apply(api, manifest)
    except ApiError as error:
        problem = f"{manifest.where}: {error.message}"
        raise (BadInput(problem) if error.status in (400, 422) else CommandError(problem)) from error


async def _apply(api: HttpApi, manifest: Manifest) -> str:
    collection = collection_path(manifest.resource, manifest.namespace)
    path = f"{collection}/{manifest.name}"
    try:
        before = await api.raw("GET", path)
    except ApiError as error:
        if not error.not_found:
            raise
        await api.raw("POST", collection, body=manifest.body)
        await _apply_status(api, path, manifest)
        return "created"
    wanted = {key: value for key, value in manifest.body.items() if key != "status"}
    after = await api.raw("PATCH", path, body=wanted, content_type="application/merge-patch+json")
    await _apply_status(api, path, manifest)
    changed = _version(before) != _version(after)
    return "configured" if changed else "unchanged"


async def _apply_status(api: HttpApi, path: str, manifest: Manifest) -> None:
    """Write the status where a manifest has one: a node's capacity lives there, and the API takes it only there."""
    status = manifest.body.get("status")
    if status and "status" in manifest.resource.subresources:
        await api.raw("PATCH", f"{path}/status", body={"status": status}, content_type="application/merge-patch+json")


def _version(value: dict[str, Any]) -> Any:
    return value.get("metadata", {}).get("resourceVersion")


def collection_path(resource: Resource, namespace: str) -> str:
    """Return the path of a kind's objects, in a namespace or in all."""
    middle = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    return f"{resource.base_path}{middle}/{resource.plural}"


def find_resource(kind: str) -> Resource:
    """Return the kind that a word names: kind, plural, singular or short name. Raises BadInput."""
    word = kind.lower()
    for resource in RESOURCES:
        if word in (resource.kind.lower(), resource.plural, *resource.short_names):
            return resource
    raise BadInput(f"{kind!r} is no kind that is served; there are {', '.join(r.plural for r in RESOURCES)}")


def delete_object(runtime: RuntimeSettings, kind: str, name: str, namespace: str) -> None:
    """Delete one object and print a line. Raises BadInput, CommandError."""
    resource = find_resource(kind)

    async def work() -> None:
        async with open_api(runtime) as api:
            await api.delete(resource.struct, name, namespace if resource.namespaced else "")
            print(f"{resource.kind.lower()}/{name} deleted")

    run(work())
