"""The cluster of the end-to-end tests, over HTTPS: two nodes with one device each, and rounds of preemption on one.

Each round has the same cast: the `victim` has node a's device, the `bystander` (of a higher priority, but lower than the
preemptor's) node b's; the `preemptor` comes and opens a settling window; the `rival` comes inside it and would take the
device if nobody held it. In the next round the rival is the victim.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import yaml

from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.apply import apply, in_order
from earmark.kube.http import HttpApi
from earmark.kube.manifests import load_manifests

PRIORITIES = {"batch": 0, "production": 50, "urgent": 100}
# Seconds that victims take to terminate.
GRACE = 1
DRIVER = "gpu.example.com"


def _nodes() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one-gpu", "namespace": "default"},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}},
        },
    ]
    for name, value in PRIORITIES.items():
        found.append(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
            }
        )
    for name in ("a", "b"):
        found += [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name},
                "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{name}-gpu"},
                "spec": {
                    "driver": DRIVER,
                    "nodeName": name,
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "gpu-0"}],
                },
            },
        ]
    return found


def pod(name: str, priority: str) -> dict[str, Any]:
    """A pod that wants a device."""
    spec: dict[str, Any] = {
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": GRACE,
        "containers": [
            {
                "name": "main",
                "image": "example.com/work:1",
                "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Cluster:
    """See the module."""

    def __init__(self, api: HttpApi) -> None:
        self.api = api

    async def until(self, holds: Callable[[], Awaitable[bool]], seconds: float = 20.0, what: str = "") -> None:
        """Poll until something holds; the API may be away meanwhile. Fails after so many seconds."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            with contextlib.suppress(ApiUnavailable):
                if await holds():
                    return
            assert asyncio.get_running_loop().time() < end, f"{what or holds}: not within {seconds} s"
            await asyncio.sleep(0.05)

    async def put(self, *manifests: dict[str, Any]) -> None:
        """Apply manifests, also while the API comes back."""
        for manifest in in_order(load_manifests(yaml.safe_dump_all(manifests), "test")):

            async def applied(manifest: Any = manifest) -> bool:
                await apply(self.api, manifest)
                return True

            await self.until(applied, what=f"apply {manifest.name}")

    async def pod(self, name: str) -> objects.Pod | None:
        """A pod, or None."""
        try:
            return await self.api.get(objects.Pod, name, "default")
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def runs(self, *names: str) -> bool:
        """Whether these pods run."""
        return all([(found := await self.pod(name)) is not None and found.status.phase == "Running" for name in names])

    async def terminates(self, name: str) -> bool:
        """Whether a pod is terminating or gone."""
        found = await self.pod(name)
        return found is None or found.metadata.deletion_timestamp is not None

    async def gone(self, name: str) -> bool:
        """Whether a pod is gone."""
        return await self.pod(name) is None

    async def devices(self, owner: str) -> list[str]:
        """What a pod's claim has: DRIVER/POOL/DEVICE."""
        return [
            f"{result.driver}/{result.pool}/{result.device}"
            for claim in (await self.api.list(objects.ResourceClaim)).items
            if claim.status.allocation is not None and any(o.name == owner for o in claim.metadata.owner_references)
            for result in claim.status.allocation.devices.results
        ]

    async def prepare(self, victim: str) -> None:
        """Set the stage of the first round; in later ones it is there."""
        if await self.pod("bystander") is not None:
            return
        await self.put(*_nodes())
        await self.put(pod(victim, "batch"))
        await self.until(lambda: self.runs(victim), what=f"{victim} runs")
        await self.put(pod("bystander", "production"))
        await self.until(lambda: self.runs("bystander"), what="the bystander runs")

    async def open_window(self, victim: str, preemptor: str) -> None:
        """Let the preemptor come; returns when the victim is terminating and the nomination is on record."""
        await self.put(pod(preemptor, "urgent"))

        async def opened() -> bool:
            found = await self.pod(preemptor)
            return found is not None and bool(found.status.nominated_node_name) and await self.terminates(victim)

        await self.until(opened, what=f"{preemptor} preempts {victim}")

    async def delete(self, name: str) -> None:
        """Delete a pod and wait until it is gone."""
        await self.api.delete(objects.Pod, name, "default")
        await self.until(lambda: self.gone(name), what=f"{name} is gone")
