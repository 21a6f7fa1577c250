"""Which resource, object and subresource a path means. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from earmark.apiserver import reviews
from earmark.kube.resources import BY_KIND, RESOURCES, Resource

# core/v1 Events are the same objects as those of events.k8s.io/v1, with other field names.
CORE_EVENTS = replace(BY_KIND["Event"], group="", version="v1", short_names=("ev",))

SERVED: tuple[Resource, ...] = (*RESOURCES, CORE_EVENTS)

GROUPS: dict[tuple[str, str], dict[str, Resource]] = {}
for _resource in SERVED:
    GROUPS.setdefault((_resource.group, _resource.version), {})[_resource.plural] = _resource

# What discovery and OpenAPI tell of: with what is only asked.
PUBLISHED = {**GROUPS, **reviews.GROUPS}


@dataclass(frozen=True, slots=True)
class Route:
    """What a request is about; `name` is empty for collections, `namespace` for all of them."""

    resource: Resource
    namespace: str
    name: str
    subresource: str

    @property
    def core_events(self) -> bool:
        """Whether events are spoken of in the terms of core/v1."""
        return self.resource is CORE_EVENTS


def route(path: str) -> Route | None:
    """Return what a path means; None if nothing is served there."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    resources = GROUPS.get((group, version))
    if resources is None or "" in rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        inner = resources.get(rest[2])
        if inner is not None and inner.namespaced:
            namespace, rest = rest[1], rest[2:]
    resource = resources.get(rest[0])
    if resource is None or len(rest) > 3:
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        return None
    if name and resource.namespaced and not namespace:
        return None
    return Route(resource, namespace, name, subresource)
