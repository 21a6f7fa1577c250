"""The OpenAPI v2 document, which older clients read: made from the v3 documents, as JSON and as gnostic's protobuf.

Pure. kubectl asks for the protobuf form only. Its messages are those of gnostic-models' OpenAPIv2.proto; the numbers
below are the few of them that our documents need.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from earmark.apiserver import openapi

Data = dict[str, Any]

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
# Clients have two ways to spell it.
_ASKED_AS = (PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")

_VERBS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def document(accept: str) -> tuple[bytes, str]:
    """Return the document and its media type, in the form that the Accept header prefers."""
    for part in accept.split(","):
        wanted = part.split(";", 1)[0].strip()
        if wanted in _ASKED_AS:
            return _as_protobuf(), PROTOBUF
        if wanted in ("application/json", "*/*"):
            break
    return _as_json(), "application/json"


@lru_cache(maxsize=1)
def _as_json() -> bytes:
    return json.dumps(swagger(), separators=(",", ":")).encode()


@lru_cache(maxsize=1)
def _as_protobuf() -> bytes:
    return encode(swagger())


def swagger() -> Data:
    """Return the document as JSON data."""
    definitions: Data = {}
    paths: Data = {}
    for described in openapi.documents().values():
        for name, component in described["components"]["schemas"].items():
            if name not in definitions or "x-kubernetes-group-version-kind" in component:
                definitions[name] = _schema(component)
        for path, item in described["paths"].items():
            paths[path] = _path(item)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": openapi.VERSION},
        "paths": paths,
        "definitions": dict(sorted(definitions.items())),
    }


def _schema(schema: Data) -> Data:
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace("#/components/schemas/", "#/definitions/")}
    if "allOf" in schema:
        # v2 has no defaults beside references, and gives them no room.
        described = {key: value for key, value in schema.items() if key not in ("allOf", "default")}
        return {**_schema(schema["allOf"][0]), **described}
    if "oneOf" in schema:
        return {"type": "string", **{key: value for key, value in schema.items() if key != "oneOf"}}
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: _schema(value) for name, value in made["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = _schema(made[key])
    return made


def _path(item: Data) -> Data:
    return {
        key: [_parameter(value) for value in part] if key == "parameters" else _operation(part)
        for key, part in item.items()
    }


def _operation(operation: Data) -> Data:
    made = {key: value for key, value in operation.items() if key.startswith("x-")}
    parameters = [_parameter(value) for value in operation.get("parameters", ())]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        made["consumes"] = list(content)
        schema = _schema(next(iter(content.values()))["schema"])
        parameters.insert(0, {"name": "body", "in": "body", "required": True, "schema": schema})
    if parameters:
        made["parameters"] = parameters
    made["produces"] = ["application/json"]
    made["responses"] = {
        code: {
            "description": answer["description"],
            "schema": _schema(answer["content"]["application/json"]["schema"]),
        }
        for code, answer in operation["responses"].items()
    }
    return made


def _parameter(parameter: Data) -> Data:
    made = {key: value for key, value in parameter.items() if key != "schema"}
    return {**made, **parameter["schema"]}


# --- protobuf --------------------------------------------------------------------------------------------------------


def encode(document: Data) -> bytes:
    """Return a document of `swagger()` as gnostic's Document message."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_bytes(2, _named(path, _path_item(item))) for path, item in document["paths"].items())
    return (
        _text(1, document["swagger"])
        + _bytes(2, info)
        + _bytes(8, paths)
        + _bytes(9, _named_schemas(document["definitions"]))
    )


def _path_item(item: Data) -> bytes:
    message = b"".join(_bytes(number, _operation_item(item[verb])) for verb, number in _VERBS.items() if verb in item)
    return message + b"".join(_bytes(9, _parameter_item(value)) for value in item.get("parameters", ()))


def _operation_item(operation: Data) -> bytes:
    message = _texts(6, operation["produces"]) + _texts(7, operation.get("consumes", ()))
    message += b"".join(_bytes(8, _parameter_item(value)) for value in operation.get("parameters", ()))
    responses = b""
    for code, answer in operation["responses"].items():
        schema_item = _bytes(1, _schema_item(answer["schema"]))
        response = _text(1, answer["description"]) + _bytes(2, schema_item)
        responses += _bytes(1, _named(code, _bytes(1, response)))
    return message + _bytes(9, responses) + _extensions(13, operation)


def _parameter_item(parameter: Data) -> bytes:
    """Return a ParametersItem: one of body, path and query parameters, each wrapped in its own way."""
    place = parameter["in"]
    if place == "body":
        body = _text(2, parameter["name"]) + _text(3, place) + _flag(4, parameter["required"])
        return _bytes(1, _bytes(1, body + _bytes(5, _schema_item(parameter["schema"]))))
    if place == "path":
        head = _flag(1, True) + _text(2, place) + _text(4, parameter["name"]) + _text(5, parameter["type"])
        return _bytes(1, _bytes(2, _bytes(4, head + _flag(19, parameter.get("uniqueItems", False)))))
    head = _text(2, place) + _text(4, parameter["name"]) + _text(6, parameter["type"])
    return _bytes(1, _bytes(2, _bytes(3, head + _flag(20, parameter.get("uniqueItems", False)))))


def _schema_item(schema: Data) -> bytes:
    message = _text(1, schema.get("$ref", "")) + _text(2, schema.get("format", ""))
    message += _text(4, schema.get("description", "")) + _texts(19, schema.get("required", ()))
    if "additionalProperties" in schema:
        message += _bytes(21, _bytes(1, _schema_item(schema["additionalProperties"])))
    if "type" in schema:
        message += _bytes(22, _text(1, schema["type"]))
    if "items" in schema:
        message += _bytes(23, _bytes(1, _schema_item(schema["items"])))
    if schema.get("properties"):
        message += _bytes(25, _named_schemas(schema["properties"]))
    return message + _extensions(31, schema)


def _named_schemas(schemas: Data) -> bytes:
    return b"".join(_bytes(1, _named(name, _schema_item(schema))) for name, schema in schemas.items())


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _bytes(2, value)


def _extensions(number: int, data: Data) -> bytes:
    """Return the fields that begin with x- as NamedAny messages; their values are YAML, of which JSON is a part."""
    return b"".join(
        _bytes(number, _named(key, _text(2, json.dumps(value, separators=(",", ":")))))
        for key, value in data.items()
        if key.startswith("x-")
    )


def _bytes(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _text(number: int, value: str) -> bytes:
    return _bytes(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_text(number, value) for value in values)


def _flag(number: int, value: bool) -> bytes:
    return _varint(number << 3) + b"\x01" if value else b""


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
