"""Writes schema.json: the fields and types of the served kinds, taken from lightkube-models.

Run it as `python -m earmark.apiserver.schemagen` after an update of lightkube-models. The file is committed, so that
the server neither imports a few hundred classes at its start nor changes its mind with a library's version.

With the folders of the Go modules k8s.io/api and k8s.io/apimachinery as arguments it also writes protobuf.json: the
field numbers by which Go clients encode the same types, read from the modules' generated.proto files.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOTS = {
    "Namespace": "core_v1.Namespace",
    "Node": "core_v1.Node",
    "Pod": "core_v1.Pod",
    "Binding": "core_v1.Binding",
    "CoreEvent": "core_v1.Event",
    "PriorityClass": "scheduling_v1.PriorityClass",
    "Event": "events_v1.Event",
    "PodDisruptionBudget": "policy_v1.PodDisruptionBudget",
    "Eviction": "policy_v1.Eviction",
    "Lease": "coordination_v1.Lease",
    "DeviceClass": "resource_v1.DeviceClass",
    "ResourceSlice": "resource_v1.ResourceSlice",
    "ResourceClaim": "resource_v1.ResourceClaim",
    "ResourceClaimTemplate": "resource_v1.ResourceClaimTemplate",
    "DeviceTaintRule": "resource_v1.DeviceTaintRule",
    "DeleteOptions": "meta_v1.DeleteOptions",
    "SelfSubjectAccessReview": "authorization_v1.SelfSubjectAccessReview",
    "SelfSubjectRulesReview": "authorization_v1.SelfSubjectRulesReview",
    "SelfSubjectReview": "authentication_v1.SelfSubjectReview",
}

_SCALARS = {
    "str": "string",
    "bool": "bool",
    "int": "int",
    "float": "float",
    "resource.Quantity": "quantity",
    "util_intstr.IntOrString": "intstr",
    "meta_v1.Time": "time",
    "meta_v1.MicroTime": "microtime",
    "runtime.RawExtension": "raw",
    "meta_v1.FieldsV1": "raw",
}

# lightkube-models does not say what a map holds: these are not maps of strings.
_MAPS = {
    "authentication_v1.UserInfo.extra": "raw",
    "resource_v1.CapacityRequirements.requests": "quantity",
    "resource_v1.CounterSet.counters": "resource_v1.Counter",
    "resource_v1.Device.attributes": "resource_v1.DeviceAttribute",
    "resource_v1.Device.capacity": "resource_v1.DeviceCapacity",
    "resource_v1.Device.nodeAllocatableResources": "raw",
    "resource_v1.DeviceCounterConsumption.counters": "resource_v1.Counter",
    "resource_v1.DeviceRequestAllocationResult.consumedCapacity": "quantity",
    "core_v1.ContainerStatus.allocatedResources": "quantity",
    "core_v1.NodeStatus.allocatable": "quantity",
    "core_v1.NodeStatus.capacity": "quantity",
    "core_v1.PodSpec.overhead": "quantity",
    "core_v1.PodStatus.allocatedResources": "quantity",
    "core_v1.ResourceRequirements.limits": "quantity",
    "core_v1.ResourceRequirements.requests": "quantity",
    "core_v1.VolumeResourceRequirements.limits": "quantity",
    "core_v1.VolumeResourceRequirements.requests": "quantity",
    "policy_v1.PodDisruptionBudgetStatus.disruptedPods": "time",
}


def generate() -> dict[str, Any]:
    """Return {"roots": {kind: type}, "types": {type: {"fields": {name: type}, "required": [name]}}}.

    Types are text: a scalar, a type's name, "[]" or "{}" before the type of the elements.
    """
    types: dict[str, Any] = {}
    pending = sorted(set(ROOTS.values()))
    while pending:
        name = pending.pop()
        if name in types:
            continue
        module_name, class_name = name.split(".")
        module = importlib.import_module(f"lightkube.models.{module_name}")
        fields: dict[str, str] = {}
        required: list[str] = []
        struct = getattr(module, class_name)
        names = struct.__struct_fields__
        # Defaults belong to the last fields.
        first_optional = len(names) - len(struct.__struct_defaults__)
        for index, (field, json_name) in enumerate(zip(names, struct.__struct_encode_fields__, strict=True)):
            text = _type(str(struct.__annotations__[field]), module_name, f"{name}.{json_name}")
            fields[json_name] = text
            if index < first_optional:
                required.append(json_name)
            element = text.removeprefix("[]").removeprefix("{}")
            if "." in element:
                pending.append(element)
        types[name] = {"fields": dict(sorted(fields.items())), "required": sorted(required)}
    return {"roots": ROOTS, "types": dict(sorted(types.items()))}


def _type(annotation: str, module: str, where: str) -> str:
    annotation = annotation.strip("'\"")
    if found := re.fullmatch(r"Optional\[(.*)\]", annotation):
        annotation = found.group(1)
    if found := re.fullmatch(r"List\[(.*)\]", annotation):
        return "[]" + _type(found.group(1), module, where)
    if annotation in ("dict", "Dict"):
        return "{}" + _MAPS.get(where, "string")
    for candidate in (annotation, f"{module}.{annotation}"):
        if candidate in _SCALARS:
            return _SCALARS[candidate]
    return annotation if "." in annotation else f"{module}.{annotation}"


def render() -> str:
    """Return the text of schema.json."""
    return json.dumps(generate(), indent=1, sort_keys=True) + "\n"


_MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(?:optional|repeated|required|map)\s*(<[^>]*>|[\w.]+)\s+(\w+) = (\d+);", re.MULTILINE)


def numbers(api: Path, machinery: Path) -> dict[str, dict[str, int | list[int]]]:
    """Return the protobuf field numbers of all types of the schema.

    A pair of numbers stands for a field of an embedded message, which JSON has beside the others. Raises ValueError for
    a field that the modules do not know: they then belong to another release.
    """
    found: dict[str, dict[str, int | list[int]]] = {}
    for name, info in generate()["types"].items():
        module, message = name.split(".")
        group, version = module.split("_")
        folder = machinery / "pkg/apis/meta" if group == "meta" else api / group
        text = (folder / version / "generated.proto").read_text(encoding="utf-8")
        bodies = dict(_MESSAGE.findall(text))
        fields: dict[str, int | list[int]] = {}
        for inner_type, field, number in _FIELD.findall(bodies[message]):
            if field in info["fields"]:
                fields[field] = int(number)
                continue
            for _, embedded, inner in _FIELD.findall(bodies.get(inner_type, "")):
                fields.setdefault(embedded, [int(number), int(inner)])
        names = [field for field in info["fields"] if field not in ("apiVersion", "kind") or field in fields]
        if missing := [field for field in names if field not in fields]:
            raise ValueError(f"{name}: no numbers for {', '.join(missing)}")
        found[name] = {field: fields[field] for field in names}
    return found


def main() -> None:
    """Write schema.json, and protobuf.json where the modules are named, beside this module."""
    path = Path(__file__).with_name("schema.json")
    path.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")
    if len(sys.argv) == 3:
        path = Path(__file__).with_name("protobuf.json")
        found = numbers(Path(sys.argv[1]), Path(sys.argv[2]))
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
