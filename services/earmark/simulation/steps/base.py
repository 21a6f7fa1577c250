"""What every step of a timeline has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from earmark.kube.resources import BY_KIND
from earmark.simulation.document import Field
from earmark.simulation.scenario import SERVICES, Manifest
from earmark.simulation.stage import Stage

DEFAULT_NAMESPACE = "default"


class Step(Protocol):
    """One thing that is done, or checked, at a moment of the timeline."""

    @property
    def key(self) -> str:
        """The key that names the step in a file."""

    def describe(self) -> Mapping[str, Any]:
        """Return what the event log tells of it."""

    async def run(self, stage: Stage) -> None:
        """Do it. Raises StepRefused where the cluster does not let it."""


class ReadContext(Protocol):
    """What a step needs of the loader."""

    def manifests(self, field: Field) -> tuple[Manifest, ...]:
        """Return the manifests of a list, included files among them."""


Reader = Callable[[Field, ReadContext], Step]


def read_kind(field: Field) -> str:
    """Return the name of a kind that the API serves."""
    return field.string(one_of=BY_KIND)


def read_namespace(fields: Mapping[str, Field], kind: str) -> str:
    """Return the namespace of an object: `namespace`, else "default"; "" for cluster-scoped kinds."""
    namespace = fields.get("namespace")
    if not BY_KIND[kind].namespaced:
        if namespace is not None:
            namespace.fail(f"{kind} has no namespace")
        return ""
    return namespace.string() if namespace is not None else DEFAULT_NAMESPACE


def read_service(field: Field) -> str:
    """Return the name of a service that can be stopped."""
    return field.string(one_of=SERVICES)
