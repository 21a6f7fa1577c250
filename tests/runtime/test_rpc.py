"""The in-process path behaves as a socket does: every test runs over both."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from earmark.kube.api import ApiError, ApiUnavailable
from earmark.runtime.clock import SystemClock
from earmark.runtime.export import MemorySink
from earmark.runtime.ids import SeededIds
from earmark.runtime.inprocess import InProcessNetwork, InProcessServer
from earmark.runtime.interceptors import ClientInterceptor, ServerInterceptor
from earmark.runtime.server import AddressError, ServiceServer, check_address, open_channel, serving
from earmark.runtime.telemetry import Tracing
from earmark.v1 import nodes_pb2, nodes_pb2_grpc, settlement_pb2, settlement_pb2_grpc


class Servicer(nodes_pb2_grpc.NodesServiceServicer, settlement_pb2_grpc.SettlementServiceServicer):
    """Answers as the test says."""

    def __init__(self) -> None:
        self.behaviour: Callable[[Any, Any], Any] | None = None
        self.begun = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.metadata: dict[str, Any] = {}
        self.requests: list[Any] = []

    async def Hold(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        self.begun.set()
        self.metadata = dict(context.invocation_metadata())
        if self.behaviour is None:
            return nodes_pb2.HoldResponse()
        try:
            return await self.behaviour(request, context)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def WatchSettlements(self, request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            for generation in range(3):
                yield settlement_pb2.WatchSettlementsResponse(
                    settlement=settlement_pb2.Settlement(generation=generation)
                )
            if self.behaviour is not None:
                await self.behaviour(request, context)
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled.set()
            raise


class Wire:
    """One server and a channel to it, over either path."""

    def __init__(self, servicer: Servicer, channel: grpc.aio.Channel, kill: Callable[[], Any], sink: MemorySink):
        self.servicer = servicer
        self.channel = channel
        self.nodes: Any = nodes_pb2_grpc.NodesServiceStub(channel)
        self.settlements: Any = settlement_pb2_grpc.SettlementServiceStub(channel)
        self.kill = kill
        self.sink = sink


@pytest.fixture(params=["socket", "inprocess"])
async def wire(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Wire]:
    servicer = Servicer()
    sink = MemorySink()
    telemetry = Tracing("test", SystemClock(), SeededIds(1), sink, strict=True)
    if request.param == "inprocess":
        network = InProcessNetwork()
        server = InProcessServer([ServerInterceptor(telemetry)])
        _register(servicer, server)
        network.serve("nodes", server)

        async def kill() -> None:
            network.remove("nodes")

        yield Wire(servicer, network.channel("nodes", [ClientInterceptor(telemetry)]), kill, sink)
        return
    socket = ServiceServer(f"unix:{tmp_path}/s.sock", telemetry, grace=0)
    _register(servicer, socket)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(socket)
        channel = await stack.enter_async_context(open_channel(socket.address, telemetry))

        async def kill_socket() -> None:
            await socket._server.stop(0)

        yield Wire(servicer, channel, kill_socket, sink)


def _register(servicer: Servicer, server: Any) -> None:
    nodes_pb2_grpc.add_NodesServiceServicer_to_server(servicer, server)
    settlement_pb2_grpc.add_SettlementServiceServicer_to_server(servicer, server)


async def _fails(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_a_call_is_answered_and_its_message_is_a_copy(wire: Wire) -> None:
    sent = nodes_pb2.HoldRequest(node_name="n1")
    assert await wire.nodes.Hold(sent, timeout=5) == nodes_pb2.HoldResponse()
    assert wire.servicer.requests == [sent]
    assert wire.servicer.requests[0] is not sent


async def test_a_call_without_a_timeout_is_refused_by_the_client(wire: Wire) -> None:
    with pytest.raises(ValueError, match="every call needs a timeout"):
        await wire.nodes.Hold(nodes_pb2.HoldRequest())


async def test_a_deadline_ends_the_call_on_both_sides(wire: Wire) -> None:
    wire.servicer.behaviour = lambda request, context: asyncio.sleep(60)
    error = await _fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=0.05))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(wire.servicer.cancelled.wait(), 5)


async def test_the_servicer_sees_the_time_that_is_left(wire: Wire) -> None:
    left: list[float] = []

    async def behaviour(request: Any, context: Any) -> Any:
        left.append(context.time_remaining())
        return nodes_pb2.HoldResponse()

    wire.servicer.behaviour = behaviour
    await wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=7)
    assert 5 < left[0] <= 7.1


async def test_abort_reaches_the_client_with_code_details_and_metadata(wire: Wire) -> None:
    async def behaviour(request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.NOT_FOUND, "node_name: no such node", (("hint", "n2"),))

    wire.servicer.behaviour = behaviour
    error = await _fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5))
    assert (error.code(), error.details()) == (grpc.StatusCode.NOT_FOUND, "node_name: no such node")
    assert dict(error.trailing_metadata())["hint"] == "n2"


async def test_set_code_fails_the_call(wire: Wire) -> None:
    async def behaviour(request: Any, context: Any) -> Any:
        context.set_code(grpc.StatusCode.FAILED_PRECONDITION)
        context.set_details("old epoch")
        return nodes_pb2.HoldResponse()

    wire.servicer.behaviour = behaviour
    error = await _fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5))
    assert (error.code(), error.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "old epoch")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ApiUnavailable("connection refused"), grpc.StatusCode.UNAVAILABLE),
        (ApiError(409, "Conflict", "changed"), grpc.StatusCode.ABORTED),
        (ApiError(404, "NotFound", "gone"), grpc.StatusCode.NOT_FOUND),
        (RuntimeError("boom"), grpc.StatusCode.INTERNAL),
    ],
)
async def test_exceptions_of_a_servicer_become_statuses(wire: Wire, raised: Exception, code: grpc.StatusCode) -> None:
    async def behaviour(request: Any, context: Any) -> Any:
        raise raised

    wire.servicer.behaviour = behaviour
    assert (await _fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5))).code() is code


async def test_cancelling_the_waiter_cancels_the_servicer(wire: Wire) -> None:
    begun = asyncio.Event()

    async def behaviour(request: Any, context: Any) -> Any:
        begun.set()
        await asyncio.sleep(60)

    wire.servicer.behaviour = behaviour

    async def call() -> None:
        await wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=60)

    task = asyncio.ensure_future(call())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(wire.servicer.cancelled.wait(), 5)


async def test_a_stream_arrives_in_order_and_ends(wire: Wire) -> None:
    call = wire.settlements.WatchSettlements(settlement_pb2.WatchSettlementsRequest())
    assert [message.settlement.generation async for message in call] == [0, 1, 2]


async def test_a_reader_that_is_cancelled_ends_its_stream(wire: Wire) -> None:
    wire.servicer.behaviour = lambda request, context: asyncio.sleep(60)
    third = asyncio.Event()

    async def read() -> None:
        async for message in wire.settlements.WatchSettlements(settlement_pb2.WatchSettlementsRequest()):
            if message.settlement.generation == 2:
                third.set()

    task = asyncio.ensure_future(read())
    await third.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(wire.servicer.cancelled.wait(), 5)


async def test_a_server_that_dies_ends_running_and_later_calls(wire: Wire) -> None:
    wire.servicer.behaviour = lambda request, context: asyncio.sleep(60)
    call = asyncio.ensure_future(_fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5)))
    stream = wire.settlements.WatchSettlements(settlement_pb2.WatchSettlementsRequest())
    seen = [(await stream.read()).settlement.generation for _ in range(3)]
    await wire.servicer.begun.wait()
    await wire.kill()
    assert seen == [0, 1, 2]
    assert (await call).code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert (await _fails(stream.read())).code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    late = await _fails(wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5))
    assert late.code() is grpc.StatusCode.UNAVAILABLE


async def test_an_unknown_method_is_unimplemented(wire: Wire) -> None:
    method: Any = wire.channel.unary_unary(
        "/other.Service/Method", nodes_pb2.HoldRequest.SerializeToString, nodes_pb2.HoldResponse.FromString
    )
    assert (await _fails(method(nodes_pb2.HoldRequest(), timeout=5))).code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_trace_goes_on_at_the_server(wire: Wire) -> None:
    telemetry = Tracing("caller", SystemClock(), SeededIds(2), wire.sink, strict=True)
    with telemetry.span("scheduling.attempt"):
        identity = telemetry.current()
        assert identity is not None
        await wire.nodes.Hold(nodes_pb2.HoldRequest(), timeout=5)
    client, server = wire.sink.named("earmark.v1.NodesService/Hold")[::-1]
    assert server.context.trace_id == client.context.trace_id == identity.trace_id
    assert server.parent is not None
    assert server.parent.span_id == client.context.span_id
    assert client.parent is not None
    assert client.parent.span_id == identity.span_id


async def test_a_message_beyond_the_limit_is_refused(wire: Wire) -> None:
    request = nodes_pb2.HoldRequest(node_name="x" * (64 * 1024 * 1024 + 1))
    error = await _fails(wire.nodes.Hold(request, timeout=20))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.virtual
async def test_deadlines_follow_virtual_time() -> None:
    network = InProcessNetwork()
    server = InProcessServer()
    servicer = Servicer()
    servicer.behaviour = lambda request, context: asyncio.sleep(3600)
    _register(servicer, server)
    network.serve("nodes", server)
    stub: Any = nodes_pb2_grpc.NodesServiceStub(network.channel("nodes"))
    error = await _fails(stub.Hold(nodes_pb2.HoldRequest(), timeout=600))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert asyncio.get_running_loop().time() == 600


@pytest.mark.virtual
async def test_wait_for_ready_waits_for_a_server() -> None:
    network = InProcessNetwork()
    stub: Any = nodes_pb2_grpc.NodesServiceStub(network.channel("nodes"))
    call = asyncio.ensure_future(_await(stub.Hold(nodes_pb2.HoldRequest(), timeout=60, wait_for_ready=True)))
    await asyncio.sleep(30)
    server = InProcessServer()
    _register(Servicer(), server)
    network.serve("nodes", server)
    assert await call == nodes_pb2.HoldResponse()


async def _await(call: Any) -> Any:
    return await call


async def test_health_turns_serving_when_told(tmp_path: Path) -> None:
    server = ServiceServer(f"unix:{tmp_path}/h.sock", Tracing("t", SystemClock(), SeededIds(1)), grace=0)
    async with server:
        assert not await serving(server.address)
        await server.set_ready(ready=True)
        assert await serving(server.address)
        assert (tmp_path / "h.sock").stat().st_mode & 0o777 == 0o600
    assert not await serving(server.address, timeout=0.2)


async def test_a_socket_that_another_process_listens_on_is_not_taken(tmp_path: Path) -> None:
    telemetry = Tracing("t", SystemClock(), SeededIds(1))
    async with ServiceServer(f"unix:{tmp_path}/h.sock", telemetry, grace=0) as server:
        await server.set_ready(ready=True)
        with pytest.raises(AddressError, match="another process listens there"):
            async with ServiceServer(f"unix:{tmp_path}/h.sock", telemetry):
                pass
        assert await serving(server.address)


def test_a_socket_that_was_left_behind_is_taken(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(f"{tmp_path}/h.sock")
    left.close()

    async def serve() -> bool:
        async with ServiceServer(f"unix:{tmp_path}/h.sock", Tracing("t", SystemClock(), SeededIds(1))) as server:
            await server.set_ready(ready=True)
            return await serving(server.address)

    assert asyncio.run(serve())


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("0.0.0.0:80", "loopback only"),
        ("unix:relative.sock", "absolute path"),
        ("unix:/" + "x" * 120, "107 bytes at most"),
        ("nowhere", "want unix:/path or 127.0.0.1:port"),
        ("127.0.0.1:99999", "want unix:/path or 127.0.0.1:port"),
    ],
)
def test_an_address_that_must_not_be_listened_on_is_refused(address: str, message: str) -> None:
    with pytest.raises(AddressError, match=message):
        check_address(address)
