"""One RPC without a network: what client and server of the in-process path share, and the servicer's context.

The calls and channels that clients see are in earmark.runtime.inprocess.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import grpc

from earmark.runtime.limits import MAX_MESSAGE_BYTES

_log = logging.getLogger(__name__)

Metadata = tuple[tuple[str, str | bytes], ...]

# Messages that a stream holds before its writer waits for the reader.
_STREAM_BUFFER = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an RPC ended."""

    code: grpc.StatusCode
    details: str = ""
    trailing: Metadata = ()


class Resolver(Protocol):
    """The part of the in-process server that an exchange needs."""

    async def resolve(self, method: str, metadata: Metadata) -> Any | None:
        """Return the handler of a method with the server's interceptors around it, or None."""


def as_metadata(metadata: Any) -> Metadata:
    """Return gRPC metadata, in any of its forms, as a tuple of pairs."""
    return tuple((str(key), value) for key, value in metadata or ())


class Exchange:
    """One RPC: the server's task, the messages on their way to the client, and the outcome, which is set once."""

    def __init__(self, server: Resolver, method: str, request: bytes, metadata: Metadata, timeout: float | None):
        """Start serving. `timeout` is in seconds of the loop's time."""
        self._loop = asyncio.get_running_loop()
        self.method = method
        self.metadata = metadata
        self.initial_metadata: Metadata = ()
        self.outcome: Outcome | None = None
        self._messages: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []
        self.deadline = None if timeout is None else self._loop.time() + timeout
        self._timer = None if timeout is None else self._loop.call_later(max(0.0, timeout), self._expire)
        # A context of its own: nothing of the client's leaks to the server but what metadata carries.
        self._task = self._loop.create_task(
            self._serve(server, request), name=f"rpc{method}", context=contextvars.Context()
        )

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call back when the RPC has ended (at once if it has)."""
        if self.outcome is not None:
            callback()
        else:
            self._callbacks.append(callback)

    def finish(self, outcome: Outcome) -> bool:
        """End the RPC, if it has not ended, and the server's task with it. Return whether this call ended it."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        if self._timer is not None:
            self._timer.cancel()
        self._changed.set()
        if not self._task.done() and asyncio.current_task() is not self._task:
            self._task.cancel()
        for callback in self._callbacks:
            callback()
        self._callbacks.clear()
        return True

    def cancel(self) -> bool:
        """End the RPC because the client no longer wants it."""
        return self.finish(Outcome(grpc.StatusCode.CANCELLED, "Locally cancelled by application!"))

    def _expire(self) -> None:
        self.finish(Outcome(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded"))

    async def send(self, message: bytes) -> None:
        """Hand a message to the client; waits while too many are on their way."""
        if len(message) > MAX_MESSAGE_BYTES:
            text = f"message larger than max ({len(message)} vs. {MAX_MESSAGE_BYTES})"
            self.finish(Outcome(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
            raise asyncio.CancelledError
        while len(self._messages) >= _STREAM_BUFFER:
            self._changed.clear()
            await self._changed.wait()
        self._messages.append(message)
        self._changed.set()

    async def receive(self) -> bytes | None:
        """Return the next message, or None when the RPC has ended and no message is left."""
        while not self._messages:
            if self.outcome is not None:
                return None
            self._changed.clear()
            await self._changed.wait()
        message = self._messages.popleft()
        self._changed.set()
        return message

    async def wait(self) -> Outcome:
        """Return the outcome when there is one."""
        while self.outcome is None:
            self._changed.clear()
            await self._changed.wait()
        return self.outcome

    async def _serve(self, server: Resolver, request: bytes) -> None:
        context = InProcessContext(self)
        try:
            handler = await server.resolve(self.method, self.metadata)
            if handler is None:
                self.finish(Outcome(grpc.StatusCode.UNIMPLEMENTED, "Method not found!"))
                return
            context.serialize = handler.response_serializer
            await self._handle(handler, handler.request_deserializer(request), context)
            self.finish(Outcome(context.code(), context.details(), context.trailing_metadata()))
        except grpc.aio.AbortError:
            self.finish(Outcome(context.code(), context.details(), context.trailing_metadata()))
        except asyncio.CancelledError:
            self.finish(Outcome(grpc.StatusCode.CANCELLED, "the server cancelled the call"))
        except Exception as error:  # noqa: BLE001 - gRPC's own server turns every error of a servicer into a status
            _log.error("%s: the servicer failed", self.method, exc_info=error)
            self.finish(Outcome(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}"))

    async def _handle(self, handler: Any, request: Any, context: InProcessContext) -> None:
        if handler.response_streaming:
            result = handler.unary_stream(request, context)
            if inspect.isawaitable(result):
                await result
                return
            async for message in result:
                await context.write(message)
            return
        response = await handler.unary_unary(request, context)
        if context.code() is grpc.StatusCode.OK:
            await context.write(response)


class InProcessContext(grpc.aio.ServicerContext[Any, Any]):
    """What a servicer learns of its call, as in gRPC's own server."""

    serialize: Callable[[Any], bytes]

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._code = grpc.StatusCode.OK
        self._details = ""
        self._trailing: Metadata = ()

    async def read(self) -> Any:
        raise NotImplementedError("no request streams in process")

    async def write(self, message: Any) -> None:
        await self._exchange.send(self.serialize(message))

    async def send_initial_metadata(self, initial_metadata: Any) -> None:
        self._exchange.initial_metadata = as_metadata(initial_metadata)

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> NoReturn:
        if code is grpc.StatusCode.OK:
            raise ValueError("abort: OK is no failure")
        self._code, self._details = code, details
        self._trailing = as_metadata(trailing_metadata) or self._trailing
        raise grpc.aio.AbortError("Locally aborted.")

    async def abort_with_status(self, status: Any) -> NoReturn:
        await self.abort(status.code, status.details, status.trailing_metadata)

    def add_done_callback(self, callback: Any) -> None:
        self._exchange.add_callback(lambda: callback(self))

    def set_trailing_metadata(self, trailing_metadata: Any) -> None:
        self._trailing = as_metadata(trailing_metadata)

    def invocation_metadata(self) -> Any:
        return self._exchange.metadata

    def set_code(self, code: grpc.StatusCode) -> None:
        self._code = code

    def set_details(self, details: str) -> None:
        self._details = details

    def set_compression(self, compression: grpc.Compression) -> None:
        """Nothing is compressed in process."""

    def disable_next_message_compression(self) -> None:
        """Nothing is compressed in process."""

    def peer(self) -> str:
        return "inprocess"

    def peer_identities(self) -> Iterable[bytes] | None:
        return None

    def peer_identity_key(self) -> str | None:
        return None

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        return {}

    def time_remaining(self) -> Any:
        deadline = self._exchange.deadline
        return None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())

    def trailing_metadata(self) -> Any:
        return self._trailing

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def cancelled(self) -> bool:
        outcome = self._exchange.outcome
        return outcome is not None and outcome.code is grpc.StatusCode.CANCELLED

    def done(self) -> bool:
        return self._exchange.outcome is not None
