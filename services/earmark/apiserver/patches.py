"""The three kinds of patches: RFC 6902, RFC 7386, and Kubernetes' strategic merge patch.

Pure functions over JSON data. None of them changes its arguments; results may share parts with them.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any

import msgspec

from earmark.apiserver.errors import StatusError, bad_request
from earmark.apiserver.schema import Schema

# A patch may not make the server work without bounds.
MOST_JSON_PATCH_OPERATIONS = 10_000
# Of all that one patch copies, as JSON. A handful of copies into themselves would else fill the memory.
MOST_COPIED_BYTES = 3 * 1024 * 1024

_encode = msgspec.json.Encoder().encode
_ordered_text = msgspec.json.Encoder(order="deterministic").encode


def _rejected(message: str) -> StatusError:
    return StatusError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")


# --- RFC 7386 --------------------------------------------------------------------------------------------------------


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


# --- RFC 6902 --------------------------------------------------------------------------------------------------------


def json_patch(target: Any, operations: Any) -> Any:
    """Apply a JSON patch.

    Raises StatusError: 400 for what is no JSON patch, 422 for an operation that cannot be done.
    """
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > MOST_JSON_PATCH_OPERATIONS:
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {MOST_JSON_PATCH_OPERATIONS}, got {len(operations)}",
        )
    document = copy.deepcopy(target)
    copied = 0
    for operation in operations:
        if isinstance(operation, dict) and operation.get("op") == "copy":
            copied += len(_encode(_find(document, _pointer(operation.get("from")))))
            if copied > MOST_COPIED_BYTES:
                raise _rejected(f"a JSON patch may copy {MOST_COPIED_BYTES} bytes at most")
        document = _operate(document, operation)
    return document


def _operate(document: Any, operation: Any) -> Any:
    if not isinstance(operation, dict) or not isinstance(operation.get("op"), str):
        raise bad_request("error decoding patch: an operation is an object with an op")
    path = _pointer(operation.get("path"))
    match operation["op"]:
        case "add":
            return _add(document, path, copy.deepcopy(_value(operation)))
        case "remove":
            return _remove(document, path)
        case "replace":
            _find(document, path)
            return _value(operation) if not path else _add(_remove(document, path), path, _value(operation))
        case "move":
            source = _pointer(operation.get("from"))
            moved = _find(document, source)
            if path[: len(source)] == source and path != source:
                raise _rejected("move: a value cannot be moved into itself")
            return _add(_remove(document, source), path, moved)
        case "copy":
            return _add(document, path, copy.deepcopy(_find(document, _pointer(operation.get("from")))))
        case "test":
            if not _same(_find(document, path), _value(operation)):
                raise _rejected(f"testing value {operation.get('path')} failed: test failed")
            return document
        case other:
            raise bad_request(f"error decoding patch: unexpected op {other!r}")


def _same(left: Any, right: Any) -> bool:
    # In Python true equals 1.
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise bad_request(f"error decoding patch: {operation['op']} needs a value")
    return operation["value"]


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise bad_request(f"error decoding patch: {text!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _missing(path: list[str]) -> StatusError:
    return _rejected(f"the path /{'/'.join(path)} does not exist")


def _index(items: list[Any], part: str, path: list[str], limit: int) -> int:
    if not (part.isascii() and part.isdigit()) or len(part) > 9 or int(part) >= limit:
        raise _missing(path)
    return int(part)


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part, path, len(document))]
        else:
            raise _missing(path)
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _find(document, path[:-1])
    if isinstance(parent, dict):
        parent[path[-1]] = value
    elif isinstance(parent, list):
        at = len(parent) if path[-1] == "-" else _index(parent, path[-1], path, len(parent) + 1)
        parent.insert(at, value)
    else:
        raise _missing(path)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        return None
    _find(document, path)
    parent = _find(document, path[:-1])
    if isinstance(parent, dict):
        del parent[path[-1]]
    else:
        del parent[int(path[-1])]
    return document


# --- strategic merge patch -------------------------------------------------------------------------------------------

# The lists that merge by a key of their elements, by the type and field that hold them. Lists not named are replaced.
MERGE_KEYS = {
    "core_v1.PodSpec.containers": "name",
    "core_v1.PodSpec.initContainers": "name",
    "core_v1.PodSpec.ephemeralContainers": "name",
    "core_v1.PodSpec.volumes": "name",
    "core_v1.PodSpec.imagePullSecrets": "name",
    "core_v1.PodSpec.hostAliases": "ip",
    "core_v1.PodSpec.topologySpreadConstraints": "topologyKey",
    "core_v1.PodSpec.schedulingGates": "name",
    "core_v1.PodSpec.resourceClaims": "name",
    "core_v1.Container.env": "name",
    "core_v1.Container.ports": "containerPort",
    "core_v1.Container.volumeMounts": "mountPath",
    "core_v1.Container.volumeDevices": "devicePath",
    "core_v1.PodStatus.conditions": "type",
    "core_v1.PodStatus.podIPs": "ip",
    "core_v1.PodStatus.hostIPs": "ip",
    "core_v1.PodStatus.resourceClaimStatuses": "name",
    "core_v1.NodeStatus.conditions": "type",
    "core_v1.NodeStatus.addresses": "type",
    "core_v1.NamespaceStatus.conditions": "type",
    "policy_v1.PodDisruptionBudgetStatus.conditions": "type",
    "meta_v1.ObjectMeta.ownerReferences": "uid",
    "resource_v1.ResourceClaimStatus.reservedFor": "uid",
    "resource_v1.DeviceTaintRuleStatus.conditions": "type",
}
# Lists of scalars that are merged as sets.
MERGED_SETS = frozenset({"meta_v1.ObjectMeta.finalizers", "core_v1.NodeSpec.podCIDRs"})

_DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def strategic_patch(schema: Schema, type_name: str, target: dict[str, Any], patch: Any) -> Any:
    """Apply a strategic merge patch to an object of a type.

    Raises StatusError 400 or 422 for a patch that cannot be one.
    """
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch is an object")
    return _merge_struct(schema, type_name, target, patch)


def _merge_struct(schema: Schema, type_name: str, target: Any, patch: dict[str, Any]) -> Any:
    current = dict(target) if isinstance(target, dict) else {}
    match patch.get("$patch"):
        case "delete":
            return {}
        case "replace":
            return {key: value for key, value in patch.items() if not key.startswith(_DIRECTIVES)}
        case None | "merge":
            pass
        case other:
            raise bad_request(f"unknown patch directive: {other!r}")
    if isinstance(kept := patch.get("$retainKeys"), list):
        current = {key: value for key, value in current.items() if key in kept}
    fields: dict[str, str] = schema.types[type_name]["fields"] if type_name in schema.types else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            _drop_from_set(current, key.split("/", 1)[1], value)
    for key, value in patch.items():
        if key.startswith(_DIRECTIVES):
            continue
        if value is None:
            current.pop(key, None)
            continue
        order = patch.get(f"$setElementOrder/{key}")
        current[key] = _merge_field(schema, type_name, key, fields.get(key, "raw"), current.get(key), value, order)
    for key, value in patch.items():
        name = key.removeprefix("$setElementOrder/")
        if name != key and name not in patch and isinstance(current.get(name), list):
            merge_key = MERGE_KEYS.get(f"{type_name}.{name}")
            current[name] = _ordered(current[name], current[name], value, merge_key)
    return current


def _drop_from_set(current: dict[str, Any], name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise bad_request(f"$deleteFromPrimitiveList/{name} is not a list")
    if isinstance(current.get(name), list):
        dropped = {_identity(value) for value in values}
        current[name] = [item for item in current[name] if _identity(item) not in dropped]


def _merge_field(
    schema: Schema, owner: str, name: str, field_type: str, target: Any, value: Any, order: Any
) -> Any:  # fmt: skip
    where = f"{owner}.{name}"
    if isinstance(value, list):
        current = target if isinstance(target, list) else []
        if where in MERGED_SETS:
            known = {_identity(item) for item in current}
            merged = list(current)
            for item in value:
                if _identity(item) not in known:
                    known.add(_identity(item))
                    merged.append(item)
            return _ordered(merged, value, order, None)
        if where in MERGE_KEYS:
            merged = _merge_list(schema, field_type.removeprefix("[]"), MERGE_KEYS[where], current, value, where)
            return _ordered(merged, value, order, MERGE_KEYS[where])
        return value
    if isinstance(value, dict):
        if field_type.startswith("{}"):
            return _merge_map(schema, field_type[2:], target, value)
        if field_type == "raw":
            return merge_patch(target, value)
        return _merge_struct(schema, field_type, target, value)
    return value


def _merge_map(schema: Schema, element: str, target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if patch.get("$patch") == "delete":
        return {}
    current = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            current.pop(key, None)
        elif isinstance(value, dict) and element in schema.types:
            current[key] = _merge_struct(schema, element, current.get(key), value)
        else:
            current[key] = value
    return current


def _merge_list(
    schema: Schema, element: str, merge_key: str, target: list[Any], patch: list[Any], where: str
) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    result: list[Any] = list(target)
    # Where the elements of each key are: several, where their key is not all that tells them apart (ports). What is
    # deleted leaves a gap, so that positions stay.
    places: dict[Hashable, list[int]] = {}
    for index, have in enumerate(result):
        if isinstance(have, dict):
            places.setdefault(_identity(have.get(merge_key)), []).append(index)
    for item in patch:
        if not isinstance(item, dict) or merge_key not in item:
            raise bad_request(f"map: {item!r} does not contain declared merge key: {merge_key} ({where})")
        identity = _identity(item[merge_key])
        if item.get("$patch") == "delete":
            for at in places.pop(identity, ()):
                result[at] = _GAP
        elif identity in places:
            at = places[identity][0]
            result[at] = _merge_struct(schema, element, result[at], item)
        else:
            places[identity] = [len(result)]
            result.append(_merge_struct(schema, element, None, item))
    return [item for item in result if item is not _GAP]


_GAP: Any = object()


def _identity(value: Any) -> Hashable:
    """Return what equal JSON values have in common and can be looked up by."""
    return _ordered_text(value) if isinstance(value, dict | list) else value


def _ordered(merged: list[Any], patched: list[Any], order: Any, merge_key: str | None) -> list[Any]:
    """Put the elements that `order` names into its order; the others stay before what followed them."""
    if not isinstance(order, list):
        return merged

    def identity(item: Any) -> Hashable:
        return _identity(item.get(merge_key) if merge_key is not None and isinstance(item, dict) else item)

    places: dict[Hashable, int] = {}
    for position, item in enumerate(order):
        places.setdefault(identity(item), position)
    named = sorted((item for item in merged if identity(item) in places), key=lambda item: places[identity(item)])
    upcoming = iter(named)
    return [next(upcoming) if identity(item) in places else item for item in merged]
