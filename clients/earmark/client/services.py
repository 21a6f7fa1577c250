"""The client: the RPCs of one running earmark, found by its state folder, with a sandbox of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from earmark.client import pods
from earmark.client.calls import Caller
from earmark.client.rpcs import (
    ClaimControllerRpcs,
    ExplanationRpcs,
    FrameworkRpcs,
    NodesRpcs,
    NominationExtensionsRpcs,
    PreemptionRpcs,
    SchedulerPluginRpcs,
    SettlementRpcs,
)
from earmark.client.sandbox import Cycle, Sandbox
from earmark.kube import objects
from earmark.kube.api import KubeApi
from earmark.runtime.component import Channels
from earmark.runtime.environment import RememberedChannels
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.server import open_channel
from earmark.runtime.settings import RUNTIME, check_sections, load, read_file
from earmark.runtime.telemetry import NoopTelemetry
from earmark.v1 import common_pb2, framework_pb2, settlement_pb2


class NotRunning(Exception):
    """No earmark runs where one was looked for. The text names the folder."""


class EarmarkClient:
    """An async context manager. Every call ends within `timeout` seconds and raises CallFailed if it fails.

    One attribute a service has all its RPCs: `framework`, `preemption`, `plugin` (SchedulerPluginService),
    `nominations` (NominationExtensionsService), `settlement`, `explanation`, `claim_controller`, `nodes`. Calls that
    need a session and name none use the client's own sandbox, which is opened by the first of them and kept until the
    client closes.
    """

    def __init__(
        self,
        runtime: RuntimeSettings,
        timeout: float = 5.0,
        *,
        channels: Channels | None = None,
        api: KubeApi | None = None,
    ) -> None:
        """Prepare to call the services of `runtime`; `channels` and `api` stand in for sockets and kubeconfig."""
        self.runtime = runtime
        self._own = RememberedChannels(lambda service: open_channel(runtime.address(service), NoopTelemetry()))
        self._api = api
        self._stack = contextlib.AsyncExitStack()
        self._sandbox: Sandbox | None = None
        self._opening = asyncio.Lock()
        caller = _ClientCaller(self, channels or self._own, timeout)
        self._caller = caller
        self.claim_controller = ClaimControllerRpcs(caller)
        self.explanation = ExplanationRpcs(caller)
        self.framework = FrameworkRpcs(caller)
        self.nodes = NodesRpcs(caller)
        self.nominations = NominationExtensionsRpcs(caller)
        self.preemption = PreemptionRpcs(caller)
        self.plugin = SchedulerPluginRpcs(caller)
        self.settlement = SettlementRpcs(caller)

    async def __aenter__(self) -> EarmarkClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        await self._own.close()

    # --- sandboxes ---------------------------------------------------------------------------------------------------

    async def sandbox(self) -> Sandbox:
        """Return the client's own sandbox, opened now if it was not."""
        async with self._opening:
            # One for all, also where several calls are the first at once: a cycle is in one sandbox only.
            if self._sandbox is None:
                self._sandbox = await self._stack.enter_async_context(self.new_sandbox())
            return self._sandbox

    def new_sandbox(self) -> Sandbox:
        """Return another sandbox, which sees the present state; to be entered with `async with`."""
        return Sandbox(self._caller)

    @contextlib.asynccontextmanager
    async def cycle(self, pod: pods.PodLike, *, nominated_node_name: str = "") -> AsyncIterator[Cycle]:
        """Open a scheduling cycle in the client's own sandbox."""
        sandbox = await self.sandbox()
        async with sandbox.cycle(pod, nominated_node_name=nominated_node_name) as cycle:
            yield cycle

    # --- pods --------------------------------------------------------------------------------------------------------

    async def pod(self, name: str, namespace: str = "default") -> common_pb2.PodInput:
        """Return a pod of the API as cycles and forks want it. Raises ApiError where there is none."""
        if self._api is None:
            # Who asks only the services needs no HTTP.
            from earmark.kube.http import HttpApi

            path = self.runtime.kubeconfig_path
            if not path.is_file():
                raise NotRunning(f"{path}: no kubeconfig; is earmark running? (make run)")
            self._api = await self._stack.enter_async_context(HttpApi.from_kubeconfig(path))
        return pods.pod_input(await self._api.get(objects.Pod, name, namespace))

    @staticmethod
    def made_up_pod(manifest: Mapping[str, Any], *, priority: int = 0) -> common_pb2.PodInput:
        """Return a pod that is not in the API, for sandboxes."""
        return pods.made_up(manifest, priority=priority)

    # --- short forms -------------------------------------------------------------------------------------------------

    async def queue(self) -> Sequence[framework_pb2.QueuedPod]:
        """Return the pods of the scheduling queue."""
        return tuple((await self.framework.list_queue()).pods)

    async def explain(self, namespace: str, name: str) -> framework_pb2.ExplainPodResponse:
        """Return why a pod is where it is."""
        return await self.framework.explain_pod(pod=common_pb2.PodReference(namespace=namespace, name=name))

    async def settlements(self, *, open_only: bool = False) -> Sequence[settlement_pb2.Settlement]:
        """Return the settling windows, or only those that are open."""
        return tuple((await self.settlement.list_settlements(open_only=open_only)).settlements)

    async def watch_settlements(self) -> AsyncIterator[settlement_pb2.Settlement]:
        """Iterate over open settling windows and then over every change."""
        async for message in self.settlement.watch_settlements():
            yield message.settlement


class _ClientCaller(Caller):
    """Names the client's own sandbox where a call names no session."""

    def __init__(self, client: EarmarkClient, channels: Channels, timeout: float) -> None:
        super().__init__(channels, client.runtime.address, timeout)
        self._client = client

    async def session(self) -> common_pb2.SessionReference:
        return (await self._client.sandbox()).session


def connect(
    state_dir: str | Path | None = None, *, config: str | Path | None = None, timeout: float = 5.0
) -> EarmarkClient:
    """Return a client of the earmark that runs in a state folder, which `make run` and `earmark up` print.

    Args:
        state_dir: the folder; by default that of the configuration or of EARMARK_RUNTIME_STATE_DIR, else ".earmark".
        config: the TOML file that the services were started with.
        timeout: seconds for calls that name no timeout of their own.

    Raises:
        NotRunning: if nothing listens there.
        SettingsError: if the configuration cannot be used.
    """
    file = Path(config) if config is not None else None
    tables = read_file(file)
    check_sections(tables, SERVICES, file)
    runtime = load(RuntimeSettings, RUNTIME, file=file, tables=tables, environ=os.environ)
    if state_dir is not None:
        runtime = replace(runtime, state_dir=str(state_dir))
    sockets = [runtime.address(name).removeprefix("unix:") for name in SERVICES if name != "apiserver"]
    if not any(not path.startswith("/") or Path(path).exists() for path in sockets):
        raise NotRunning(f"{runtime.run_dir}: no sockets of earmark; is it running there? (make run)")
    return EarmarkClient(runtime, timeout)
