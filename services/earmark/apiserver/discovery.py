"""What the API says about itself: version, health, groups and resources (also aggregated). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from earmark.apiserver import openapi, openapi2
from earmark.apiserver.reviews import REVIEWS
from earmark.apiserver.routes import PUBLISHED
from earmark.kube.resources import Resource

_encode = msgspec.json.Encoder().encode

# The Kubernetes release whose rules are followed; kubectl compares it with its own.
KUBERNETES_MAJOR, KUBERNETES_MINOR = "1", "37"
GIT_VERSION = "v1.37.0-earmark"

JSON = b"application/json"
_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_CATEGORIES = {"Pod": ["all"]}


@dataclass(frozen=True, slots=True)
class Document:
    """An answer and its media type."""

    body: bytes
    media_type: bytes = JSON


def document(path: str, accept: str) -> Document | None:
    """Return what stands at a path; None if nothing does."""
    path = path.rstrip("/") or "/"
    if path in ("/readyz", "/livez", "/healthz"):
        return Document(b"ok", b"text/plain; charset=utf-8")
    if path in ("/api", "/apis") and (version := _aggregated(accept)):
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return Document(_aggregated_document(path, version), media.encode())
    if path == "/openapi/v2":
        body_v2, media = openapi2.document(accept)
        return Document(body_v2, media.encode())
    body = openapi.document(path) if path.startswith("/openapi/v3") else _documents().get(path)
    return None if body is None else Document(body)


def _aggregated(accept: str) -> str:
    """Return the version of the aggregated form that a client takes, "" if it takes none."""
    for part in accept.split(","):
        fields = {item.strip() for item in part.split(";")}
        if "as=APIGroupDiscoveryList" in fields and "g=apidiscovery.k8s.io" in fields and "application/json" in fields:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in fields:
                    return version
    return ""


@lru_cache(maxsize=1)
def _documents() -> dict[str, bytes]:
    documents: dict[str, Any] = {
        "/version": {
            "major": KUBERNETES_MAJOR,
            "minor": KUBERNETES_MINOR,
            "gitVersion": GIT_VERSION,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "",
        },
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(group, version) for group, version in PUBLISHED if group],
        },
    }
    for (group, version), resources in PUBLISHED.items():
        base = f"/apis/{group}/{version}" if group else f"/api/{version}"
        documents[base] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [entry for resource in resources.values() for entry in _entries(resource)],
        }
        if group:
            documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, version)}
    documents["/"] = {"paths": sorted([*documents, "/healthz", "/livez", "/readyz", "/openapi/v2", "/openapi/v3"])}
    return {path: _encode(data) for path, data in documents.items()}


def _verbs(resource: Resource) -> list[str]:
    return ["create"] if resource in REVIEWS else _VERBS


def _group(group: str, version: str) -> dict[str, Any]:
    entry = {"groupVersion": f"{group}/{version}", "version": version}
    return {"name": group, "versions": [entry], "preferredVersion": entry}


def _entries(resource: Resource) -> list[dict[str, Any]]:
    entry: dict[str, Any] = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.kind in _CATEGORIES:
        entry["categories"] = _CATEGORIES[resource.kind]
    entries = [entry]
    for subresource in resource.subresources:
        kind, verbs = _subresource(resource, subresource)
        entries.append(
            {
                "name": f"{resource.plural}/{subresource}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": kind,
                "verbs": verbs,
            }
        )
        if kind == "Eviction":
            entries[-1].update({"group": "policy", "version": "v1"})
    return entries


def _subresource(resource: Resource, subresource: str) -> tuple[str, list[str]]:
    if subresource == "binding":
        return "Binding", ["create"]
    if subresource == "eviction":
        return "Eviction", ["create"]
    return resource.kind, ["get", "patch", "update"]


@lru_cache(maxsize=8)
def _aggregated_document(path: str, version: str) -> bytes:
    items = []
    for (group, group_version), resources in PUBLISHED.items():
        if bool(group) is not (path == "/apis"):
            continue
        items.append(
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [
                    {
                        "version": group_version,
                        "resources": [
                            _aggregated_resource(resource, group, group_version) for resource in resources.values()
                        ],
                        "freshness": "Current",
                    }
                ],
            }
        )
    return _encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }
    )


def _aggregated_resource(resource: Resource, group: str, version: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": group, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.kind in _CATEGORIES:
        entry["categories"] = _CATEGORIES[resource.kind]
    subresources = []
    for subresource in resource.subresources:
        kind, verbs = _subresource(resource, subresource)
        of_group, of_version = ("policy", "v1") if kind == "Eviction" else (group, version)
        subresources.append(
            {
                "subresource": subresource,
                "responseKind": {"group": of_group, "version": of_version, "kind": kind},
                "verbs": verbs,
            }
        )
    if subresources:
        entry["subresources"] = subresources
    return entry
