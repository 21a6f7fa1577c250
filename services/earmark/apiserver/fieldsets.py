"""Sets of fields of an object, as server-side apply speaks of them: which there are, and how two objects merge. Pure.

A field is a path of elements in the notation of FieldsV1: `f:NAME` for a field or a key of a map, `k:{...}` for an
element of a list with keys, `v:VALUE` for an element of a set. Atomic lists and structs are one field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from earmark.apiserver.patches import MERGE_KEYS, MERGED_SETS
from earmark.apiserver.schema import Schema

Data = dict[str, Any]
Path = tuple[str, ...]

# Where server-side apply has other keys than strategic merge patches, or keys where those have none.
_KEYS: dict[str, tuple[str, ...]] = {
    **{where: (key,) for where, key in MERGE_KEYS.items()},
    "core_v1.Container.ports": ("containerPort", "protocol"),
    "core_v1.PodSpec.topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resource_v1.ResourceClaimStatus.devices": ("driver", "pool", "device", "shareID"),
    "resource_v1.AllocatedDeviceStatus.conditions": ("type",),
}
# A key that an element leaves out counts as its default.
_KEY_DEFAULTS = {"protocol": "TCP"}
_OPTIONAL_KEYS = ("shareID",)

_ATOMIC_STRUCTS = frozenset(
    {
        "meta_v1.LabelSelector",
        "core_v1.NodeSelector",
        "core_v1.NodeSelectorTerm",
        "core_v1.ObjectReference",
        "core_v1.SecretKeySelector",
        "core_v1.ConfigMapKeySelector",
        "core_v1.ObjectFieldSelector",
        "core_v1.ResourceFieldSelector",
        "core_v1.LocalObjectReference",
        "core_v1.TypedLocalObjectReference",
    }
)
_ATOMIC_FIELDS = frozenset({"core_v1.PodSpec.nodeSelector"})


class FieldSetError(ValueError):
    """An element of a list with keys has no key, or the same one as another."""


def _is_struct(schema: Schema, text: str) -> bool:
    return text in schema.types and text not in _ATOMIC_STRUCTS


def _element(keys: tuple[str, ...], item: Any, where: str) -> str:
    """Return the path element of a list's element."""
    values = {}
    for key in keys:
        value = item.get(key, _KEY_DEFAULTS.get(key)) if isinstance(item, dict) else None
        if value is None:
            if key in _OPTIONAL_KEYS:
                continue
            raise FieldSetError(f"{where}: an element has no {key}, which is a key of this list")
        values[key] = value
    return "k:" + json.dumps(values, sort_keys=True, separators=(",", ":"))


def _children(schema: Schema, owner: str, name: str, text: str, value: Any) -> list[tuple[str, str, str, Any]] | None:
    """Return what a value consists of as (path element, owner type, field type, value); None if it is one field."""
    where = f"{owner}.{name}"
    if where in _ATOMIC_FIELDS:
        return None
    if text.startswith("[]") and isinstance(value, list):
        if where in _KEYS:
            found = [(_element(_KEYS[where], item, where), text[2:], text[2:], item) for item in value]
        elif where in MERGED_SETS:
            found = [(f"v:{json.dumps(item)}", "", "string", item) for item in value]
        else:
            return None
        if len({entry[0] for entry in found}) != len(found):
            raise FieldSetError(f"{where}: two elements have the same key")
        return found
    if text.startswith("{}") and isinstance(value, dict):
        return [(f"f:{key}", text[2:], text[2:], item) for key, item in value.items()]
    if _is_struct(schema, text) and isinstance(value, dict):
        fields = schema.types[text]["fields"]
        return [(f"f:{key}", text, fields.get(key, "raw"), item) for key, item in value.items()]
    return None


def leaves(schema: Schema, type_name: str, data: Data) -> dict[Path, Any]:
    """Return all fields of an object of a type with their values.

    An element of a list with keys is a field itself (its value is None here) beside the fields in it.
    """
    found: dict[Path, Any] = {}

    def walk(path: Path, owner: str, name: str, text: str, value: Any) -> None:
        children = _children(schema, owner, name, text, value)
        if path and path[-1].startswith("k:"):
            found[path] = None
        if children is None or (not children and not (path and path[-1].startswith("k:"))):
            found[path] = value
            return
        for element, child_owner, child_text, child in children:
            child_name = element[2:] if element.startswith("f:") else ""
            walk((*path, element), child_owner, child_name, child_text, child)

    for key, value in data.items():
        text = schema.types[type_name]["fields"].get(key, "raw")
        walk((f"f:{key}",), type_name, key, text, value)
    return found


