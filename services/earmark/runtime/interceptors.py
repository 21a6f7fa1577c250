"""What happens to every RPC, on a socket and in process: trace context, deadlines, errors, logs.

Servicers abort with a status of their own where they can name the field; what else leaves them is mapped here.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn

import grpc
from opentelemetry.trace import SpanKind

from earmark.kube.api import ApiError, ApiUnavailable
from earmark.runtime.telemetry import RpcTelemetry, parse_traceparent, traceparent

_log = logging.getLogger("earmark.rpc")

# Only our own RPCs are held to deadlines and traced; health and reflection are called by tools as they are.
_OURS = "/earmark."

TRACEPARENT = "traceparent"


class ClientInterceptor(grpc.aio.UnaryUnaryClientInterceptor, grpc.aio.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    """Puts the trace context into the metadata and refuses calls without a deadline."""

    def __init__(self, telemetry: RpcTelemetry) -> None:
        self._telemetry = telemetry

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Run the call in a client span. Raises ValueError for a call without timeout."""
        method = _text(client_call_details.method)
        if client_call_details.timeout is None and method.startswith(_OURS):
            raise ValueError(f"{method}: every call needs a timeout")
        with self._telemetry.rpc_span(method, SpanKind.CLIENT, self._telemetry.current()):
            call = await continuation(self._with_context(client_call_details), request)
            # The span ends with the call, not with its beginning.
            return await call

    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Begin the stream with the context's span; streams may live as long as they like."""
        return await continuation(self._with_context(client_call_details), request)

    def _with_context(self, details: Any) -> Any:
        identity = self._telemetry.current()
        if identity is None:
            return details
        pairs = [(key, value) for key, value in details.metadata or () if key != TRACEPARENT]
        metadata = grpc.aio.Metadata(*pairs, (TRACEPARENT, traceparent(identity)))
        return details._replace(metadata=metadata)


class ServerInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Runs servicers in a span of the caller's trace, asks for deadlines, turns exceptions into statuses, logs."""

    def __init__(self, telemetry: RpcTelemetry) -> None:
        self._telemetry = telemetry

    async def intercept_service(self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any) -> Any:
        """Return the method's handler with this around it."""
        handler = await continuation(handler_call_details)
        method = _text(handler_call_details.method)
        if handler is None or handler.request_streaming or not method.startswith(_OURS):
            return handler
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._streaming(method, handler.unary_stream), handler.request_deserializer, handler.response_serializer
            )
        return grpc.unary_unary_rpc_method_handler(
            self._unary(method, handler.unary_unary), handler.request_deserializer, handler.response_serializer
        )

    def _unary(self, method: str, behaviour: Callable[[Any, Any], Awaitable[Any]]) -> Any:
        async def serve(request: Any, context: Any) -> Any:
            # gRPC says "none" in different ways: None in process, a huge number or None on a socket.
            if context.time_remaining() is None:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{method}: the call has no deadline")
            with self._telemetry.rpc_span(method, SpanKind.SERVER, _parent(context)):
                try:
                    response = await behaviour(request, context)
                except Exception as error:  # noqa: BLE001 - the one place that turns exceptions into statuses
                    await _fail(method, context, error)
                _log.debug("%s", method)
                return response

        return serve

    def _streaming(self, method: str, behaviour: Callable[[Any, Any], Any]) -> Any:
        async def serve(request: Any, context: Any) -> AsyncIterator[Any]:
            # No span: a stream's would end when the service does. The context's span is the caller's all the same.
            try:
                responses = behaviour(request, context)
                if inspect.isawaitable(responses):
                    # A servicer that writes to the context itself.
                    await responses
                    return
                async for response in responses:
                    yield response
            except Exception as error:  # noqa: BLE001 - the one place that turns exceptions into statuses
                await _fail(method, context, error)

        return serve


def _text(method: Any) -> str:
    return method.decode() if isinstance(method, bytes) else str(method)


def _parent(context: Any) -> Any:
    for key, value in context.invocation_metadata() or ():
        if key == TRACEPARENT:
            return parse_traceparent(value)
    return None


async def _fail(method: str, context: Any, error: Exception) -> NoReturn:
    """End a call as the exception says: what the servicer decided itself stays."""
    if isinstance(error, grpc.aio.AbortError):
        _log.info("%s: %s %s", method, context.code(), context.details())
        raise error
    code, details = status_of(error)
    if code is grpc.StatusCode.INTERNAL:
        _log.error("%s failed", method, exc_info=error)
    else:
        _log.warning("%s: %s: %s", method, code.name, details)
    await context.abort(code, details)
    raise AssertionError("abort returned")


def status_of(error: BaseException) -> tuple[grpc.StatusCode, str]:
    """Return the gRPC status of an exception that left a servicer."""
    if isinstance(error, ApiUnavailable):
        return grpc.StatusCode.UNAVAILABLE, f"Kubernetes API: {error}"
    if isinstance(error, ApiError):
        if error.conflict:
            return grpc.StatusCode.ABORTED, error.message
        if error.not_found:
            return grpc.StatusCode.NOT_FOUND, error.message
        if 400 <= error.status < 500:
            return grpc.StatusCode.FAILED_PRECONDITION, error.message
        return grpc.StatusCode.UNAVAILABLE, error.message
    if isinstance(error, grpc.aio.AioRpcError):
        # From a call that the servicer made: the same status, and whose it was.
        return error.code(), f"from another service: {error.details()}"
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return grpc.StatusCode.DEADLINE_EXCEEDED, str(error) or "timed out"
    return grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}"
