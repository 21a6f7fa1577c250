"""Services in this event loop, reached in process or over Unix sockets; everything else about them is the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
from prometheus_client import CollectorRegistry

from earmark.claimcontroller import component as claimcontroller
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.settings import Settings as DynamicResourcesSettings
from earmark.framework import component as framework
from earmark.framework.settings import FrameworkSettings
from earmark.nodes import component as nodes
from earmark.nodes.settings import NodesSettings
from earmark.preemption import component as preemption
from earmark.preemption.settings import PreemptionSettings
from earmark.runtime.clock import LoopClock
from earmark.runtime.component import Component, Environment, Server
from earmark.runtime.environment import RememberedChannels, in_process_environment, in_process_server
from earmark.runtime.server import ServiceServer, open_channel
from earmark.runtime.tasks import ComponentTasks
from earmark.runtime.telemetry import NoopTelemetry
from support.embedded_world import World
from support.embedded_world import node as node_manifest

S = TypeVar("S")

GATES = {"DRAPreemption": True}
FRAMEWORK = FrameworkSettings(scheduler_names=("default-scheduler",), feature_gates=GATES)
PLUGIN = DynamicResourcesSettings(feature_gates=GATES)
ALL = ("nodes", "claimcontroller", "dynamicresources", "preemption", "framework")


class ShiftedClock(LoopClock):
    """The loop's clock, which a test can set forward without waiting."""

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(asyncio.get_running_loop(), clock.now())
        self.shift = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.shift


@dataclass
class Cut:
    """Breaks a stream of responses once, at one of its messages, counted over all its connections."""

    method: str
    message: int
    # The message is on its way already when the stream breaks, else it is lost.
    after: bool
    passed: int = 0
    done: bool = False


class Recorder:
    """Stands between a component and its server: notes each unary call with its deadline, cuts streams."""

    def __init__(self, server: Server, calls: list[tuple[str, float | None]], cuts: list[Cut]) -> None:
        self._server = server
        self._calls = calls
        self._cuts = cuts

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None:
        """Left out: the registered methods below say the same, and on a socket these would be found first."""

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None:
        self._server.add_registered_method_handlers(
            service_name,
            {name: self._noting(f"/{service_name}/{name}", handler) for name, handler in method_handlers.items()},
        )

    def _noting(self, method: str, handler: Any) -> Any:
        if handler.response_streaming:
            return self._cutting(method, handler)

        async def serve(request: Any, context: Any) -> Any:
            self._calls.append((method, context.time_remaining()))
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(serve, handler.request_deserializer, handler.response_serializer)

    def _cutting(self, method: str, handler: Any) -> Any:
        async def serve(request: Any, context: Any) -> AsyncIterator[Any]:
            messages = handler.unary_stream(request, context)
            try:
                async for message in messages:
                    cut = next((cut for cut in self._cuts if cut.method == method and not cut.done), None)
                    if cut is None:
                        yield message
                        continue
                    here = cut.passed == cut.message
                    cut.passed += 1
                    if here and not cut.after:
                        cut.done = True
                        await context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
                    yield message
                    if here:
                        cut.done = True
                        await context.abort(grpc.StatusCode.UNAVAILABLE, "cut")
            finally:
                await messages.aclose()

        return grpc.unary_stream_rpc_method_handler(serve, handler.request_deserializer, handler.response_serializer)


