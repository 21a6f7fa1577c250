"""Pods and nodes for tests of the framework, in one line each."""

from __future__ import annotations

from typing import Any

import msgspec

from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.kube import objects


def pod(name: str, *, cpu: str = "", priority: int = 0, **fields: Any) -> objects.Pod:
    """A pod of the scheduler "earmark" with the UID uid-NAME.

    `cpu` is its request; `spec`, `status`, `metadata` are merged in as JSON; `node` binds it; `nominated` nominates it.
    """
    spec: dict[str, Any] = {"schedulerName": "earmark", "priority": priority}
    container: dict[str, Any] = {"name": "c", "image": "x"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    spec["containers"] = [container]
    if fields.get("node"):
        spec["nodeName"] = fields["node"]
    spec.update(fields.get("spec", {}))
    status = dict(fields.get("status", {}))
    if fields.get("nominated"):
        status["nominatedNodeName"] = fields["nominated"]
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata.update(fields.get("metadata", {}))
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, objects.Pod)


def info(name: str, **fields: Any) -> PodInfo:
    """The PodInfo of such a pod."""
    return PodInfo.of(pod(name, **fields))


def node(name: str, *, cpu: str = "4", pods: str = "110", **fields: Any) -> objects.Node:
    """A node; `labels`, `taints` (key:effect texts), `unschedulable` and `extra` allocatable resources."""
    taints = [dict(zip(("key", "effect"), text.split(":"), strict=True)) for text in fields.get("taints", ())]
    resources = {"cpu": cpu, "memory": "64Gi", "pods": pods, **fields.get("extra", {})}
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(fields.get("labels", {}))},
            "spec": {"unschedulable": fields.get("unschedulable", False), "taints": taints},
            "status": {"allocatable": resources, "capacity": resources},
        },
        objects.Node,
    )


def node_info(name: str, *pods: PodInfo, **fields: Any) -> NodeInfo:
    """A NodeInfo with pods."""
    return NodeInfo.of(node(name, **fields), pods)


def manifest(value: objects.Pod | objects.Node) -> dict[str, Any]:
    """The object as it is created through an API."""
    data: dict[str, Any] = msgspec.to_builtins(value)
    data["kind"] = type(value).__name__
    data["apiVersion"] = "v1"
    for key in ("uid", "resourceVersion"):
        data["metadata"].pop(key, None)
    # Priority comes from a class; without one the API sets 0.
    if data["spec"].get("priority") == 0:
        data["spec"].pop("priority")
    if not data.get("status"):
        data.pop("status", None)
    return data