def merged(schema: Schema, type_name: str, live: Data, applied: Data) -> Data:
    """Return the live object with what is applied put into it."""
    fields = schema.types[type_name]["fields"]
    result = dict(live)
    for key, value in applied.items():
        text = fields.get(key, "raw")
        result[key] = _merge(schema, type_name, key, text, live.get(key), value)
    return result


def _merge(schema: Schema, owner: str, name: str, text: str, live: Any, applied: Any) -> Any:
    where = f"{owner}.{name}"
    if live is None or where in _ATOMIC_FIELDS or type(live) is not type(applied):
        return applied
    if text.startswith("[]") and where in MERGED_SETS:
        # The elements are texts.
        known = set(live)
        return [*live, *(item for item in applied if item not in known)]
    if text.startswith("[]") and where in _KEYS:
        result = list(live)
        at = {_element(_KEYS[where], item, where): index for index, item in enumerate(live)}
        for item in applied:
            index = at.get(_element(_KEYS[where], item, where))
            if index is None:
                result.append(item)
            else:
                result[index] = _merge(schema, text[2:], "", text[2:], live[index], item)
        return result
    if text.startswith("{}") and isinstance(applied, dict):
        return {
            **live,
            **{key: _merge(schema, text[2:], key, text[2:], live.get(key), item) for key, item in applied.items()},
        }
    if _is_struct(schema, text) and isinstance(applied, dict):
        return merged(schema, text, live, applied)
    return applied


def without(schema: Schema, type_name: str, data: Data, removed: Iterable[Path]) -> Data:
    """Return the object without some of its fields; what they leave empty stays."""
    return _without(schema, "", "", type_name, data, {path for path in removed if path}) if removed else data


def _without(schema: Schema, owner: str, name: str, text: str, value: Any, removed: set[Path]) -> Any:
    by_element: dict[str, set[Path]] = {}
    for path in removed:
        by_element.setdefault(path[0], set()).add(path[1:])
    children = _children(schema, owner, name, text, value)
    if children is None:
        return value
    kept: list[tuple[str, Any]] = []
    for element, child_owner, child_text, child in children:
        inner = by_element.get(element, set())
        if () in inner:
            continue
        child_name = element[2:] if element.startswith("f:") else ""
        kept.append((element, _without(schema, child_owner, child_name, child_text, child, inner) if inner else child))
    if isinstance(value, list):
        return [item for _, item in kept]
    return {element[2:]: item for element, item in kept}


# --- FieldsV1 --------------------------------------------------------------------------------------------------------


def to_fields(paths: Iterable[Path]) -> Data:
    """Return a set of fields as FieldsV1."""
    root: Data = {}
    for path in sorted(paths):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return _compact(root)


def _compact(node: Data) -> Data:
    """Leave out the dot where a node has nothing else."""
    if list(node) == ["."]:
        return {}
    return {element: (_compact(child) if element != "." else {}) for element, child in sorted(node.items())}


def from_fields(fields: Any) -> set[Path]:
    """Read FieldsV1; what is none gives an empty set."""
    return set(_paths(fields, ())) if isinstance(fields, dict) else set()


def _paths(node: Data, path: Path) -> Iterator[Path]:
    if path and (not node or "." in node):
        yield path
    for element, child in node.items():
        if element != "." and isinstance(child, dict):
            yield from _paths(child, (*path, element))


def shown(path: Path) -> str:
    """Return a field as messages name it: .spec.containers[name="main"].image."""
    text = ""
    for element in path:
        kind, value = element[:2], element[2:]
        if kind == "f:":
            text += f".{value}"
        elif kind == "k:":
            pairs = ",".join(f"{key}={json.dumps(item)}" for key, item in json.loads(value).items())
            text += f"[{pairs}]"
        else:
            text += f"[={value}]"
    return text
