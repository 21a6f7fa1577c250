"""Steps that change objects of the API: apply, delete, patch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from earmark.kube.resources import BY_KIND
from earmark.simulation.document import Field
from earmark.simulation.scenario import Manifest
from earmark.simulation.stage import Stage
from earmark.simulation.steps.base import ReadContext, read_kind, read_namespace


@dataclass(frozen=True, slots=True)
class Apply:
    """Create objects, or replace what they say."""

    manifests: tuple[Manifest, ...]
    key: ClassVar[str] = "apply"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Apply:
        """Read a list of manifests."""
        return cls(context.manifests(field))

    def describe(self) -> Mapping[str, Any]:
        """Return the objects' names."""
        return {"objects": [f"{manifest.kind}/{manifest.name}" for manifest in self.manifests]}

    async def run(self, stage: Stage) -> None:
        """Apply them in order."""
        for manifest in self.manifests:
            await stage.apply(manifest)


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one object."""

    kind: str
    namespace: str
    name: str
    key: ClassVar[str] = "delete"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Delete:
        """Read {kind, name, namespace?}."""
        fields = field.mapping({"kind", "name", "namespace"}, required=("kind", "name"))
        kind = read_kind(fields["kind"])
        return cls(kind, read_namespace(fields, kind), fields["name"].string())

    def describe(self) -> Mapping[str, Any]:
        """Return the object's name."""
        return {"object": f"{self.kind}/{self.name}"}

    async def run(self, stage: Stage) -> None:
        """Delete it."""
        await stage.delete(self.kind, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Patch:
    """Change one object by a JSON merge patch."""

    kind: str
    namespace: str
    name: str
    subresource: str
    merge: Mapping[str, Any]
    key: ClassVar[str] = "patch"

    @classmethod
    def read(cls, field: Field, context: ReadContext) -> Patch:
        """Read {kind, name, namespace?, subresource?, merge}."""
        known = {"kind", "name", "namespace", "subresource", "merge"}
        fields = field.mapping(known, required=("kind", "name", "merge"))
        kind = read_kind(fields["kind"])
        subresource = ""
        if "subresource" in fields:
            offered = [name for name in BY_KIND[kind].subresources if name != "binding"]
            if not offered:
                fields["subresource"].fail(f"{kind} has no subresource")
            subresource = fields["subresource"].string(one_of=offered)
        fields["merge"].mapping()
        return cls(kind, read_namespace(fields, kind), fields["name"].string(), subresource, fields["merge"].value)

    def describe(self) -> Mapping[str, Any]:
        """Return the object's name and the patch."""
        return {"object": f"{self.kind}/{self.name}", "subresource": self.subresource, "merge": self.merge}

    async def run(self, stage: Stage) -> None:
        """Send the patch."""
        await stage.patch(self.kind, self.namespace, self.name, self.subresource, self.merge)