class Stack:
    """A world (API, objects) and services on it, over "inprocess" or "socket"."""

    def __init__(self, clock: LoopClock, kind: str) -> None:
        self.world = World(clock)
        self.clock = ShiftedClock(clock)
        self.components: dict[str, Component] = {}
        self.calls: list[tuple[str, float | None]] = []
        self.cuts: list[Cut] = []
        self._folder = Path(tempfile.mkdtemp(prefix="em")) if kind == "socket" else None
        self._servers: dict[str, ServiceServer] = {}
        self._tasks: dict[str, ComponentTasks] = {}
        self._channels: list[RememberedChannels] = []
        # The test's own way to the services.
        self._outside = self._environment("test")

    def channel(self, name: str) -> grpc.aio.Channel:
        """A channel to a service, as a client has it."""
        return self._outside.channels.to(name)

    def address(self, name: str) -> str:
        """Where a service listens; sockets only."""
        assert self._folder is not None
        return f"unix:{self._folder / name}.sock"

    def _environment(self, name: str) -> Environment:
        inside, tasks = in_process_environment(
            name,
            network=self.world.network,
            clock=self.clock,
            ids=self.world.ids.derive(name),
            api=self.world.api,
            on_failure=lambda task, error: self.world.failures.append(f"{task}: {error!r}"),
        )
        self._tasks[name] = tasks
        if self._folder is None:
            return inside
        channels = RememberedChannels(lambda service: open_channel(self.address(service), NoopTelemetry()))
        self._channels.append(channels)
        return Environment(inside.clock, inside.ids, inside.api, channels, tasks, inside.telemetry, CollectorRegistry())

    async def start(self, name: str, build: Callable[[S, Environment], Component], settings: S) -> None:
        """Start a service, anew if it runs."""
        await self.kill(name)
        env = self._environment(name)
        component = self.components[name] = build(settings, env)
        if self._folder is None:
            server = in_process_server()
            component.register(Recorder(server, self.calls, self.cuts))
            self.world.network.serve(name, server)
        else:
            socket = ServiceServer(self.address(name), NoopTelemetry(), grace=0)
            component.register(Recorder(socket, self.calls, self.cuts))
            self._servers[name] = await socket.__aenter__()
        await component.start()
        if name in self._servers:
            await self._servers[name].set_ready(ready=True)

    async def start_all(self, **settings: Any) -> None:
        """Start all services and wait until they are ready, `ready_seconds` at most."""
        await self.start("nodes", nodes.build, settings.get("nodes", NodesSettings()))
        controller = settings.get("claimcontroller", ClaimControllerSettings())
        await self.start("claimcontroller", claimcontroller.build, controller)
        await self.start("dynamicresources", dynamicresources.build, settings.get("dynamicresources", PLUGIN))
        await self.start("preemption", preemption.build, settings.get("preemption", PreemptionSettings()))
        await self.start("framework", framework.build, settings.get("framework", FRAMEWORK))
        seconds = settings.get("ready_seconds", 20.0)
        await self.until(lambda: all(component.ready() for component in self.components.values()), seconds)

    async def kill(self, name: str) -> None:
        """End a service as a crash does."""
        if name not in self.components:
            return
        del self.components[name]
        self.world.network.remove(name)
        tasks = self._tasks.pop(name)
        tasks.kill()
        server = self._servers.pop(name, None)
        if server is not None:
            await server.__aexit__(None, None, None)
        await tasks.cancel_all()

    async def until(self, holds: Callable[[], bool | Awaitable[bool]], seconds: float = 20.0) -> None:
        """Wait until something holds; fail after so many seconds of the loop's time."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            answer = holds()
            if answer if isinstance(answer, bool) else await answer:
                return
            assert loop.time() < end, f"not within {seconds} s"
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """End everything; fail if a component has failed."""
        for name in list(self.components):
            await self.kill(name)
        for channels in self._channels:
            await channels.close()
        if self._folder is not None:
            shutil.rmtree(self._folder)
        await self.world.close()

    # --- objects -----------------------------------------------------------------------------------------------------

    async def cluster(self, *devices: str, nodes: Sequence[str] = ("n1",)) -> None:
        """Nodes with devices each, the class gpu, priorities low and high."""
        await self.world.apply({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
        for name, value in (("low", 0), ("high", 100)):
            await self.world.apply({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        for name in nodes:
            await self.world.apply(node_manifest(name))
            pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
            spec = {
                "driver": "gpu.example.com",
                "pool": pool,
                "nodeName": name,
                "devices": [{"name": device} for device in devices],
            }
            await self.world.apply({"kind": "ResourceSlice", "metadata": {"name": f"{name}-gpu"}, "spec": spec})

    async def pod(
        self, name: str, priority: str = "low", *, claim: str = "", grace: int = 1, scheduler: str = ""
    ) -> None:
        """A pod with a claim for one device; the claim is made unless `claim` names one that is there."""
        if not claim:
            claim = f"{name}-gpu"
            request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
            spec = {"devices": {"requests": [request]}}
            await self.world.apply({"kind": "ResourceClaim", "metadata": {"name": claim}, "spec": spec})
        manifest: dict[str, Any] = {
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {
                "priorityClassName": priority,
                "terminationGracePeriodSeconds": grace,
                "containers": [{"name": "main", "image": "x"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
            },
        }
        if scheduler:
            manifest["spec"]["schedulerName"] = scheduler
        await self.world.apply(manifest)
