"""Wherever the stream of wake-ups breaks, no wake-up is lost and no sleeper is forgotten."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from earmark.kube import objects
from earmark.v1 import common_pb2, scheduler_plugin_pb2
from support.contract_plugin import Scheduler
from support.contract_stack import FRAMEWORK, Cut, Stack

WATCH = "/earmark.v1.SchedulerPluginService/WatchWakeUps"
# Pods that sleep because their claim is missing: one event, one wake-up each. Then the preemptor, at once.
NAMES = ("s0", "s1", "s2", "s3")
ALL = (*NAMES, "p")
MESSAGES = len(ALL)


class Follower:
    """The framework's side of the stream: holds sleepers, forgets those that it hears of, and may hear nothing."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.sleeping: dict[str, common_pb2.PodReference] = {}
        self.woken: list[tuple[str, bool]] = []
        self.last_number = 0
        self._call: Any = None
        self._task: asyncio.Task[None] | None = None

    async def connect(self, *, dies_at: int | None = None, handled: bool = False) -> None:
        """Open the stream; it breaks at the message `dies_at` of all, handled or not."""
        request = scheduler_plugin_pb2.WatchWakeUpsRequest(
            session=self._scheduler.session, last_number=self.last_number, sleepers=self.sleeping.values()
        )
        self._call = self._scheduler.plugin.WatchWakeUps(request)
        self._task = asyncio.create_task(self._follow(self._call, dies_at, handled))
        log = self._scheduler.component.core.wake_ups
        await self._scheduler.stack.until(lambda: log._listener is not None or self.broken)

    async def _follow(self, call: Any, dies_at: int | None, handled: bool) -> None:
        async for message in call:
            here = dies_at == len(self.woken)
            if not here or handled:
                self.last_number = message.number
                for pod in message.pods:
                    if self.sleeping.pop(pod.uid, None) is not None:
                        self.woken.append((pod.name, message.at_once))
            if here:
                call.cancel()
                return

    @property
    def broken(self) -> bool:
        return self._task is None or self._task.done()

    async def close(self) -> None:
        """Break the stream, and wait until the plugin has noticed."""
        if self._call is not None:
            self._call.cancel()
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._task = None
        await self._scheduler.stack.until(lambda: self._scheduler.component.core.wake_ups._listener is None)

    async def heard(self, count: int) -> None:
        await self._scheduler.stack.until(lambda: len(self.woken) >= count or self.broken)


@pytest.fixture
async def sleepers(scheduler: Scheduler) -> Follower:
    """s0 to s3 sleep, and the preemptor p, which waits for v's device."""
    follower = Follower(scheduler)
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    follower.sleeping[(await scheduler.ref("p")).uid] = await scheduler.ref("p")
    inputs = []
    for name in NAMES:
        await scheduler.stack.pod(name, claim=f"{name}-later")
        inputs.append(await scheduler.pod_input(name))
    request = scheduler_plugin_pb2.PreEnqueueRequest(session=scheduler.session, pods=inputs)
    await scheduler.plugin.PreEnqueue(request, timeout=5)
    follower.sleeping |= {item.pod.uid: item.pod for item in inputs}
    assert [pod.name for pod in scheduler.component.core.wake_ups.sleepers] == ["p", *NAMES]
    return follower


async def happens(scheduler: Scheduler, name: str) -> None:
    """The event that concerns this pod, until the plugin has it."""
    world = scheduler.stack.world
    if name == "p":
        deallocated = {"status": {"allocation": None, "reservedFor": None}}
        await world.api.patch(objects.ResourceClaim, "v-gpu", "default", deallocated, subresource="status")
    else:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
        claim = {
            "kind": "ResourceClaim",
            "metadata": {"name": f"{name}-later"},
            "spec": {"devices": {"requests": [request]}},
        }
        await world.apply(claim)
    uid = (await scheduler.ref(name)).uid
    sleeping = scheduler.component.core.wake_ups._sleepers
    await scheduler.stack.until(lambda: uid not in sleeping)


