"""`earmark timeline`: who was preempted for whom, found by victim, preemptor and node, also after everybody is gone."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from pathlib import Path

import pytest
import yaml

from earmark.cli.timeline import follow
from earmark.cli.windows import Wanted, as_data, lines
from earmark.dynamicresources import component as dynamicresources
from earmark.kube import objects
from earmark.v1 import settlement_pb2
from support.client_stack import client_of, example_stack
from support.contract_stack import PLUGIN, Stack


@pytest.fixture
async def settled(repository: Path) -> AsyncIterator[Stack]:
    """A stack in which incident has got the GPU of training."""
    examples = repository / "examples/gpu-cluster"
    async with example_stack(examples, "cluster", "running.yaml") as stack:
        await stack.world.apply(yaml.safe_load((examples / "urgent.yaml").read_text(encoding="utf-8")))

        async def runs() -> bool:
            pods = (await stack.world.api.list(objects.Pod)).items
            return any(pod.metadata.name == "incident" and pod.status.phase == "Running" for pod in pods)

        async def told() -> bool:
            events = (await stack.world.api.list(objects.Event)).items
            return any(event.reason == "PreemptionSettled" for event in events)

        await stack.until(runs)
        await stack.until(told)
        yield stack


async def windows(stack: Stack, wanted: Wanted) -> list[settlement_pb2.Settlement]:
    async with client_of(stack) as client:
        return [window for window in await client.settlements() if wanted.admits(window)]


@pytest.mark.kep("R58")
async def test_a_window_is_found_by_victim_by_preemptor_and_by_node(settled: Stack) -> None:
    for wanted in (
        Wanted(victim="training"),
        Wanted(preemptor="default/incident"),
        Wanted(node="gpu-a"),
        Wanted(pod="training"),
        Wanted(namespace="default"),
    ):
        assert [window.preemptor.name for window in await windows(settled, wanted)] == ["incident"], wanted
    for wanted in (
        Wanted(victim="incident"),
        Wanted(preemptor="training"),
        Wanted(node="gpu-b"),
        Wanted(namespace="x"),
    ):
        assert await windows(settled, wanted) == [], wanted


@pytest.mark.kep("R58")
async def test_past_windows_survive_a_restart_and_the_pods(settled: Stack) -> None:
    (before,) = await windows(settled, Wanted())
    await settled.world.api.delete(objects.Pod, "incident", "default", grace_period_seconds=0)
    await settled.start("dynamicresources", dynamicresources.build, PLUGIN)

    async def known() -> bool:
        return bool(await windows(settled, Wanted()))

    await settled.until(known)
    (after,) = await windows(settled, Wanted())
    assert as_data(after) == as_data(before)


async def test_the_lines_of_a_window(settled: Stack) -> None:
    (window,) = await windows(settled, Wanted())
    now = window.t4.ToDatetime(tzinfo=UTC) + timedelta(seconds=9)
    told = list(lines(window, now, 80))
    assert told[0].endswith("default/incident on node gpu-a: scheduled")
    assert told[1:3] == ["  preempted: default/training", "  held: gpu.example.com/gpu-a/gpu-0"]
    assert [line.split()[0] for line in told[3:-1]] == ["t0-t1", "t1-t3", "t3-t4"]
    assert told[3].endswith("3.0 s")
    assert max(map(len, told)) <= 80


async def test_an_open_window_goes_on(settled: Stack) -> None:
    (window,) = await windows(settled, Wanted())
    for field in ("t1", "t3", "t4", "outcome"):
        window.ClearField(field)  # type: ignore[arg-type]
    window.victims[0].ClearField("gone")
    window.claims[0].ClearField("deallocated")
    told = list(lines(window, window.t0.ToDatetime(tzinfo=UTC) + timedelta(seconds=70), 120))
    assert told[0].endswith("on node gpu-a: open")
    assert [line for line in told if line.endswith("1 min 10 s ...")] == [told[3]]


async def test_a_watch_tells_the_past_and_then_every_change(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = repository / "examples/gpu-cluster"
    async with example_stack(examples, "cluster", "running.yaml") as stack, client_of(stack) as client:
        watching = asyncio.create_task(follow(client, Wanted(pod="incident"), watch=True, as_json=True))
        await stack.world.apply(yaml.safe_load((examples / "urgent.yaml").read_text(encoding="utf-8")))

        async def ended() -> bool:
            return any(window.outcome for window in await client.settlements())

        await stack.until(ended)
        await asyncio.sleep(0.1)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [item["phase"] for item in told] == sorted(
        (item["phase"] for item in told), key=["terminating", "deallocating", "held", "ended"].index
    )
    assert (told[0]["phase"], told[-1]["phase"], told[-1]["outcome"]) == ("terminating", "ended", "scheduled")
