"""Calls to the services of one running earmark, found by its runtime settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, TypeVar

import grpc

from earmark.runtime.environment import RememberedChannels
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.server import open_channel
from earmark.runtime.telemetry import NoopTelemetry
from earmark.v1 import common_pb2, framework_pb2, framework_pb2_grpc, settlement_pb2, settlement_pb2_grpc

T = TypeVar("T")


class ServiceUnavailable(Exception):
    """A service does not answer, or refused. The text names it, in one line."""


class EarmarkClient:
    """An async context manager; every call ends within `timeout` seconds and raises ServiceUnavailable if it fails."""

    def __init__(self, runtime: RuntimeSettings, timeout: float = 5.0) -> None:
        self._timeout = timeout
        self._channels = RememberedChannels(lambda service: open_channel(runtime.address(service), NoopTelemetry()))

    async def __aenter__(self) -> EarmarkClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._channels.close()

    async def queue(self) -> Sequence[framework_pb2.QueuedPod]:
        """Return the pods of the scheduling queue."""
        stub: Any = framework_pb2_grpc.FrameworkServiceStub(self._channels.to("framework"))
        answer = await self._call("framework", stub.ListQueue(framework_pb2.ListQueueRequest(), timeout=self._timeout))
        return tuple(answer.pods)

    async def explain(self, namespace: str, name: str) -> framework_pb2.ExplainPodResponse:
        """Return why a pod is where it is."""
        stub: Any = framework_pb2_grpc.FrameworkServiceStub(self._channels.to("framework"))
        request = framework_pb2.ExplainPodRequest(pod=common_pb2.PodReference(namespace=namespace, name=name))
        answer: framework_pb2.ExplainPodResponse = await self._call(
            "framework", stub.ExplainPod(request, timeout=self._timeout)
        )
        return answer

    async def settlements(self, *, open_only: bool = False) -> Sequence[settlement_pb2.Settlement]:
        """Return the settling windows, or only those that are open."""
        stub: Any = settlement_pb2_grpc.SettlementServiceStub(self._channels.to("dynamicresources"))
        request = settlement_pb2.ListSettlementsRequest(open_only=open_only)
        answer = await self._call("dynamicresources", stub.ListSettlements(request, timeout=self._timeout))
        return tuple(answer.settlements)

    async def watch_settlements(self) -> AsyncIterator[settlement_pb2.Settlement]:
        """Iterate over open settling windows and then over every change."""
        stub: Any = settlement_pb2_grpc.SettlementServiceStub(self._channels.to("dynamicresources"))
        call = stub.WatchSettlements(settlement_pb2.WatchSettlementsRequest())
        try:
            async for message in call:
                yield message.settlement
        except grpc.aio.AioRpcError as error:
            raise _unavailable("dynamicresources", error) from error

    async def _call(self, service: str, call: Awaitable[T]) -> T:
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise _unavailable(service, error) from error


def _unavailable(service: str, error: grpc.aio.AioRpcError) -> ServiceUnavailable:
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        return ServiceUnavailable(f"{service} does not answer; is it running? (make run)")
    return ServiceUnavailable(f"{service}: {error.code().name}: {error.details()}")
