"""Budgets that a real disruption controller cannot count allow nothing; others keep the status they were given."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from earmark.claimcontroller.budgets import fails_safe
from earmark.claimcontroller.component import build
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.kube.objects import Pod, PodDisruptionBudget
from earmark.runtime.clock import LoopClock
from support.embedded_world import World, pod

COUNTED = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}


def budget(status: dict[str, int], **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, **spec},
        "status": status,
    }


def bare(app: str = "x", *, controlled: bool = False) -> Pod:
    owners = [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}] if controlled else []
    return msgspec.convert({"metadata": {"name": "p", "labels": {"app": app}, "ownerReferences": owners}}, Pod)


@pytest.mark.parametrize(
    ("manifest", "subject", "expected"),
    [
        (budget(COUNTED, maxUnavailable=1), bare(), True),
        (budget(COUNTED, minAvailable="50%"), bare(), True),
        (budget(COUNTED, minAvailable=2), bare(), False),
        (budget(COUNTED, maxUnavailable=1), bare(controlled=True), False),
        (budget(COUNTED, maxUnavailable=1), bare("other"), False),
        (budget({"disruptionsAllowed": 2}, maxUnavailable=1), bare(), False),
        (budget({**COUNTED, "disruptionsAllowed": 0}, maxUnavailable=1), bare(), False),
    ],
    ids=["maxUnavailable", "percentage", "number", "controlled", "no pod", "intended", "nothing to take"],
)
def test_which_budgets_cannot_be_counted(manifest: dict[str, Any], subject: Pod, expected: bool) -> None:
    assert fails_safe(msgspec.convert(manifest, PodDisruptionBudget), [subject]) is expected


@pytest.fixture
async def world(clock: LoopClock) -> AsyncIterator[World]:
    world = World(clock)
    yield world
    await world.close()


async def allowed(world: World) -> int:
    found = await world.find(PodDisruptionBudget, "b")
    assert found is not None
    return found.status.disruptions_allowed


@pytest.mark.virtual
@pytest.mark.parametrize("fail_safe", [True, False])
async def test_such_a_budget_allows_nothing_once_it_has_a_bare_pod(world: World, fail_safe: bool) -> None:
    await world.start("claimcontroller", build, ClaimControllerSettings(budget_fail_safe=fail_safe))
    await world.apply(budget(COUNTED, maxUnavailable=1))
    await world.until(1)
    assert await allowed(world) == 2
    manifest = pod("p")
    manifest["metadata"]["labels"] = {"app": "x"}
    await world.apply(manifest)
    await world.until(2)
    assert await allowed(world) == (0 if fail_safe else 2)
