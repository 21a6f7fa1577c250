"""One call: channel, timeout, session and errors. What the generated methods have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from earmark.client.errors import call_failed
from earmark.runtime.component import Channels
from earmark.v1 import common_pb2

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

# Which process serves which service.
PROCESSES: Mapping[str, str] = {
    "ClaimControllerService": "claimcontroller",
    "ExplanationService": "dynamicresources",
    "FrameworkService": "framework",
    "NodesService": "nodes",
    "NominationExtensionsService": "dynamicresources",
    "PreemptionService": "preemption",
    "SchedulerPluginService": "dynamicresources",
    "SettlementService": "dynamicresources",
}


class FieldError(TypeError):
    """A value of the wrong type was given; the text names the field."""


class Caller:
    """Makes the calls of one client."""

    def __init__(self, channels: Channels, address: Callable[[str], str], timeout: float) -> None:
        """`address` says where a process listens, for errors; `timeout` is what a call gets that names none."""
        self._channels = channels
        self._address = address
        self._timeout = timeout

    async def session(self) -> common_pb2.SessionReference:
        """Return the session of calls that name none. Replaced by who has one."""
        raise FieldError("session: this client has no session of its own; name one")

    async def unary(self, service: str, method: str, request: Message, response: type[R], timeout: float | None) -> R:
        """Call a method; raises CallFailed."""
        process = PROCESSES[service]
        call: Any = self._channels.to(process).unary_unary(
            f"/earmark.v1.{service}/{method}", type(request).SerializeToString, response.FromString
        )
        try:
            answer: R = await call(request, timeout=self._timeout if timeout is None else timeout)
        except grpc.aio.AioRpcError as error:
            raise call_failed(process, self._address(process), f"{service}/{method}", error) from error
        return answer

    async def stream(
        self, service: str, method: str, request: Message, response: type[R], timeout: float | None
    ) -> AsyncIterator[R]:
        """Iterate over what a method streams, for ever where `timeout` is None; raises CallFailed."""
        process = PROCESSES[service]
        call: Any = self._channels.to(process).unary_stream(
            f"/earmark.v1.{service}/{method}", type(request).SerializeToString, response.FromString
        )
        running = call(request, timeout=timeout)
        try:
            async for message in running:
                yield message
        except grpc.aio.AioRpcError as error:
            raise call_failed(process, self._address(process), f"{service}/{method}", error) from error
        finally:
            running.cancel()


class Rpcs:
    """Base of the generated classes: the methods of one service."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller


def new_request(kind: type[Q], fields: Mapping[str, Any]) -> Q:
    """Return a message of these fields; raises FieldError that names the one of a wrong type."""
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        for name, value in fields.items():
            try:
                kind(**{name: value})
            except (TypeError, ValueError) as reason:
                text = f"{kind.__name__}: {name}: {type(value).__name__} does not fit: {reason}"
                raise FieldError(text) from error
        raise
