"""Everything that the protos promise is served, by the process that the architecture names, with health and reflection."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from support.contract_rpcs import PROCESS, RPCS
from support.contract_stack import ALL, Stack

# Codes that a call with an empty request may end with; anything else is a method that is missing or broken.
_ANSWERS = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
}


async def _code(call: Any) -> grpc.StatusCode:
    try:
        if hasattr(call, "read"):
            # A stream that says nothing for a while is served, and ends by its deadline.
            await call.read()
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_every_rpc_of_the_protos_is_served(services: Stack) -> None:
    codes = {}
    for name, rpc in RPCS.items():
        code = await _code(rpc.on(services.channel(rpc.process))(rpc.request(), timeout=0.3))
        if rpc.streaming and code is grpc.StatusCode.DEADLINE_EXCEEDED:
            code = grpc.StatusCode.OK
        codes[name] = code
    assert {name: code for name, code in codes.items() if code not in _ANSWERS} == {}


def test_every_service_of_the_protos_has_a_process() -> None:
    assert {rpc.service for rpc in RPCS.values()} == set(PROCESS)
    assert set(PROCESS.values()) == set(ALL)


async def test_every_rpc_wants_a_deadline(services: Stack) -> None:
    for rpc in RPCS.values():
        if rpc.streaming:
            continue
        with pytest.raises(ValueError, match=f"{rpc.name}: every call needs a timeout"):
            await rpc.on(services.channel(rpc.process))(rpc.request())


async def test_a_foreign_client_without_a_deadline_is_refused(services: Stack, kind: str) -> None:
    for rpc in RPCS.values():
        if rpc.streaming:
            continue
        if kind == "socket":
            async with grpc.aio.insecure_channel(services.address(rpc.process)) as channel:
                with pytest.raises(grpc.aio.AioRpcError) as failure:
                    await rpc.on(channel)(rpc.request())
        else:
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await rpc.on(services.world.network.channel(rpc.process))(rpc.request())
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert failure.value.details() == f"/earmark.v1.{rpc.name}: the call has no deadline"


@pytest.mark.parametrize("kind", ["socket"], indirect=True)
async def test_health_answers_for_each_service(services: Stack) -> None:
    for name in ALL:
        async with grpc.aio.insecure_channel(services.address(name)) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            for service in ("", *(f"earmark.v1.{key}" for key, process in PROCESS.items() if process == name)):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
                assert answer.status == health_pb2.HealthCheckResponse.SERVING, service
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await stub.Check(health_pb2.HealthCheckRequest(service="earmark.v1.Nobody"), timeout=5)
            assert failure.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("kind", ["socket"], indirect=True)
async def test_reflection_lists_the_services_and_their_files(services: Stack) -> None:
    for name in ALL:
        mine = {f"earmark.v1.{key}" for key, process in PROCESS.items() if process == name}
        async with grpc.aio.insecure_channel(services.address(name)) as channel:
            stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
            request = reflection_pb2.ServerReflectionRequest(list_services="")
            (answer,) = [item async for item in stub.ServerReflectionInfo(iter([request]), timeout=5)]
            listed = {item.name for item in answer.list_services_response.service}
            assert listed == mine | {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
            for symbol in sorted(mine):
                request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)
                (answer,) = [item async for item in stub.ServerReflectionInfo(iter([request]), timeout=5)]
                assert answer.file_descriptor_response.file_descriptor_proto, symbol
