"""The embedded API in memory, in-process RPCs and components in virtual time: what service tests stand on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.apiserver.storage import MemoryStore
from earmark.kube import objects
from earmark.kube.api import ApiError
from earmark.kube.resources import BY_KIND
from earmark.runtime.clock import LoopClock
from earmark.runtime.component import Component, Environment
from earmark.runtime.environment import in_process_environment, in_process_server
from earmark.runtime.export import MemorySink
from earmark.runtime.ids import SeededIds
from earmark.runtime.inprocess import InProcessNetwork
from earmark.runtime.tasks import ComponentTasks
from earmark.runtime.telemetry import Tracing

S = TypeVar("S")
T = TypeVar("T", bound=objects.Object)


class World:
    """An API and the components that run on it; `close()` ends them."""

    def __init__(self, clock: LoopClock) -> None:
        self.clock = clock
        self.ids = SeededIds("test")
        self.registry = Registry(MemoryStore(), clock, self.ids.derive("uids").uuid)
        self.api = LocalApi(self.registry, clock)
        self.network = InProcessNetwork()
        self.failures: list[str] = []
        self.sink = MemorySink()
        self._tasks: dict[str, ComponentTasks] = {}
        self._telemetry: dict[str, Tracing] = {}

    def environment(self, name: str) -> Environment:
        """An environment on this world."""
        # Strict: a span that is not declared fails the test.
        self._telemetry[name] = Tracing(name, self.clock, self.ids.derive(f"{name}/spans"), self.sink, strict=True)
        env, tasks = in_process_environment(
            name,
            network=self.network,
            clock=self.clock,
            ids=self.ids.derive(name),
            api=self.api,
            telemetry=self._telemetry[name],
            on_failure=lambda task, error: self.failures.append(f"{task}: {error!r}"),
        )
        self._tasks[name] = tasks
        return env

    async def start(self, name: str, build: Callable[[S, Environment], Component], settings: S) -> Environment:
        """Start a component; one of this name that runs is killed first."""
        self.stop(name)
        env = self.environment(name)
        component = build(settings, env)
        server = in_process_server(self._telemetry[name])
        component.register(server)
        self.network.serve(name, server)
        await component.start()
        return env

    def stop(self, name: str) -> None:
        """Kill a component."""
        if name in self._tasks:
            self.network.remove(name)
            self._tasks.pop(name).kill()

    async def close(self) -> None:
        """End all components; fail if one has failed."""
        for name, tasks in list(self._tasks.items()):
            self.network.remove(name)
            await tasks.cancel_all()
        # What was killed before needs a few turns of the loop to end.
        for _ in range(20):
            await self.clock.sleep(0)
        assert self.failures == []

    async def until(self, seconds: float) -> None:
        """Sleep until so many seconds after the beginning, and then until that instant's work is done."""
        await self.clock.sleep(seconds - self.seconds)
        for _ in range(200):
            await self.clock.sleep(0)

    @property
    def seconds(self) -> float:
        """Virtual seconds since the beginning."""
        return self.clock.monotonic()

    @property
    def now(self) -> datetime:
        """Virtual time."""
        return self.clock.now()

    async def apply(self, manifest: dict[str, Any]) -> None:
        """Create an object, with its status where the manifest has one."""
        resource = BY_KIND[manifest["kind"]]
        namespace = manifest["metadata"].get("namespace", "default") if resource.namespaced else ""
        name = manifest["metadata"]["name"]
        bare = {key: value for key, value in manifest.items() if key != "status"}
        bare.setdefault("apiVersion", resource.api_version)
        await self.api.create_raw(resource, namespace, bare)
        if "status" in manifest:
            await self.api.patch(resource.struct, name, namespace, {"status": manifest["status"]}, subresource="status")

    async def find(self, kind: type[T], name: str, namespace: str = "default") -> T | None:
        """Return an object, or None."""
        try:
            return await self.api.get(kind, name, namespace if BY_KIND[kind.__name__].namespaced else "")
        except ApiError as error:
            if error.not_found:
                return None
            raise

    async def pod(self, name: str) -> objects.Pod:
        """Return a pod that must exist."""
        return await self.api.get(objects.Pod, name, "default")

    async def claim_of(self, pod: str, entry: str = "gpu") -> objects.ResourceClaim | None:
        """Return the claim that the pod's status names for an entry."""
        for status in (await self.pod(pod)).status.resource_claim_statuses:
            if status.name == entry and status.resource_claim_name:
                return await self.find(objects.ResourceClaim, status.resource_claim_name)
        return None

    async def allocate(self, claim: objects.ResourceClaim, *pods: objects.Pod, device: str = "gpu-0") -> None:
        """Write finalizer, allocation and reservations, as a scheduler does."""
        meta = claim.metadata
        await self.api.patch(
            objects.ResourceClaim,
            meta.name,
            meta.namespace,
            {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}},
        )
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": device}
        reserved = [{"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid} for pod in pods]
        await self.api.patch(
            objects.ResourceClaim,
            meta.name,
            meta.namespace,
            {"status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}},
            subresource="status",
        )


def node(name: str = "n1") -> dict[str, Any]:
    """A node's manifest."""
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "16", "pods": "110"}}}


def template(name: str = "one-gpu") -> dict[str, Any]:
    """A claim template's manifest, for one device of class gpu."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"metadata": {"labels": {"from": name}}, "spec": {"devices": {"requests": [request]}}},
    }


def claim(name: str) -> dict[str, Any]:
    """A named claim's manifest."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def pod(name: str, *, node_name: str = "", grace: int = 30, **claims: str) -> dict[str, Any]:
    """A pod's manifest; `claims` are entry="template:NAME" or entry="claim:NAME"."""
    entries = []
    for entry, source in claims.items():
        kind, _, source_name = source.partition(":")
        field = "resourceClaimTemplateName" if kind == "template" else "resourceClaimName"
        entries.append({"name": entry, field: source_name})
    resources: dict[str, Any] = {"requests": {"cpu": "100m"}}
    if entries:
        resources["claims"] = [{"name": entry["name"]} for entry in entries]
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "image": "example.com/work:1", "resources": resources}],
        "terminationGracePeriodSeconds": grace,
    }
    if node_name:
        spec["nodeName"] = node_name
    if entries:
        spec["resourceClaims"] = entries
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
