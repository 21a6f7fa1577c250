"""The OpenAPI v3 documents that kubectl validates, explains and patches by; made from the schema. Pure."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec

from earmark.apiserver.patches import MERGE_KEYS, MERGED_SETS
from earmark.apiserver.requests import APPLY_PATCH, PATCH_TYPES
from earmark.apiserver.reviews import REVIEWS
from earmark.apiserver.routes import CORE_EVENTS, PUBLISHED
from earmark.apiserver.schema import Schema, kubernetes
from earmark.kube.resources import Resource

Data = dict[str, Any]

VERSION = "v1.37.0"

_encode = msgspec.json.Encoder().encode

_SCALARS: dict[str, Data] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "double"},
    "intstr": {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    "quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "time": {"type": "string", "format": "date-time"},
    "microtime": {"type": "string", "format": "date-time"},
    "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_QUERY = ("dryRun", "fieldManager", "fieldValidation", "pretty")


def document(path: str) -> bytes | None:
    """Return what stands at a path below /openapi/v3; None if nothing does."""
    if path == "/openapi/v3":
        paths = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={hashlib.sha256(body).hexdigest()[:32].upper()}"}
            for key, body in _texts().items()
        }
        return _encode({"paths": paths})
    return _texts().get(path.removeprefix("/openapi/v3/"))


@lru_cache(maxsize=1)
def _texts() -> dict[str, bytes]:
    return {key: _encode(data) for key, data in documents().items()}


def documents() -> dict[str, Data]:
    """Return the document of each group and version as JSON data, by its path below /openapi/v3."""
    schema = kubernetes()
    return {
        f"apis/{group}/{version}" if group else f"api/{version}": _document(schema, list(resources.values()))
        for (group, version), resources in PUBLISHED.items()
    }


def root_type(schema: Schema, resource: Resource) -> str:
    """Return the name of a resource's type in the schema."""
    return schema.roots["CoreEvent" if resource is CORE_EVENTS else resource.kind]


def _document(schema: Schema, resources: list[Resource]) -> Data:
    components: Data = {}
    paths: Data = {}
    for resource in resources:
        name = root_type(schema, resource)
        _add_component(schema, name, components)
        identity = _identity(resource)
        components[_title(name)]["x-kubernetes-group-version-kind"] = [identity]
        paths.update(_paths(resource, name, identity))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION},
        "paths": paths,
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _identity(resource: Resource) -> Data:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _title(type_name: str) -> str:
    """Return a type's name as Kubernetes publishes it: core_v1.Pod is io.k8s.api.core.v1.Pod."""
    module, kind = type_name.split(".")
    group, version = module.split("_")
    if group == "meta":
        return f"io.k8s.apimachinery.pkg.apis.meta.{version}.{kind}"
    return f"io.k8s.api.{group}.{version}.{kind}"


def _add_component(schema: Schema, type_name: str, components: Data) -> None:
    title = _title(type_name)
    if title in components:
        return
    info = schema.types[type_name]
    component: Data = {"type": "object", "properties": {}}
    components[title] = component
    for field, text in info["fields"].items():
        component["properties"][field] = _property(schema, text, components)
        where = f"{type_name}.{field}"
        if where in MERGE_KEYS:
            component["properties"][field].update(
                {
                    "x-kubernetes-patch-merge-key": MERGE_KEYS[where],
                    "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": [MERGE_KEYS[where]],
                }
            )
        elif where in MERGED_SETS:
            component["properties"][field].update(
                {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-list-type": "set"}
            )
    # A key of a merged list is required by its description, whatever Go says of it.
    if info["required"]:
        component["required"] = info["required"]


def _property(schema: Schema, text: str, components: Data) -> Data:
    if text.startswith("[]"):
        return {"type": "array", "items": _property(schema, text[2:], components)}
    if text.startswith("{}"):
        return {"type": "object", "additionalProperties": _property(schema, text[2:], components)}
    if text in _SCALARS:
        return dict(_SCALARS[text])
    _add_component(schema, text, components)
    # With allOf, because properties beside $ref are ignored.
    return {"allOf": [{"$ref": f"#/components/schemas/{_title(text)}"}], "default": {}}


def _paths(resource: Resource, type_name: str, identity: Data) -> Data:
    base = resource.base_path
    collection = (
        f"{base}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{base}/{resource.plural}"
    )
    body = {"schema": {"$ref": f"#/components/schemas/{_title(type_name)}"}}
    answer = {"200": {"description": "OK", "content": {"application/json": body}}}
    query = [{"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _QUERY]
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in (("name", "namespace") if resource.namespaced else ("name",))
    ]

    def operation(action: str, content: Data | None) -> Data:
        made: Data = {
            "responses": answer,
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity,
        }
        if content is not None:
            made["parameters"] = query
            made["requestBody"] = {"content": content}
        return made

    if resource in REVIEWS:
        return {collection: {"post": operation("post", {"application/json": body})}}
    patch_body = {"schema": {"type": "object"}}
    patches = dict.fromkeys((*PATCH_TYPES, APPLY_PATCH), patch_body)
    paths: Data = {
        collection: {
            "get": operation("list", None),
            "post": operation("post", {"application/json": body}),
            "parameters": in_path[1:],
        },
        f"{collection}/{{name}}": {
            "get": operation("get", None),
            "put": operation("put", {"application/json": body}),
            "patch": operation("patch", patches),
            "delete": operation("delete", {"application/json": patch_body}),
            "parameters": in_path,
        },
    }
    if "status" in resource.subresources:
        paths[f"{collection}/{{name}}/status"] = {
            "get": operation("get", None),
            "put": operation("put", {"application/json": body}),
            "patch": operation("patch", patches),
            "parameters": in_path,
        }
    return paths
