"""Reads Kubernetes' protobuf bodies, which typed Go clients (kubectl create, for one) send for built-in kinds.

Answers are JSON, which the same clients take. The numbers of the fields are in protobuf.json, their types in
schema.json (see schemagen); the result is the JSON data of the object, to be checked like any other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Any

import msgspec

from earmark.apiserver.schema import Schema, kubernetes

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DEEPEST = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProtobufError(ValueError):
    """A body is no Kubernetes protobuf."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the object of a body as JSON data, with apiVersion and kind.

    Raises ProtobufError, also for kinds that are not served.
    """
    if not body.startswith(_MAGIC):
        raise ProtobufError("it does not begin as Kubernetes protobuf does")
    unknown = _collect(body[len(_MAGIC) :])
    identity = _collect(_last_bytes(unknown, 1))
    api_version, kind = _text(_last_bytes(identity, 1)), _text(_last_bytes(identity, 2))
    if _last_bytes(unknown, 3):
        raise ProtobufError("its content is encoded in a way that is not supported")
    raw = _last_bytes(unknown, 2)
    if _text(_last_bytes(unknown, 4)) == "application/json":
        data = _json(raw)
        if not isinstance(data, dict):
            raise ProtobufError("its content is not an object")
    else:
        schema = kubernetes()
        root = schema.roots.get("CoreEvent" if (api_version, kind) == ("v1", "Event") else kind)
        if root is None:
            raise ProtobufError(f"the kind {kind!r} is not served")
        data = _Reader(schema).struct(root, raw, 0)
    # Go clients leave both out of the content.
    return {**data, "apiVersion": api_version, "kind": kind}


@lru_cache(maxsize=1)
def _numbers() -> dict[str, dict[str, Any]]:
    text = resources.files("earmark.apiserver").joinpath("protobuf.json").read_text(encoding="utf-8")
    numbers: dict[str, dict[str, Any]] = json.loads(text)
    return numbers


class _Reader:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def struct(self, type_name: str, body: bytes, depth: int) -> dict[str, Any]:
        """Read a message as a type of the schema."""
        if depth > _DEEPEST:
            raise ProtobufError("it is nested too deeply")
        found = _collect(body)
        embedded: dict[int, dict[int, list[Any]]] = {}
        result: dict[str, Any] = {}
        for name, number in _numbers()[type_name].items():
            if isinstance(number, list):
                outer, inner = number
                if outer not in embedded:
                    embedded[outer] = _collect(_last_bytes(found, outer))
                values = embedded[outer].get(inner)
            else:
                values = found.get(number)
            if not values:
                continue
            value = self._field(self._schema.types[type_name]["fields"][name], values, depth)
            # Go writes every text that is no pointer, also the empty one.
            if value is not None and value != "":
                result[name] = value
        return result

    def _field(self, text: str, values: list[Any], depth: int) -> Any:
        if text.startswith("[]"):
            element = text[2:]
            if element in ("int", "bool"):
                values = [item for value in values for item in _packed(value)]
            return [self._one(element, value, depth) for value in values]
        if text.startswith("{}"):
            entries = [_collect(_bytes(value)) for value in values]
            return {
                _text(_last_bytes(entry, 1)): self._one(text[2:], entry.get(2, [b""])[-1], depth) for entry in entries
            }
        return self._one(text, values[-1], depth)

    def _one(self, text: str, value: Any, depth: int) -> Any:
        match text:
            case "string":
                return _text(_bytes(value))
            case "bool":
                return _number(value) != 0
            case "int":
                return _signed(_number(value))
            case "float":
                return _double(value)
            case "quantity":
                return _text(_last_bytes(_collect(_bytes(value)), 1))
            case "time" | "microtime":
                return _time(_collect(_bytes(value)))
            case "intstr":
                fields = _collect(_bytes(value))
                if fields.get(1, [0])[-1] == 1:
                    return _text(_last_bytes(fields, 3))
                return _signed(_number(fields.get(2, [0])[-1]))
            case "raw":
                raw = _last_bytes(_collect(_bytes(value)), 1)
                return _json(raw) if raw else None
            case _:
                return self.struct(text, _bytes(value), depth + 1)


def _fields(body: bytes) -> Iterator[tuple[int, Any]]:
    position, end = 0, len(body)
    while position < end:
        tag, position = _varint(body, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(body, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(body, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"unknown wire type {wire}")
        if position + size > end:
            raise ProtobufError("it ends in the middle of a field")
        yield number, body[position : position + size]
        position += size


def _collect(body: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for number, value in _fields(body):
        found.setdefault(number, []).append(value)
    return found


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= len(body):
            raise ProtobufError("it ends in the middle of a number")
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
    raise ProtobufError("a number is too long")


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _packed(value: Any) -> list[int]:
    if isinstance(value, int):
        return [value]
    numbers, position = [], 0
    while position < len(value):
        number, position = _varint(value, position)
        numbers.append(number)
    return numbers


def _number(value: Any) -> int:
    if not isinstance(value, int):
        raise ProtobufError("a field is not the number that it should be")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise ProtobufError("a field is a number and should not be one")
    return value


def _last_bytes(fields: dict[int, list[Any]], number: int) -> bytes:
    return _bytes(fields.get(number, [b""])[-1])


def _double(value: Any) -> float:
    if not isinstance(value, bytes) or len(value) != 8:
        raise ProtobufError("a field is not the number that it should be")
    return float(struct.unpack("<d", value)[0])


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtobufError("a text is not UTF-8") from error


def _json(value: bytes) -> Any:
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtobufError(f"embedded JSON cannot be read: {error}") from error


def _time(fields: dict[int, list[Any]]) -> str | None:
    seconds = _signed(_number(fields.get(1, [0])[-1]))
    nanos = _signed(_number(fields.get(2, [0])[-1]))
    if seconds == 0 and nanos == 0:
        # Go's zero time.
        return None
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    except OverflowError as error:
        raise ProtobufError("a time is out of range") from error
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)
