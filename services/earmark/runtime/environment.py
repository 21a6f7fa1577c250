"""Builds the Environment of a component, for a process of its own or for the simulation."""

from __future__ import annotations

from collections.abc import Callable

import grpc
from prometheus_client import CollectorRegistry

from earmark.kube.api import KubeApi
from earmark.kube.clock import Clock
from earmark.runtime.component import Environment, Ids
from earmark.runtime.inprocess import InProcessNetwork, InProcessServer
from earmark.runtime.interceptors import ClientInterceptor, ServerInterceptor
from earmark.runtime.tasks import ComponentTasks
from earmark.runtime.telemetry import NoopTelemetry, RpcTelemetry


class RememberedChannels:
    """One channel a service: implements earmark.runtime.component.Channels."""

    def __init__(self, make: Callable[[str], grpc.aio.Channel]) -> None:
        self._make = make
        self._channels: dict[str, grpc.aio.Channel] = {}

    def to(self, service: str) -> grpc.aio.Channel:
        """Return the channel to a service, the same one every time."""
        if service not in self._channels:
            self._channels[service] = self._make(service)
        return self._channels[service]

    async def close(self) -> None:
        """Close all."""
        for channel in self._channels.values():
            await channel.close(None)
        self._channels.clear()


def in_process_server(telemetry: RpcTelemetry | None = None) -> InProcessServer:
    """Return a server with the interceptors that every server has."""
    return InProcessServer([ServerInterceptor(telemetry or NoopTelemetry())])


def in_process_environment(
    name: str,
    *,
    network: InProcessNetwork,
    clock: Clock,
    ids: Ids,
    api: KubeApi,
    telemetry: RpcTelemetry | None = None,
    on_failure: Callable[[str, BaseException], None] | None = None,
) -> tuple[Environment, ComponentTasks]:
    """Return the environment of a component in this event loop, and its tasks (to cancel them as a crash would)."""
    telemetry = telemetry or NoopTelemetry()
    interceptors = [ClientInterceptor(telemetry)]
    tasks = ComponentTasks(name, on_failure)
    environment = Environment(
        clock=clock,
        ids=ids,
        api=api,
        channels=RememberedChannels(lambda service: network.channel(service, interceptors)),
        tasks=tasks,
        telemetry=telemetry,
        metrics=CollectorRegistry(),
    )
    return environment, tasks
