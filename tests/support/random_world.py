"""Random clusters and pods for random scenarios: manifests as plain values.

What happens to them is support.random_scenarios'. What each kind of device is for:

accel: exclusive devices of a node; memory: banks that are shared by capacity; part: a device that is offered whole or in
two halves (counters); fabric: has to be attached before a pod is bound; net: reachable from several nodes, so that no
preemption may count on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

Manifest = dict[str, Any]

PRIORITIES = {"batch": 10, "normal": 100, "patient": 500, "urgent": 1000, "critical": 5000}
# Pods of this class preempt nobody.
PATIENT = "patient"
ZONES = ("left", "right")
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}
TOLERATION = {"key": "team", "operator": "Equal", "value": "x", "effect": "NoSchedule"}

KINDS = ("accel", "memory", "part", "fabric", "net")
# How often a kind of device is there.
_THERE = {"accel": 0.9, "memory": 0.45, "part": 0.35, "fabric": 0.25, "net": 0.3}


def _request(name: str, kind: str, selector: str = "", **more: Any) -> Manifest:
    if selector:
        more["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": name, "exactly": {"deviceClassName": kind, **more}}


def _option(name: str, kind: str, **more: Any) -> Manifest:
    return {"name": name, "deviceClassName": kind, **more}


MODEL_A = 'device.attributes["accel.example.org"].model == "a"'
HALF = 'device.attributes["part.example.org"].size == 1'
WHOLE = 'device.attributes["part.example.org"].size == 2'

# Requests by the name of their template: which kinds of devices they need, and the requests.
TEMPLATES: dict[str, tuple[tuple[str, ...], list[Manifest]]] = {
    "accel-1": (("accel",), [_request("a", "accel")]),
    "accel-2": (("accel",), [_request("a", "accel", count=2)]),
    "accel-a": (("accel",), [_request("a", "accel", MODEL_A)]),
    "accel-two-requests": (("accel",), [_request("a", "accel", MODEL_A), _request("b", "accel")]),
    "accel-2-or-1": (
        ("accel",),
        [{"name": "a", "firstAvailable": [_option("two", "accel", count=2), _option("one", "accel")]}],
    ),
    "memory-16": (("memory",), [_request("a", "memory", capacity={"requests": {"bytes": "16Gi"}})]),
    "memory-24": (("memory",), [_request("a", "memory", capacity={"requests": {"bytes": "24Gi"}})]),
    "memory-64": (("memory",), [_request("a", "memory", capacity={"requests": {"bytes": "64Gi"}})]),
    "memory-default": (("memory",), [_request("a", "memory")]),
    "half": (("part",), [_request("a", "part", HALF)]),
    "whole": (("part",), [_request("a", "part", WHOLE)]),
    "fabric-1": (("fabric",), [_request("a", "fabric")]),
    "net-1": (("net",), [_request("a", "net")]),
    "accel-and-net": (("accel", "net"), [_request("a", "accel"), _request("b", "net")]),
    "accel-and-memory": (
        ("accel", "memory"),
        [_request("a", "accel"), _request("b", "memory", capacity={"requests": {"bytes": "16Gi"}})],
    ),
    "accel-or-half": (
        ("accel", "part"),
        [{"name": "a", "firstAvailable": [_option("one", "accel"), _option("half", "part")]}],
    ),
}  # fmt: skip


@dataclass(frozen=True)
class World:
    """What exists before the schedulers start."""

    nodes: tuple[str, ...]
    kinds: tuple[str, ...]
    objects: tuple[Manifest, ...]
    templates: tuple[str, ...]
    shared_claims: tuple[str, ...]


def random_world(random: Random) -> World:
    """Return a cluster without pods."""
    nodes = tuple(f"n{number}" for number in range(1, random.choice((1, 1, 2, 2, 3, 4)) + 1))
    kinds = tuple(kind for kind in KINDS if random.random() < _THERE[kind]) or ("accel",)
    templates = tuple(name for name, (needed, _) in TEMPLATES.items() if set(needed) <= set(kinds))
    objects: list[Manifest] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "preemptionPolicy": "Never" if name == PATIENT else "PreemptLowerPriority",
        }
        for name, value in PRIORITIES.items()
    ]
    for kind in kinds:
        selector = {"cel": {"expression": f'device.driver == "{kind}.example.org"'}}
        objects.append(_resource("DeviceClass", kind, {"selectors": [selector]}))
    for name in templates:
        spec = {"spec": {"devices": {"requests": TEMPLATES[name][1]}}}
        objects.append(_resource("ResourceClaimTemplate", name, spec))
    objects += [node(random, name) for name in nodes]
    objects += slices(random, kinds, nodes)
    shared = []
    for number in range(random.choice((0, 0, 1, 2))):
        template = random.choice(templates)
        shared.append(f"team{number + 1}")
        objects.append(_resource("ResourceClaim", shared[-1], {"devices": {"requests": TEMPLATES[template][1]}}))
    for number in range(random.choice((0, 0, 1, 1, 2))):
        objects.append(budget(random, f"budget{number + 1}"))
    return World(nodes, kinds, tuple(objects), templates, tuple(shared))


def _resource(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def node(random: Random, name: str) -> Manifest:
    """Return a node; a few are tainted or cordoned."""
    room = {"cpu": str(random.choice((2, 4, 4, 8))), "memory": "16Gi", "pods": "110"}
    spec: Manifest = {}
    if random.random() < 0.08:
        spec["taints"] = [TAINT]
    if random.random() < 0.03:
        spec["unschedulable"] = True
    labels = {"kubernetes.io/hostname": name, "zone": random.choice(ZONES)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": room, "allocatable": room},
    }


def slices(random: Random, kinds: Sequence[str], nodes: Sequence[str], generation: int = 1) -> Iterator[Manifest]:
    """Yield the slices of these nodes, and that of the network."""
    for kind in kinds:
        if kind == "net":
            yield _net(random, generation)
            continue
        for name in nodes:
            if random.random() < 0.85:
                yield from node_slices(random, kind, name, generation)


def node_slices(random: Random, kind: str, name: str, generation: int) -> Iterator[Manifest]:
    """Yield the slices of one kind of device of one node."""
    devices: list[Manifest]
    if kind == "accel":
        devices = [
            {"name": f"d{number}", "attributes": {"model": {"string": random.choice("aab")}}}
            for number in range(random.randint(1, 4))
        ]
        for device in devices:
            if generation > 1 and random.random() < 0.15:
                device["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    elif kind == "memory":
        offered = {"bytes": {"value": "64Gi", "requestPolicy": {"default": "8Gi"}}}
        devices = [
            {"name": f"bank{number}", "allowMultipleAllocations": True, "capacity": offered}
            for number in range(random.choice((1, 1, 2)))
        ]
    elif kind == "part":
        devices = [
            {
                "name": part,
                "attributes": {"size": {"int": size}},
                "consumesCounters": [{"counterSet": "chip", "counters": {"slots": {"value": str(size)}}}],
            }
            for part, size in (("whole", 2), ("half1", 1), ("half2", 1))
        ]
        counters = [{"name": "chip", "counters": {"slots": {"value": "2"}}}]
        yield _slice(kind, name, generation, 2, "counters", nodeName=name, sharedCounters=counters)
        yield _slice(kind, name, generation, 2, nodeName=name, devices=devices)
        return
    else:
        devices = [
            {"name": f"f{number}", "bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
            for number in range(random.choice((1, 2)))
        ]
    yield _slice(kind, name, generation, 1, nodeName=name, devices=devices)


def _net(random: Random, generation: int) -> Manifest:
    devices = [{"name": f"w{number}"} for number in range(random.randint(1, 3))]
    if random.random() < 0.5:
        return _slice("net", "net", generation, 1, allNodes=True, devices=devices)
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [random.choice(ZONES)]}]}
    return _slice("net", "net", generation, 1, nodeSelector={"nodeSelectorTerms": [term]}, devices=devices)


def _slice(kind: str, pool: str, generation: int, count: int, part: str = "devices", **spec: Any) -> Manifest:
    where = {"name": pool, "generation": generation, "resourceSliceCount": count}
    return _resource("ResourceSlice", f"{pool}-{kind}-{part}", {"driver": f"{kind}.example.org", "pool": where, **spec})


def budget(random: Random, name: str) -> Manifest:
    """Return a disruption budget that allows none or one."""
    allowed = random.choice((0, 0, 1))
    status = {"disruptionsAllowed": allowed, "currentHealthy": 2, "desiredHealthy": 2 - allowed, "expectedPods": 2}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 2 - allowed, "selector": {"matchLabels": {"app": random.choice("ab")}}},
        "status": status,
    }


def pod(random: Random, world: World, name: str, *, late: bool) -> Manifest:
    """Return a pod that asks for something of this cluster; those that come late are more important."""
    entries: list[Manifest] = []
    for number in range(random.choices((0, 1, 2), (1, 7, 2))[0]):
        if world.shared_claims and random.random() < 0.3:
            claim = {"resourceClaimName": random.choice(world.shared_claims)}
            if any(entry.get("resourceClaimName") == claim["resourceClaimName"] for entry in entries):
                continue
        else:
            claim = {"resourceClaimTemplateName": random.choice(world.templates)}
        entries.append({"name": f"dev{number}", **claim})
    resources: Manifest = {"requests": {"cpu": random.choice(("100m", "100m", "250m", "250m", "1", "1500m"))}}
    if entries:
        resources["claims"] = [{"name": entry["name"]} for entry in entries]
    spec: Manifest = {
        "priorityClassName": random.choices(tuple(PRIORITIES), (1, 2, 1, 5, 2) if late else (6, 3, 1, 1, 0.3))[0],
        "terminationGracePeriodSeconds": random.choice((0, 1, 5, 20, 30, 45)),
        "containers": [{"name": "c", "image": "example.org/job", "resources": resources}],
        "resourceClaims": entries,
    }
    if random.random() < 0.25:
        spec["tolerations"] = [TOLERATION]
    if random.random() < 0.12:
        spec["nodeSelector"] = {"zone": random.choice(ZONES)}
    if random.random() < 0.04:
        spec["schedulingGroup"] = {"podGroupName": "group"}
    metadata = {"name": name, "labels": {"app": random.choice("abc")}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
