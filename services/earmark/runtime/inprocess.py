"""gRPC without a network: servers, channels and calls that behave as grpc.aio's do, in one event loop.

Messages are copied through their wire form, deadlines follow the loop's time, cancellation reaches the servicer, and
the same interceptors run as on a socket. Simulation, what-if and most tests use it. Request streams are left out: no
service of earmark has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple

import grpc
from grpc.aio import EOF  # type: ignore[attr-defined]

from earmark.runtime.exchange import Exchange, Metadata, Outcome, as_metadata
from earmark.runtime.limits import MAX_MESSAGE_BYTES


class _HandlerCallDetails(NamedTuple):
    """What server interceptors see, shaped as grpc.HandlerCallDetails."""

    method: str
    invocation_metadata: Metadata


class InProcessServer:
    """Collects servicers as a gRPC server does, and serves them to in-process channels."""

    def __init__(self, interceptors: Sequence[Any] = ()) -> None:
        """Serve with grpc.aio server interceptors, the first outermost."""
        self._interceptors = tuple(interceptors)
        self._handlers: dict[str, Any] = {}
        self._running: dict[Exchange, None] = {}
        self.alive = True

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[Any]) -> None:
        """Part of what generated code registers; the registered methods say the same, by name."""

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None:
        """Take the handlers of one service."""
        for method, handler in method_handlers.items():
            self._handlers[f"/{service_name}/{method}"] = handler

    async def resolve(self, method: str, metadata: Metadata) -> Any | None:
        """Return the handler of a method with the interceptors around it."""

        async def innermost(details: Any) -> Any:
            return self._handlers.get(details.method)

        continuation: Callable[[Any], Awaitable[Any]] = innermost
        for interceptor in reversed(self._interceptors):
            continuation = _bind(interceptor, continuation)
        return await continuation(_HandlerCallDetails(method, metadata))

    def open(self, method: str, request: bytes, metadata: Metadata, timeout: float | None) -> Exchange:
        """Begin an RPC."""
        exchange = Exchange(self, method, request, metadata, timeout)
        self._running[exchange] = None
        exchange.add_callback(lambda: self._running.pop(exchange, None))
        return exchange

    def kill(self) -> None:
        """End as a process that dies: calls that run fail with UNAVAILABLE, servicers are cancelled."""
        self.alive = False
        for exchange in list(self._running):
            exchange.finish(Outcome(grpc.StatusCode.UNAVAILABLE, "Socket closed"))

    async def stop(self, grace: float | None = None) -> None:
        """Take no new calls, wait `grace` seconds for those that run, then end them."""
        self.alive = False
        if grace and self._running:
            waits = [asyncio.ensure_future(exchange.wait()) for exchange in self._running]
            _, late = await asyncio.wait(waits, timeout=grace)
            for wait in late:
                wait.cancel()
        self.kill()


def _bind(interceptor: Any, continuation: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    async def call(details: Any) -> Any:
        return await interceptor.intercept_service(continuation, details)

    return call


class InProcessNetwork:
    """Names and the servers behind them. A name without a server answers UNAVAILABLE, as a dead process does."""

    def __init__(self) -> None:
        self._servers: dict[str, InProcessServer] = {}
        self._arrived = asyncio.Event()

    def serve(self, name: str, server: InProcessServer) -> None:
        """Put a server behind a name; one that was there before is killed."""
        self.remove(name)
        self._servers[name] = server
        self._arrived.set()
        self._arrived = asyncio.Event()

    def remove(self, name: str) -> None:
        """Kill the server behind a name, if there is one."""
        server = self._servers.pop(name, None)
        if server is not None:
            server.kill()

    def server(self, name: str) -> InProcessServer | None:
        """Return the live server behind a name."""
        server = self._servers.get(name)
        return server if server is not None and server.alive else None

    async def await_server(self, name: str) -> InProcessServer:
        """Return the server behind a name as soon as there is one."""
        while (server := self.server(name)) is None:
            await self._arrived.wait()
        return server

    def channel(self, name: str, interceptors: Sequence[Any] = ()) -> InProcessChannel:
        """Return a new channel to a name, with grpc.aio client interceptors, the first outermost."""
        return InProcessChannel(self, name, interceptors)


class InProcessChannel(grpc.aio.Channel):
    """What generated stubs are made on."""

    def __init__(self, network: InProcessNetwork, name: str, interceptors: Sequence[Any] = ()) -> None:
        self._network = network
        self._name = name
        self._unary = tuple(i for i in interceptors if hasattr(i, "intercept_unary_unary"))
        self._stream = tuple(i for i in interceptors if hasattr(i, "intercept_unary_stream"))

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """Return the callable of one method."""
        return _Callable(self._network, self._name, method, request_serializer, response_deserializer, self._unary)

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        _registered_method: bool | None = False,
    ) -> Any:
        """Return the callable of one method with a response stream."""
        return _StreamCallable(
            self._network, self._name, method, request_serializer, response_deserializer, self._stream
        )

    def stream_unary(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there are no request streams in process."""
        raise NotImplementedError("no request streams in process")

    def stream_stream(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there are no request streams in process."""
        raise NotImplementedError("no request streams in process")

    async def __aenter__(self) -> InProcessChannel:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close(None)

    async def close(self, grace: float | None = None) -> None:
        """Nothing is held open."""

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return READY or TRANSIENT_FAILURE."""
        up = self._network.server(self._name) is not None
        return grpc.ChannelConnectivity.READY if up else grpc.ChannelConnectivity.TRANSIENT_FAILURE

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Refuse: nothing of earmark asks."""
        raise NotImplementedError("wait_for_state_change")

    async def channel_ready(self) -> None:
        """Return when a server is there."""
        await self._network.await_server(self._name)


class _Callable:
    """A unary method: makes calls."""

    _intercept = "intercept_unary_unary"

    def __init__(
        self,
        network: InProcessNetwork,
        name: str,
        method: str,
        serialize: Callable[[Any], bytes],
        deserialize: Callable[[bytes], Any],
        interceptors: tuple[Any, ...],
    ) -> None:
        self._network = network
        self._name = name
        self._method = method
        self.serialize = serialize
        self.deserialize = deserialize
        self._interceptors = interceptors

    def __call__(
        self,
        request: Any,
        timeout: float | None = None,
        metadata: Any = None,
        credentials: Any = None,
        wait_for_ready: bool | None = None,
        compression: Any = None,
    ) -> Any:
        """Begin a call. `timeout` is in seconds of the loop's time."""
        details = grpc.aio.ClientCallDetails(
            # gRPC hands interceptors the method as bytes.
            self._method.encode(),  # type: ignore[arg-type]
            timeout,
            grpc.aio.Metadata(*as_metadata(metadata)),
            credentials,
            wait_for_ready,
        )
        continuation: Callable[[Any, Any], Awaitable[Any]] = self._begin
        for interceptor in reversed(self._interceptors):
            continuation = self._bind(interceptor, continuation)
        return self._call(continuation(details, request))

    def _bind(self, interceptor: Any, continuation: Any) -> Callable[[Any, Any], Awaitable[Any]]:
        async def call(details: Any, request: Any) -> Any:
            return await getattr(interceptor, self._intercept)(continuation, details, request)

        return call

    async def _begin(self, details: Any, request: Any) -> Any:
        return self._call(self._open(details, request))

    async def _open(self, details: Any, request: Any) -> Exchange:
        payload = self.serialize(request)
        if len(payload) > MAX_MESSAGE_BYTES:
            text = f"message larger than max ({len(payload)} vs. {MAX_MESSAGE_BYTES})"
            raise rpc_error(Outcome(grpc.StatusCode.RESOURCE_EXHAUSTED, text))
        timeout = details.timeout
        server = self._network.server(self._name)
        if server is None:
            if not details.wait_for_ready:
                raise rpc_error(Outcome(grpc.StatusCode.UNAVAILABLE, f"{self._name}: no server"))
            begun = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(timeout):
                    server = await self._network.await_server(self._name)
            except TimeoutError:
                raise rpc_error(Outcome(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")) from None
            if timeout is not None:
                timeout -= asyncio.get_running_loop().time() - begun
        method = details.method.decode() if isinstance(details.method, bytes) else details.method
        return server.open(method, payload, as_metadata(details.metadata), timeout)

    def _call(self, opening: Awaitable[Any]) -> Any:
        return InProcessUnaryCall(opening, self.deserialize)


class _StreamCallable(_Callable):
    """A method with a response stream: makes calls."""

    _intercept = "intercept_unary_stream"

    def _call(self, opening: Awaitable[Any]) -> Any:
        return InProcessStreamCall(opening, self.deserialize)


def rpc_error(outcome: Outcome, initial: Metadata = ()) -> grpc.aio.AioRpcError:
    """Return the error that a client gets for an outcome."""
    return grpc.aio.AioRpcError(
        outcome.code,
        grpc.aio.Metadata(*initial),
        grpc.aio.Metadata(*outcome.trailing),
        outcome.details,
        f"in process: {outcome.code.name}: {outcome.details}",
    )


class _InProcessCall:
    """What unary and stream calls share: the exchange comes into being in a task, after the interceptors."""

    def __init__(self, opening: Awaitable[Any], deserialize: Callable[[bytes], Any]) -> None:
        self._opening = opening
        self._deserialize = deserialize
        self._loop = asyncio.get_running_loop()
        self._exchange: Exchange | None = None
        # By this side. What the other side cancels is an error like any other.
        self._given_up = False
        self._task: asyncio.Task[Any] = self._loop.create_task(self._run(), name="rpc call")
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            # A call that nobody awaits has no one to tell.
            task.exception()
        if asyncio.iscoroutine(self._opening):
            # Never begun where the call was cancelled at once, as by the end of its service.
            self._opening.close()

    async def _run(self) -> Any:
        raise NotImplementedError

    def cancel(self) -> bool:
        """Cancel the call; return whether it was still running."""
        self._given_up = self._given_up or not self.done()
        if self._exchange is not None:
            ended = self._exchange.cancel()
            self._task.cancel()
            return ended
        return self._task.cancel()

    def cancelled(self) -> bool:
        """Return whether the call was cancelled."""
        if self._exchange is not None and self._exchange.outcome is not None:
            return self._exchange.outcome.code is grpc.StatusCode.CANCELLED
        return self._task.cancelled()

    def done(self) -> bool:
        """Return whether the call has ended."""
        return self._task.done() and (self._exchange is None or self._exchange.outcome is not None)

    def time_remaining(self) -> float | None:
        """Return the seconds until the deadline."""
        if self._exchange is None or self._exchange.deadline is None:
            return None
        return max(0.0, self._exchange.deadline - self._loop.time())

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call back when the call has ended."""
        self._task.add_done_callback(lambda _: callback(self))

    async def _outcome(self) -> Outcome:
        try:
            await asyncio.shield(self._task)
        except grpc.aio.AioRpcError as error:
            return Outcome(error.code(), error.details() or "", as_metadata(error.trailing_metadata()))
        except asyncio.CancelledError:
            if not self._task.cancelled():
                raise
            return Outcome(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
        return Outcome(grpc.StatusCode.OK) if self._exchange is None else await self._exchange.wait()

    async def initial_metadata(self) -> Any:
        """Return the server's initial metadata when the call has begun."""
        await self._outcome()
        return grpc.aio.Metadata(*(self._exchange.initial_metadata if self._exchange is not None else ()))

    async def trailing_metadata(self) -> Any:
        """Return the server's trailing metadata when the call has ended."""
        return grpc.aio.Metadata(*(await self._outcome()).trailing)

    async def code(self) -> grpc.StatusCode:
        """Return the status code when the call has ended."""
        return (await self._outcome()).code

    async def details(self) -> str:
        """Return the status text when the call has ended."""
        return (await self._outcome()).details

    async def debug_error_string(self) -> str:
        """Return the status text when the call has ended."""
        return (await self._outcome()).details

    async def wait_for_connection(self) -> None:
        """Return when the call has reached the server."""
        await asyncio.shield(self._task)


class InProcessUnaryCall(_InProcessCall):
    """A call with one response; awaiting it returns the response or raises AioRpcError."""

    async def _run(self) -> Any:
        opened = await self._opening
        if not isinstance(opened, Exchange):
            # From an interceptor: a call of ours, or the response itself.
            return await opened if isinstance(opened, InProcessUnaryCall) else opened
        self._exchange = opened
        try:
            message = await opened.receive()
            outcome = await opened.wait()
        except asyncio.CancelledError:
            opened.cancel()
            raise
        if outcome.code is not grpc.StatusCode.OK or message is None:
            raise rpc_error(outcome, opened.initial_metadata)
        return self._deserialize(message)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._task.__await__()


class InProcessStreamCall(_InProcessCall):
    """A call with a stream of responses. A reader that is cancelled cancels the call, as in grpc.aio."""

    async def _run(self) -> Any:
        opened = await self._opening
        if isinstance(opened, Exchange):
            self._exchange = opened
            return None
        if isinstance(opened, InProcessStreamCall):
            # Kept: a stream call that nobody holds cancels itself.
            self._inner = opened
            iterator = await opened._task
            self._exchange = opened._exchange
            return iterator
        return opened

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is EOF:
            raise StopAsyncIteration
        return message

    async def read(self) -> Any:
        """Return the next response, or EOF at the end; raise AioRpcError if the call failed."""
        try:
            iterator = await asyncio.shield(self._task)
            if self._exchange is None:
                # An interceptor's own iterator stands for the call.
                return await anext(iterator, EOF)
            message = await self._exchange.receive()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if message is not None:
            return self._deserialize(message)
        outcome = await self._exchange.wait()
        if outcome.code is grpc.StatusCode.OK:
            return EOF
        if outcome.code is grpc.StatusCode.CANCELLED and (self._given_up or self._task.cancelled()):
            raise asyncio.CancelledError
        raise rpc_error(outcome, self._exchange.initial_metadata)

    def __del__(self) -> None:
        # A stream that nobody reads any more ends, as in grpc.aio.
        if self._exchange is not None and self._exchange.outcome is None and not self._loop.is_closed():
            self._exchange.cancel()
