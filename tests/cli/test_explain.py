"""`earmark explain`: the device, the selector's part, the holder, the awaited claim and why preemption does not help."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.cli.explain import ask
from earmark.cli.explanation import explained, lines
from earmark.kube import objects
from earmark.v1 import common_pb2, explanation_pb2, framework_pb2
from support.client_stack import client_of, example_stack
from support.contract_stack import Stack


@pytest.fixture
async def stack(repository: Path) -> AsyncIterator[Stack]:
    async with example_stack(repository / "examples/gpu-cluster", "cluster", "running.yaml") as running:
        yield running


async def arrive(stack: Stack, repository: Path, name: str, **changes: Any) -> None:
    manifest = yaml.safe_load((repository / "examples/gpu-cluster" / name).read_text(encoding="utf-8"))
    manifest["spec"].update(changes.pop("spec", {}))
    manifest["metadata"].update(changes)
    await stack.world.apply(manifest)


async def text_of(stack: Stack, name: str) -> str:
    async with client_of(stack) as client:
        explanation = await ask(client, "default", name)
    return "\n".join(lines(explanation, stack.clock.now()))


async def tried(stack: Stack, name: str) -> None:
    async def failed() -> bool:
        async with client_of(stack) as client:
            return bool((await client.explain("default", name)).where == "unschedulable")

    await stack.until(failed)


async def test_a_stuck_claim_controller_is_named_with_claim_pod_and_since_when(stack: Stack, repository: Path) -> None:
    await arrive(stack, repository, "urgent.yaml")

    async def chosen() -> bool:
        async with client_of(stack) as client:
            return len(await client.settlements(open_only=True)) == 1

    # It has made the claim of the preemptor; the victim still terminates.
    await stack.until(chosen)
    async with client_of(stack) as client:
        await client.claim_controller.pause()

    async def gone() -> bool:
        return all(pod.metadata.name != "training" for pod in (await stack.world.api.list(objects.Pod)).items)

    await stack.until(gone)
    text = await text_of(stack, "incident")
    assert "nominated to node gpu-a" in text
    assert "awaits claim default/training-gpu" in text
    assert "training is gone since" in text
    assert "the claim controller has not released it" in text
    assert "gpu-0 for incident-gpu" in text
    assert "is being freed: claim default/training-gpu" in text


async def test_the_scheduler_s_own_words_stay_as_they_are(stack: Stack, repository: Path) -> None:
    await arrive(stack, repository, "latecomer.yaml")
    await tried(stack, "latecomer")
    condition = next(c for c in (await stack.world.pod("latecomer")).status.conditions if c.type == "PodScheduled")
    assert f"The scheduler says: {condition.message}" in await text_of(stack, "latecomer")


async def test_alike_nodes_are_one_paragraph() -> None:
    held = explanation_pb2.DeviceObstacle(
        request="c/gpu",
        kind=explanation_pb2.OBSTACLE_KIND_SELECTOR,
        detail='device.attributes["x"].gen > 1',
    )
    nodes = [f"n{number}" for number in range(40)]
    answer = framework_pb2.ExplainPodResponse(
        pod=common_pb2.PodReference(namespace="default", name="p", uid="u"),
        where="unschedulable",
        reasons=[
            framework_pb2.NodeReason(
                status=common_pb2.Status(plugin="DynamicResources", reasons=["cannot allocate all claims"]), nodes=nodes
            )
        ],
    )
    devices = explanation_pb2.ExplainDevicesResponse()
    for node in nodes:
        item = devices.nodes.add(node_name=node).devices.add(device=f"d/{node}/0")
        item.MergeFrom(held)
    devices.nodes[7].devices[0].kind = explanation_pb2.OBSTACLE_KIND_FREE
    told = list(lines(explained(answer, devices), datetime(2026, 1, 1, tzinfo=UTC)))
    heads = [line for line in told if line.startswith(("Node", "39 nodes"))]
    assert heads == [
        "39 nodes (n0, n1, n2, n3, n4, n5 and 33 more): cannot allocate all claims (filter DynamicResources)",
        "Node n7: cannot allocate all claims (filter DynamicResources)",
    ]
    assert "  ... and 31 devices more that are alike" in told


async def test_holders_and_holds_are_named_with_why_they_stay(stack: Stack, repository: Path) -> None:
    await arrive(stack, repository, "urgent.yaml")
    await arrive(stack, repository, "latecomer.yaml")
    await tried(stack, "latecomer")
    text = await text_of(stack, "latecomer")
    assert "held for default/incident" in text
    assert "taken by default/serving" in text
    assert "the priority of serving (1000) is higher than that of this pod (100)" in text
