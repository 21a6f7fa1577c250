"""What a request says beyond its path: query, headers, body. Reading it refuses whatever cannot be meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from earmark.apiserver import errors, protobuf
from earmark.apiserver.errors import StatusError
from earmark.apiserver.registry import DeleteOptions, Registry, WriteOptions
from earmark.kube.api import PatchType
from earmark.kube.manifests import ManifestError, load_documents

LARGEST_BODY_BYTES = 3 * 1024 * 1024
_MOST_QUERY_FIELDS = 100
_LONGEST_MANAGER = 128
_JSON = ("", "application/json")
_YAML = ("application/yaml", "text/yaml")
PATCH_TYPES = {patch_type.value: patch_type for patch_type in PatchType}
APPLY_PATCH = "application/apply-patch+yaml"

_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class Query:
    """The fields of a query string."""

    fields: dict[str, str]

    def text(self, name: str) -> str:
        """Return a field, "" if it is not there."""
        return self.fields.get(name, "")

    def flag(self, name: str) -> bool:
        """Return a boolean field. Kubernetes takes any text but false and 0 for true."""
        value = self.fields.get(name)
        return value is not None and value.lower() not in ("false", "0")

    def number(self, name: str, default: int | None = None) -> int | None:
        """Return a whole number."""
        value = self.fields.get(name, "")
        if not value:
            return default
        if not (value.isascii() and value.lstrip("-").isdigit()) or len(value) > 18:
            raise errors.bad_request(f'strconv.ParseInt: parsing "{value[:40]}": invalid syntax ({name})')
        return int(value)


def read_query(raw: bytes) -> Query:
    """Read a query string; of a field that is there twice the first counts, as in Kubernetes."""
    if not raw:
        return Query({})
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_QUERY_FIELDS)
    except ValueError as error:
        raise errors.bad_request(f"invalid query: {error}") from error
    fields: dict[str, str] = {}
    for key, value in pairs:
        fields.setdefault(key, value)
    return Query(fields)


def media_type(content_type: bytes) -> str:
    """Return a Content-Type without its parameters."""
    return content_type.decode("latin-1").split(";", 1)[0].strip().lower()


def read_body(body: bytes, content_type: str) -> Any:
    """Read a body in JSON, YAML or Kubernetes' protobuf."""
    if content_type in _JSON:
        return _read_json(body)
    if content_type in _YAML:
        return _read_yaml(body)
    if content_type == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(body)
        except protobuf.ProtobufError as error:
            raise errors.bad_request(f"the body of the request is not valid protobuf: {error}") from error
    raise errors.unsupported_media_type(("application/json", "application/yaml", protobuf.MEDIA_TYPE))


def _read_json(body: bytes) -> Any:
    if not body:
        raise errors.bad_request("the body of the request is empty")
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the body of the request is not valid JSON: {error}") from error
    except RecursionError as error:
        raise errors.bad_request("the body of the request is nested too deeply") from error


def _read_yaml(body: bytes) -> Any:
    try:
        documents = load_documents(body.decode("utf-8"), "body")
    except (ManifestError, UnicodeDecodeError) as error:
        raise errors.bad_request(f"the body of the request is not valid YAML: {error}") from error
    if len(documents) != 1:
        raise errors.bad_request(f"the body of the request has {len(documents)} YAML documents, not one")
    return documents[0].data


def read_applied(query: Query, body: bytes) -> Any:
    """Read the body of a server-side apply."""
    if not query.text("fieldManager"):
        cause = errors.required("fieldManager", "is required for apply patch")
        raise StatusError(
            422, "Invalid", f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {cause.message}', causes=[cause]
        )
    data = _read_yaml(body)
    for key in ("apiVersion", "kind"):
        if not isinstance(data, dict) or not isinstance(data.get(key), str):
            raise errors.bad_request(f"error decoding YAML: Object '{key}' is missing")
    return data


def read_patch(body: bytes, content_type: str) -> tuple[Any, PatchType]:
    """Read a patch."""
    patch_type = PATCH_TYPES.get(content_type)
    if patch_type is None:
        raise errors.unsupported_media_type((*PATCH_TYPES, APPLY_PATCH))
    return _read_json(body), patch_type


def write_options(query: Query, user_agent: str, warnings: list[str]) -> WriteOptions:
    """Return how a write is to be done; warnings are collected in `warnings`."""
    manager = query.text("fieldManager") or user_agent.split("/", 1)[0][:_LONGEST_MANAGER] or "unknown"
    if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
        cause = errors.invalid("fieldManager", manager[:_LONGEST_MANAGER], "must be at most 128 printable characters")
        raise StatusError(422, "Invalid", f"fieldManager: {cause.message}", causes=[cause])
    validation = query.text("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise _invalid_option("fieldValidation", validation, ("Ignore", "Strict", "Warn"))
    return WriteOptions(
        dry_run=_dry_run(query.text("dryRun")),
        strict=validation == "Strict",
        warnings=warnings if validation == "Warn" else None,
        manager=manager,
    )


def _dry_run(value: str) -> bool:
    if value not in ("", "All"):
        raise _invalid_option("dryRun", value, ("All",))
    return value == "All"


def _invalid_option(name: str, value: str, known: tuple[str, ...]) -> StatusError:
    cause = errors.not_supported(name, value, known)
    return StatusError(422, "Invalid", f"{name}: {cause.message}", causes=[cause])


def delete_options(registry: Registry, query: Query, body: bytes, content_type: str) -> DeleteOptions:
    """Return how a deletion is to be done: from the body if there is one, else from the query."""
    if not body:
        return DeleteOptions(
            grace_seconds=query.number("gracePeriodSeconds"), dry_run=_dry_run(query.text("dryRun"))
        )  # fmt: skip
    data = read_body(body, content_type)
    if not isinstance(data, dict):
        raise errors.bad_request("the body of the request is not a DeleteOptions")
    if data.get("kind", "DeleteOptions") not in ("DeleteOptions", ""):
        raise errors.bad_request(f"the body of the request is a {data['kind']!r}, not a DeleteOptions")
    options = registry.read_as("DeleteOptions", data, WriteOptions())
    dry_run = options.get("dryRun", [])
    conditions = options.get("preconditions", {})
    return DeleteOptions(
        uid=conditions.get("uid", ""),
        resource_version=conditions.get("resourceVersion", ""),
        grace_seconds=options.get("gracePeriodSeconds", query.number("gracePeriodSeconds")),
        dry_run=_dry_run(dry_run[0] if dry_run else query.text("dryRun")),
    )