def check(scheduler: Scheduler, follower: Follower) -> None:
    assert follower.woken == [(name, name == "p") for name in ALL]
    assert follower.sleeping == {}
    assert scheduler.component.core.wake_ups.sleepers == ()


async def test_an_unbroken_stream_wakes_each_pod_once(scheduler: Scheduler, sleepers: Follower) -> None:
    await sleepers.connect()
    for count, name in enumerate(ALL, 1):
        await happens(scheduler, name)
        await sleepers.heard(count)
    check(scheduler, sleepers)
    await sleepers.close()


@pytest.mark.parametrize("handled", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("position", range(MESSAGES))
async def test_a_break_at_any_message_loses_nothing(
    scheduler: Scheduler, sleepers: Follower, position: int, handled: bool
) -> None:
    await sleepers.connect(dies_at=position, handled=handled)
    for count, name in enumerate(ALL, 1):
        await happens(scheduler, name)
        if sleepers.broken and not sleepers.woken and sleepers.last_number == 0 and position:
            pytest.fail("broke too early")
        await sleepers.heard(count)
        if sleepers.broken and count <= position + 1:
            # It stays away for one more event.
            continue
        if sleepers.broken:
            await sleepers.close()
            await sleepers.connect()
            await sleepers.heard(count)
    if sleepers.broken:
        await sleepers.close()
        await sleepers.connect()
        await sleepers.heard(MESSAGES)
    check(scheduler, sleepers)
    await sleepers.close()


@pytest.mark.parametrize("position", range(MESSAGES + 1))
async def test_whatever_happens_while_nobody_listens_is_told_later(
    scheduler: Scheduler, sleepers: Follower, position: int
) -> None:
    """The stream is away from the event `position` to the next, or never there before the end."""
    if position:
        await sleepers.connect()
    for count, name in enumerate(ALL, 1):
        if count == position:
            await sleepers.close()
        await happens(scheduler, name)
        if position and count != position:
            if sleepers.broken:
                await sleepers.connect()
            await sleepers.heard(count)
    if sleepers.broken:
        await sleepers.connect()
        await sleepers.heard(MESSAGES)
    check(scheduler, sleepers)
    await sleepers.close()


async def test_a_stream_that_breaks_at_every_message_wakes_all(scheduler: Scheduler, sleepers: Follower) -> None:
    for count, name in enumerate(ALL, 1):
        for handled in (False, True):
            await sleepers.connect(dies_at=count - 1, handled=handled)
            if not handled:
                await happens(scheduler, name)
            await scheduler.stack.until(lambda: sleepers.broken)
            await sleepers.close()
        assert len(sleepers.woken) == count
    check(scheduler, sleepers)


async def test_a_reconnection_wakes_nobody_that_sleeps_with_reason(scheduler: Scheduler, sleepers: Follower) -> None:
    await happens(scheduler, "s1")
    for _ in range(3):
        await sleepers.connect()
        await sleepers.heard(1)
        await sleepers.close()
    assert sleepers.woken == [("s1", False)]
    assert len(scheduler.component.core.wake_ups.sleepers) == MESSAGES - 1


async def test_a_second_stream_takes_over_from_one_that_hangs(scheduler: Scheduler, sleepers: Follower) -> None:
    await sleepers.connect()
    hanging, hanging_task = sleepers._call, sleepers._task
    await sleepers.connect()
    for count, name in enumerate(ALL, 1):
        await happens(scheduler, name)
        await sleepers.heard(count)
    check(scheduler, sleepers)
    hanging.cancel()
    assert hanging_task is not None
    with contextlib.suppress(asyncio.CancelledError):
        await hanging_task
    # The end of the old one does not silence the new one.
    assert scheduler.component.core.wake_ups._listener is not None
    await sleepers.close()


async def test_a_stream_that_its_reader_gives_up_is_cancelled_and_no_error(scheduler: Scheduler) -> None:
    call = scheduler.plugin.WatchWakeUps(scheduler_plugin_pb2.WatchWakeUpsRequest(session=scheduler.session))
    reading = asyncio.ensure_future(call.read())
    await scheduler.stack.until(lambda: scheduler.component.core.wake_ups._listener is not None)
    call.cancel()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert call.cancelled()


@pytest.mark.kep("E51")
@pytest.mark.parametrize("position", range(MESSAGES + 1))
async def test_a_restarted_plugin_wakes_all_sleepers_that_the_framework_names(
    scheduler: Scheduler, sleepers: Follower, position: int
) -> None:
    """After `position` events; what happened while the plugin was away is not missed either."""
    await sleepers.connect()
    for count, name in enumerate(ALL[:position], 1):
        await happens(scheduler, name)
        await sleepers.heard(count)
    nominations = [
        common_pb2.Nomination(
            pod=item.pod, node_name=item.node_name, generation=item.generation, priority=item.priority
        )
        for item in (await scheduler.listed()).nominations
    ]
    await sleepers.close()
    await scheduler.stack.kill("dynamicresources")
    await scheduler.start()
    await scheduler.open(*nominations)
    sleepers.last_number = 0
    await sleepers.connect()
    await sleepers.heard(MESSAGES)
    assert sorted(name for name, _ in sleepers.woken) == sorted(ALL)
    await sleepers.close()


# --- with the framework itself -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("position", range(MESSAGES))
async def test_the_framework_tries_every_pod_again(stack: Stack, position: int, after: bool) -> None:
    """Its pods wait for claims that come one by one; only wake-ups can tell it (the pool's timeout is 300 s)."""
    await stack.cluster(*(f"gpu-{number}" for number in range(MESSAGES)))
    stack.cuts.append(Cut(WATCH, position, after))
    await stack.start_all(framework=replace(FRAMEWORK, reconnect_seconds=0.05))
    for name in ALL:
        await stack.pod(name, claim=f"{name}-later")

    async def bound(*names: str) -> bool:
        return all([(await stack.world.pod(name)).spec.node_name for name in names])

    def all_wait() -> bool:
        plugin: Any = stack.components["dynamicresources"]
        return len(plugin.core.wake_ups.sleepers) == len(ALL)

    await stack.until(all_wait)
    for name in ALL:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
        claim = {
            "kind": "ResourceClaim",
            "metadata": {"name": f"{name}-later"},
            "spec": {"devices": {"requests": [request]}},
        }
        await stack.world.apply(claim)
        await stack.until(_all(bound, name), seconds=10)
    assert stack.cuts[0].done


def _all(holds: Callable[..., Awaitable[bool]], *names: str) -> Callable[[], Awaitable[bool]]:
    return lambda: holds(*names)


async def test_the_framework_tries_every_pod_again_though_each_message_is_cut(stack: Stack) -> None:
    await stack.cluster(*(f"gpu-{number}" for number in range(MESSAGES)))
    await stack.start_all(framework=replace(FRAMEWORK, reconnect_seconds=0.05))
    for name in ALL:
        await stack.pod(name, claim=f"{name}-later")
    plugin: Any = stack.components["dynamicresources"]
    await stack.until(lambda: len(plugin.core.wake_ups.sleepers) == len(ALL))
    stack.cuts += [Cut(WATCH, 0, after) for _ in ALL for after in (False, True)]
    for name in ALL:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
        claim = {
            "kind": "ResourceClaim",
            "metadata": {"name": f"{name}-later"},
            "spec": {"devices": {"requests": [request]}},
        }
        await stack.world.apply(claim)

    async def all_bound() -> bool:
        return all([(await stack.world.pod(name)).spec.node_name for name in ALL])

    await stack.until(all_bound)
