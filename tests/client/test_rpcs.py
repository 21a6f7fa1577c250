"""The generated methods: all RPCs, with the contract's fields, up to date, and errors that say what and where."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from earmark.client import EarmarkClient, InvalidRequest, PreconditionFailed, ServiceUnavailable, TimedOut
from earmark.client.calls import PROCESSES, FieldError
from earmark.client.contract import Rpc as ProtoRpc
from earmark.client.generate import generate
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.virtual import virtual_clock
from earmark.v1 import common_pb2
from support.client_stack import client_of
from support.contract_rpcs import RPCS, Rpc
from support.contract_stack import Stack


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    stack = Stack(virtual_clock(), "inprocess")
    await stack.start_all()
    yield stack
    await stack.close()


def method_of(client: EarmarkClient, rpc: Rpc) -> Callable[..., Any]:
    name = ProtoRpc(rpc.method, "", "", "", rpc.streaming, ()).python_name
    of_service = f"{rpc.service.removesuffix('Service')}Rpcs"
    (rpcs,) = [value for value in vars(client).values() if type(value).__name__ == of_service]
    found: Callable[..., Any] = getattr(rpcs, name)
    return found


@pytest.mark.parametrize("name", sorted(RPCS))
def test_every_rpc_of_the_contract_has_a_method_with_the_fields_of_its_request(name: str) -> None:
    rpc = RPCS[name]
    method = method_of(EarmarkClient(RuntimeSettings()), rpc)
    assert [*inspect.signature(method).parameters] == [*(f.name for f in rpc.request.DESCRIPTOR.fields), "timeout"]
    assert PROCESSES[rpc.service] == rpc.process


def test_the_generated_modules_are_those_of_the_protos(repository: Path) -> None:
    for name, text in generate(repository / "protos").items():
        assert (repository / "clients/earmark/client" / name).read_text(encoding="utf-8") == text, (
            f"{name} is old: run `python -m earmark.client.generate`"
        )


@pytest.mark.virtual
@pytest.mark.parametrize("name", sorted(name for name, rpc in RPCS.items() if not rpc.streaming))
async def test_every_unary_rpc_reaches_its_service(stack: Stack, name: str) -> None:
    async with client_of(stack) as client:
        refused = None
        try:
            await method_of(client, RPCS[name])()
        except (InvalidRequest, PreconditionFailed) as error:
            # An empty request may be refused, but then by the service and with the field.
            refused = error
    assert refused is None or refused.field
    assert f"/earmark.v1.{name}" in {method for method, _ in stack.calls}


@pytest.mark.virtual
async def test_a_stream_goes_on_until_its_reader_leaves(stack: Stack) -> None:
    await stack.cluster("d0")
    await stack.pod("v")

    async def v_runs() -> bool:
        return (await stack.world.pod("v")).status.phase == "Running"

    await stack.until(v_runs)
    await stack.pod("p", "high")
    async with client_of(stack) as client:
        async for settlement in client.watch_settlements():
            assert settlement.preemptor.name == "p"
            break


@pytest.mark.virtual
async def test_a_refused_field_is_named_with_service_and_address(stack: Stack) -> None:
    async with client_of(stack) as client:
        with pytest.raises(InvalidRequest) as failure:
            await client.plugin.pre_filter(pod=common_pb2.PodInput(pod=common_pb2.PodReference(name="p")))
    assert failure.value.field == "pod.pod.uid"
    assert str(failure.value).startswith(
        "dynamicresources at unix:/nowhere/run/dynamicresources.sock: "
        "SchedulerPluginService/PreFilter: INVALID_ARGUMENT: pod.pod.uid: "
    )


@pytest.mark.virtual
async def test_a_value_of_the_wrong_type_is_named_before_anything_is_sent(stack: Stack) -> None:
    async with client_of(stack) as client:
        with pytest.raises(FieldError, match=r"^ExplainPodRequest: pod: str does not fit"):
            await client.framework.explain_pod(pod="p")  # type: ignore[arg-type]


@pytest.mark.virtual
async def test_a_service_that_is_down_is_named_with_its_address(stack: Stack) -> None:
    await stack.kill("framework")
    async with client_of(stack) as client:
        with pytest.raises(ServiceUnavailable) as failure:
            await client.queue()
    assert str(failure.value) == (
        "framework does not answer at unix:/nowhere/run/framework.sock; is it running? (make run)"
    )


async def test_a_socket_that_is_not_there_is_named_too(tmp_path: Path) -> None:
    async with EarmarkClient(RuntimeSettings(state_dir=str(tmp_path))) as client:
        with pytest.raises(ServiceUnavailable, match=rf"^nodes does not answer at unix:{tmp_path}/run/nodes\.sock"):
            await client.nodes.get_nodes_status()


@pytest.mark.virtual
async def test_a_call_that_takes_too_long_says_so(stack: Stack) -> None:
    async with client_of(stack) as client:
        with pytest.raises(TimedOut, match="SettlementService/WatchSettlements: DEADLINE_EXCEEDED"):
            async for _ in client.settlement.watch_settlements(timeout=1.0):
                pass
