"""The client's sandboxes: kept alive, exact in their forks, and without a trace in what is real."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.client import EarmarkClient, PreconditionFailed
from earmark.kube import objects
from earmark.v1 import common_pb2
from support.client_stack import client_of, example_stack
from support.contract_stack import Stack

pytestmark = pytest.mark.virtual

NODES = ("gpu-a", "gpu-b")


@pytest.fixture
async def stack(repository: Path) -> AsyncIterator[Stack]:
    async with example_stack(repository / "examples/gpu-cluster", "cluster", "running.yaml") as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[EarmarkClient]:
    async with client_of(stack) as client:
        yield client


@pytest.fixture
def urgent(repository: Path) -> dict[str, Any]:
    text = (repository / "examples/gpu-cluster/urgent.yaml").read_text(encoding="utf-8")
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


async def node_of(stack: Stack, pod: str) -> str:
    return (await stack.world.pod(pod)).spec.node_name


async def test_a_fork_is_what_it_was_when_its_block_ends(
    client: EarmarkClient, stack: Stack, urgent: dict[str, Any]
) -> None:
    node, training = await node_of(stack, "training"), await client.pod("training")
    async with client.cycle(client.made_up_pod(urgent, priority=10000)) as cycle:
        assert [verdict.fits for verdict in await cycle.filter(NODES)] == [False, False]
        async with cycle.fork(node) as fork:
            await fork.remove_pod(training)
            assert (await fork.filter()).fits
        assert str(await cycle.fork(node).filter()) == f"{node}: UNSCHEDULABLE: cannot allocate all claims"


async def test_a_nomination_of_a_sandbox_holds_there_and_nowhere_else(
    client: EarmarkClient, stack: Stack, urgent: dict[str, Any]
) -> None:
    node, training = await node_of(stack, "training"), await client.pod("training")
    incident = client.made_up_pod(urgent, priority=10000)
    async with client.cycle(incident) as cycle:
        answer = await cycle.add_nominated_pod(node, [training])
        assert answer.status.code in (common_pb2.STATUS_CODE_UNSPECIFIED, common_pb2.STATUS_CODE_SUCCESS)
        await cycle.confirm_nominated_pod()
    sandbox = await client.sandbox()
    held = await sandbox.held()
    assert [list(item.devices) for item in held.nominations] == [[f"gpu.example.com/{node}/gpu-0"]]
    assert not (await sandbox.pod_eligible_to_preempt(incident, node)).eligible
    assert not (await client.nominations.list_nominations()).nominations
    await sandbox.remove_nominated_pod(incident)
    assert not (await sandbox.held()).nominations


async def test_a_proposal_that_is_not_confirmed_ends_with_its_cycle(
    client: EarmarkClient, stack: Stack, urgent: dict[str, Any]
) -> None:
    node, training = await node_of(stack, "training"), await client.pod("training")
    async with client.cycle(client.made_up_pod(urgent, priority=10000)) as cycle:
        await cycle.add_nominated_pod(node, [training])
    held = await (await client.sandbox()).held()
    assert not held.nominations
    assert not held.victim_claims


async def test_a_sandbox_outlives_hours_of_silence(client: EarmarkClient, urgent: dict[str, Any]) -> None:
    async with client.cycle(client.made_up_pod(urgent)) as cycle:
        await asyncio.sleep(3 * 3600)
        assert len(await cycle.filter(NODES)) == 2


async def test_a_sandbox_that_is_lost_says_so(client: EarmarkClient, stack: Stack) -> None:
    sandbox = await client.sandbox()
    # The plugin forgets it, as after a restart.
    stack.clock.shift += 61
    with pytest.raises(PreconditionFailed) as failure:
        await sandbox.held()
    assert failure.value.field == "session"


async def test_a_client_whose_sandbox_is_lost_closes_all_the_same(stack: Stack) -> None:
    async with client_of(stack) as client:
        sandbox = await client.sandbox()
        # Found out by the client itself, which wants to keep it.
        stack.clock.shift += 61
        await asyncio.sleep(25)
        with pytest.raises(PreconditionFailed):
            _ = sandbox.session


async def test_first_calls_at_once_share_one_sandbox(client: EarmarkClient) -> None:
    first, second = await asyncio.gather(client.sandbox(), client.sandbox())
    assert first is second


async def test_closing_the_client_closes_its_sandbox(stack: Stack) -> None:
    async with client_of(stack) as client:
        session = (await client.sandbox()).session
    async with client_of(stack) as other:
        with pytest.raises(PreconditionFailed):
            await other.plugin.keep_session(session=session)


async def test_another_sandbox_sees_the_present_state(
    client: EarmarkClient, stack: Stack, urgent: dict[str, Any]
) -> None:
    incident = client.made_up_pod(urgent)
    node = await node_of(stack, "training")
    early = await client.sandbox()
    claim = await stack.world.claim_of("training")
    assert claim is not None
    await stack.world.api.delete(objects.Pod, "training", "default")
    await stack.until(lambda: deallocated(stack, claim))
    async with client.new_sandbox() as late:
        for sandbox, fits in ((early, False), (late, True)):
            async with sandbox.cycle(incident) as cycle:
                assert [verdict.fits for verdict in await cycle.filter([node])] == [fits]


async def deallocated(stack: Stack, claim: objects.ResourceClaim) -> bool:
    found = await stack.world.find(objects.ResourceClaim, claim.metadata.name)
    return found is None or found.status.allocation is None
