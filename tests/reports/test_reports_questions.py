"""Reports that ask the services something: why a pod waits, and what would happen."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from earmark.kube import objects
from earmark.runtime.virtual import virtual_clock
from earmark.v1 import preemption_pb2
from support.client_stack import client_of
from support.contract_stack import Stack
from support.reports_play import FOLDER

pytestmark = pytest.mark.virtual

KINDS = (objects.Pod, objects.ResourceClaim, objects.Node, objects.ResourceSlice, objects.Event)


@pytest.fixture
async def stack() -> AsyncIterator[Stack]:
    stack = Stack(virtual_clock(), "inprocess")
    await stack.start_all()
    try:
        yield stack
    finally:
        await stack.close()


def manifests(stem: str) -> list[Any]:
    """Return the objects of a scenario file's first scenario, then those that its steps apply, in order."""
    spec = next(iter(yaml.safe_load_all((FOLDER / f"{stem}.yaml").read_text(encoding="utf-8"))))["spec"]
    return [*flattened(spec["objects"]), *[item for step in spec["timeline"] for item in step.get("apply", ())]]


def flattened(entries: list[Any], folder: str = "") -> list[Any]:
    """Return the entries with the files that they name read."""
    found: list[Any] = []
    for entry in entries:
        if "file" in entry:
            path = FOLDER / folder / entry["file"]
            found += flattened(yaml.safe_load(path.read_text(encoding="utf-8")), str(path.parent.relative_to(FOLDER)))
        else:
            found.append(entry)
    return found


async def apply_all(stack: Stack, stem: str, but: str = "") -> None:
    """Apply the objects of a scenario, all but one pod, and let everything settle."""
    for manifest in manifests(stem):
        if (manifest["kind"], manifest["metadata"]["name"]) != ("Pod", but):
            await stack.world.apply(manifest)
            if manifest["kind"] == "Pod":
                await stack.world.until(stack.world.seconds + 5)


async def versions(stack: Stack) -> dict[tuple[str, str], str]:
    return {
        (kind.__name__, value.metadata.name): value.metadata.resource_version
        for kind in KINDS
        for value in (await stack.world.api.list(kind)).items
    }


@pytest.mark.kep("R57")
async def test_r57_every_node_has_its_own_reason(stack: Stack) -> None:
    await apply_all(stack, "r57-reasons-per-node")
    async with client_of(stack) as client:
        answer = await client.explain("default", "p")
    said = {
        node: (list(reason.status.reasons), list(reason.preemption.reasons))
        for reason in answer.reasons
        for node in reason.nodes
    }
    assert sorted(said) == ["n1", "n2", "n3", "n4"]
    assert "taint" in said["n1"][0][0]
    assert "not helpful" in said["n1"][1][0]
    assert said["n2"][1] == ["cannot allocate all claims"]
    assert said["n3"][1] == ["No preemption victims found for incoming pod"]
    assert said["n4"][1] == ["cannot allocate all claims"]


@pytest.mark.kep("R59")
async def test_r59_a_dry_run_says_what_then_happens_and_changes_nothing(stack: Stack) -> None:
    await apply_all(stack, "r29-preemption-for-a-device", but="p")
    preemptor = next(one for one in manifests("r29-preemption-for-a-device") if one["metadata"]["name"] == "p")
    async with client_of(stack) as client:
        before = await versions(stack)
        made_up = client.made_up_pod(preemptor, priority=100)
        answers = [await client.preemption.dry_run(pod=made_up) for _ in range(2)]
        await stack.world.until(stack.world.seconds + 30)
        assert await versions(stack) == before
    assert answers[0] == answers[1]
    assert isinstance(answers[0], preemption_pb2.DryRunResponse)
    assert answers[0].chosen.node_name == "n1"
    assert [victim.name for victim in answers[0].chosen.victims] == ["v"]
    await stack.world.apply(preemptor)
    await stack.until(lambda: _gone(stack, "v"), seconds=60)


async def _gone(stack: Stack, name: str) -> bool:
    return await stack.world.find(objects.Pod, name) is None
