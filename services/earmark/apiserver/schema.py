"""Reads JSON data as a Kubernetes type: checks the types of fields, finds unknown ones, normalises values.

Normal form, as the real API stores it: no nulls, no empty optional lists and maps, canonical quantities, times in UTC
with whole seconds (microseconds for MicroTime). What the types are is in schema.json (see schemagen).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from typing import Any

from earmark.kube.quantity import QuantityError, parse_quantity

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)
_INT64 = 2**63

Path = list[str | int]


class SchemaError(ValueError):
    """A value has the wrong type; `field` is its path."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.field = render_path(path)
        self.message = message


@dataclass(slots=True)
class Reading:
    """What one reading came across: where it is, and the paths of unknown fields."""

    path: Path = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


Reader = Callable[[Any, Reading], Any]


def render_path(path: Path) -> str:
    """Return a path as Kubernetes writes it: spec.containers[0].name."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _mismatch(value: Any, wanted: str, reading: Reading) -> SchemaError:
    return SchemaError(reading.path, f"cannot unmarshal {_json_type(value)} into a field of type {wanted}")


def _string(value: Any, reading: Reading) -> Any:
    if type(value) is not str:
        raise _mismatch(value, "string", reading)
    return value


def _bool(value: Any, reading: Reading) -> Any:
    if type(value) is not bool:
        raise _mismatch(value, "bool", reading)
    return value


def _int(value: Any, reading: Reading) -> Any:
    if type(value) is not int or not -_INT64 <= value < _INT64:
        raise _mismatch(value, "int64", reading)
    return value


def _float(value: Any, reading: Reading) -> Any:
    if type(value) not in (int, float):
        raise _mismatch(value, "float64", reading)
    return value


def _int_or_string(value: Any, reading: Reading) -> Any:
    return _string(value, reading) if isinstance(value, str) else _int(value, reading)


def _quantity(value: Any, reading: Reading) -> Any:
    if type(value) is str:
        text = value
    elif type(value) in (int, float):
        text = json.dumps(value)
    else:
        raise _mismatch(value, "Quantity", reading)
    try:
        return parse_quantity(text).canonical()
    except QuantityError as error:
        raise SchemaError(reading.path, str(error)) from error


def _moment(value: Any, reading: Reading) -> datetime:
    if type(value) is not str:
        raise _mismatch(value, "Time", reading)
    if _RFC3339.match(value) is None:
        raise SchemaError(reading.path, f"parsing time {json.dumps(value)}: not of the form 2006-01-02T15:04:05Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise SchemaError(reading.path, f"parsing time {json.dumps(value)}: {error}") from error


def _time(value: Any, reading: Reading) -> Any:
    return _moment(value, reading).strftime("%Y-%m-%dT%H:%M:%SZ").zfill(20)


def _micro_time(value: Any, reading: Reading) -> Any:
    return _moment(value, reading).strftime("%Y-%m-%dT%H:%M:%S.%fZ").zfill(27)


def _raw(value: Any, reading: Reading) -> Any:
    return value


_SCALARS: dict[str, Reader] = {
    "string": _string,
    "bool": _bool,
    "int": _int,
    "float": _float,
    "intstr": _int_or_string,
    "quantity": _quantity,
    "time": _time,
    "microtime": _micro_time,
    "raw": _raw,
}


def _list_of(element: Reader) -> Reader:
    def read(value: Any, reading: Reading) -> Any:
        if type(value) is not list:
            raise _mismatch(value, "array", reading)
        result = []
        path = reading.path
        for index, item in enumerate(value):
            path.append(index)
            if item is None:
                raise SchemaError(path, "null is not an element of this list")
            result.append(element(item, reading))
            path.pop()
        return result

    return read


def _map_of(element: Reader) -> Reader:
    def read(value: Any, reading: Reading) -> Any:
        if type(value) is not dict:
            raise _mismatch(value, "map", reading)
        result = {}
        path = reading.path
        for key, item in value.items():
            path.append(key)
            # Go decodes null as the zero value of the element.
            result[key] = element("" if item is None and element is _string else item, reading)
            path.pop()
        return result

    return read


class Schema:
    """All types; readers are built when they are first needed."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.roots: dict[str, str] = data["roots"]
        self.types: dict[str, Any] = data["types"]
        self._readers: dict[str, Reader] = dict(_SCALARS)

    def read(self, kind: str, value: Any) -> tuple[Any, list[str]]:
        """Read `value` as the kind; return its normal form and the paths of the fields that the kind does not have.

        Raises SchemaError for a value of a wrong type.
        """
        reading = Reading()
        return self.reader(self.roots[kind])(value, reading), reading.unknown

    def reader(self, type_name: str) -> Reader:
        """Return the reader of a type."""
        found = self._readers.get(type_name)
        if found is None:
            found = self._build(type_name)
            self._readers[type_name] = found
        return found

    def _build(self, type_name: str) -> Reader:
        if type_name.startswith("[]"):
            return _list_of(self.reader(type_name[2:]))
        if type_name.startswith("{}"):
            return _map_of(self.reader(type_name[2:]))
        return self._struct(type_name)

    def _struct(self, type_name: str) -> Reader:
        info = self.types[type_name]
        kept_empty = {
            name
            for name, text in info["fields"].items()
            if name in info["required"] or not text.startswith(("[]", "{}"))
        }
        fields: dict[str, Reader] = {}
        complete = False

        def read(value: Any, reading: Reading) -> Any:
            nonlocal complete
            if not complete:
                # Built at the first use: types refer to each other.
                fields.update({name: self.reader(text) for name, text in info["fields"].items()})
                complete = True
            if type(value) is not dict:
                raise _mismatch(value, type_name.split(".")[-1], reading)
            result = {}
            path = reading.path
            for name, item in value.items():
                reader = fields.get(name)
                if reader is None:
                    reading.unknown.append(render_path([*path, name]))
                    continue
                if item is None:
                    continue
                path.append(name)
                normal = reader(item, reading)
                path.pop()
                # Go leaves out empty lists and maps of optional fields, but keeps an empty struct: emptyDir: {}.
                if normal or name in kept_empty or type(normal) not in (list, dict):
                    result[name] = normal
            return result

        return read


@lru_cache(maxsize=1)
def kubernetes() -> Schema:
    """Return the types of the served kinds."""
    text = resources.files("earmark.apiserver").joinpath("schema.json").read_text(encoding="utf-8")
    return Schema(json.loads(text))
