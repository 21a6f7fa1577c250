"""A gRPC server of one service: Unix socket or loopback, health, reflection, orderly shutdown."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from earmark.runtime.interceptors import ClientInterceptor, ServerInterceptor
from earmark.runtime.limits import CHANNEL_OPTIONS, SERVER_OPTIONS
from earmark.runtime.telemetry import RpcTelemetry

# The kernel's limit for the path of a Unix socket, less its closing zero.
_MAX_SOCKET_PATH = 107

# How often a service is asked whether it is ready.
_ASK_SECONDS = 0.05


class AddressError(ValueError):
    """An address that a server must not or cannot listen on."""


def check_address(address: str) -> str:
    """Return `address` ("unix:/path" or "127.0.0.1:port"), or raise AddressError that says what would be right."""
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        if not path.startswith("/"):
            raise AddressError(f"{address!r}: want unix: and an absolute path")
        if len(os.fsencode(path)) > _MAX_SOCKET_PATH:
            raise AddressError(f"{address!r}: a Unix socket's path has {_MAX_SOCKET_PATH} bytes at most")
        return address
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise AddressError(f"{address!r}: want unix:/path or 127.0.0.1:port")
    try:
        loopback = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise AddressError(f"{address!r}: plain RPC listens on loopback only")
    return address


class ServiceServer:
    """Collects servicers, then serves them. An async context manager: entering listens, leaving shuts down.

    Leaving goes in this order: health says NOT_SERVING, calls in flight finish (within the grace), sockets close.
    """

    def __init__(self, address: str, telemetry: RpcTelemetry, *, grace: float = 3.0) -> None:
        """Prepare to listen on `address`; `grace` is in seconds. Raises AddressError."""
        self.address = check_address(address)
        self._grace = grace
        self._server = grpc.aio.server(interceptors=[ServerInterceptor(telemetry)], options=SERVER_OPTIONS)
        self._health = cast(Any, health).aio.HealthServicer()
        self._services: list[str] = []
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None:
        """Called by generated code."""
        self._server.add_generic_rpc_handlers(tuple(generic_rpc_handlers))

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None:
        """Called by generated code."""
        self._services.append(service_name)
        self._server.add_registered_method_handlers(service_name, method_handlers)  # type: ignore[attr-defined]

    async def __aenter__(self) -> ServiceServer:
        """Listen. Raises AddressError where the address is taken or not writable."""
        names = [*self._services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        reflection.enable_server_reflection(names, self._server)
        path = Path(self.address.removeprefix("unix:")) if self.address.startswith("unix:") else None
        try:
            if path is not None:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                _refuse_taken(path)
            port = self._server.add_insecure_port(self.address)
        except (OSError, RuntimeError) as error:
            raise AddressError(f"{self.address!r}: cannot listen: {error}") from error
        if path is not None:
            # Whoever may open the socket may call everything: only the owner.
            path.chmod(0o600)
        elif self.address.endswith(":0"):
            self.address = f"{self.address.rpartition(':')[0]}:{port}"
        await self._server.start()
        await self.set_ready(ready=False)
        return self

    async def set_ready(self, *, ready: bool) -> None:
        """Say by health whether the services can do their work."""
        status = health_pb2.HealthCheckResponse.SERVING if ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", *self._services):
            await self._health.set(name, status)

    async def __aexit__(self, *exception: object) -> None:
        await self._health.enter_graceful_shutdown()
        await self._server.stop(self._grace)


def _refuse_taken(path: Path) -> None:
    """Raise OSError where another process answers on a socket; gRPC would take the path from under it."""
    probe = socket.socket(socket.AF_UNIX)
    try:
        probe.settimeout(1.0)
        probe.connect(str(path))
    except OSError:
        # Nobody is there, or it was left by a process that died.
        return
    finally:
        probe.close()
    raise OSError("another process listens there")


def open_channel(address: str, telemetry: RpcTelemetry) -> grpc.aio.Channel:
    """Return a channel to an address, with the interceptors and limits that every channel has."""
    return grpc.aio.insecure_channel(
        address, options=CHANNEL_OPTIONS, interceptors=[cast(Any, ClientInterceptor(telemetry))]
    )


async def serving(address: str, timeout: float = 1.0) -> bool:
    """Ask health at an address whether its service is ready; False where nobody answers within `timeout` seconds."""
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        return await _serving(channel, timeout)


async def until_serving(address: str) -> None:
    """Return when health at an address says that its service is ready. Waits without limit."""
    # One channel: making one costs more than asking on it.
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        while not await _serving(channel, 1.0):  # noqa: ASYNC110 - another process, it can only be asked
            await asyncio.sleep(_ASK_SECONDS)


async def _serving(channel: grpc.aio.Channel, timeout: float) -> bool:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    try:
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=timeout)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
