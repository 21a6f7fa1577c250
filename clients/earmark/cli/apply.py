"""`earmark apply` and `earmark delete`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from earmark.cli.errors import BadInput, read_text
from earmark.cli.running import open_api, run
from earmark.kube.apply import apply, in_order, resource_of
from earmark.kube.manifests import Manifest, ManifestError, load_manifests
from earmark.kube.resources import RESOURCES, Resource
from earmark.runtime.process import RuntimeSettings


def apply_files(runtime: RuntimeSettings, paths: Sequence[Path], namespace: str) -> None:
    """Create or change the objects of manifest files and print a line for each.

    All files are read before anything is written. Raises BadInput for what cannot be used (nothing is written if that
    shows in reading) or what the API refuses, naming file, line and field.
    """
    manifests = read_manifests(paths)
    if not manifests:
        raise BadInput(f"{', '.join(map(str, paths))}: nothing to apply, no object in it")

    async def work() -> None:
        async with open_api(runtime) as api:
            for manifest in manifests:
                done = await apply(api, manifest, namespace)
                print(f"{done.resource.kind.lower()}/{done.name} {done.outcome.value}", flush=True)

    try:
        run(work())
    except ManifestError as error:
        raise BadInput(str(error)) from error


def read_manifests(paths: Sequence[Path]) -> list[Manifest]:
    """Return the objects of files and folders (their *.yaml, *.yml and *.json by name), what others need first.

    Raises BadInput, naming file, line and field, for the first that cannot be used.
    """
    try:
        manifests = [manifest for path in paths for file in _files(path) for manifest in load_manifests(*_text(file))]
        for manifest in manifests:
            resource_of(manifest)
    except ManifestError as error:
        raise BadInput(str(error)) from error
    return in_order(manifests)


def _text(file: Path) -> tuple[str, str]:
    if str(file) == "-":
        return sys.stdin.read(), "stdin"
    return read_text(file), str(file)


def _files(path: Path) -> list[Path]:
    if str(path) == "-" or path.is_file():
        return [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml", ".json"))
        if not files:
            raise BadInput(f"{path}: no manifests in this folder (*.yaml, *.yml, *.json)")
        return files
    raise BadInput(f"{path}: no such file or folder")


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
