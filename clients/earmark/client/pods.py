"""Pods as the RPCs want them: of the API, or made up for a sandbox."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from earmark.kube import objects
from earmark.v1 import common_pb2

PodLike = common_pb2.PodInput | common_pb2.PodReference | objects.Pod


def pod_input(pod: PodLike) -> common_pb2.PodInput:
    """Return a pod as cycles are opened for it."""
    if isinstance(pod, common_pb2.PodInput):
        return pod
    if isinstance(pod, common_pb2.PodReference):
        return common_pb2.PodInput(pod=pod)
    return common_pb2.PodInput(
        pod=pod_reference(pod), priority=pod.priority, resource_version=pod.metadata.resource_version
    )


def pod_reference(pod: PodLike) -> common_pb2.PodReference:
    """Return which pod it is."""
    if isinstance(pod, common_pb2.PodReference):
        return pod
    if isinstance(pod, common_pb2.PodInput):
        return pod.pod
    meta = pod.metadata
    return common_pb2.PodReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)


def made_up(manifest: Mapping[str, Any], *, priority: int = 0) -> common_pb2.PodInput:
    """Return a pod that is not in the API, for sandboxes. It gets a UID where the manifest has none.

    `priority` is the value: nobody looks up the manifest's priorityClassName.
    """
    metadata = {"namespace": "default", "uid": str(uuid.uuid4()), **manifest.get("metadata", {})}
    whole = {**manifest, "metadata": metadata}
    reference = common_pb2.PodReference(
        namespace=metadata["namespace"], name=metadata.get("name", ""), uid=metadata["uid"]
    )
    return common_pb2.PodInput(pod=reference, priority=priority, manifest=json.dumps(whole))
