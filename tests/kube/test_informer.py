"""Informers against the embedded API in virtual time, with the faults that real ones meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.apiserver.storage import MemoryStore
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, EventType
from earmark.kube.informer import Informer, InformerEvent
from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds
from earmark.runtime.tasks import ComponentTasks

pytestmark = pytest.mark.virtual


@pytest.fixture
async def api(clock: LoopClock, ids: SeededIds) -> LocalApi:
    return LocalApi(Registry(MemoryStore(), clock, ids.uuid), clock)


@pytest.fixture
async def nodes(api: LocalApi, clock: LoopClock) -> Informer[objects.Node]:
    """An informer that does not run yet."""
    return Informer(api, objects.Node, clock)


@pytest.fixture
async def tasks() -> AsyncIterator[ComponentTasks]:
    group = ComponentTasks("test")
    yield group
    await group.cancel_all()


class Log:
    """What a handler was told."""

    def __init__(self, informer: Informer[objects.Node]) -> None:
        self.lines: list[str] = []
        self.events: list[InformerEvent[objects.Node]] = []
        informer.add_handler(self._add)

    def _add(self, event: InformerEvent[objects.Node]) -> None:
        self.events.append(event)
        self.lines.append(f"{event.type.value} {event.object.metadata.name}")

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines


async def add(api: LocalApi, *names: str) -> None:
    for name in names:
        await api.create(objects.Node(metadata=objects.ObjectMeta(name=name)))


async def cordon(api: LocalApi, name: str) -> None:
    await api.patch(objects.Node, name, "", {"spec": {"unschedulable": True}})


async def run(informer: Informer[objects.Node], tasks: ComponentTasks) -> None:
    informer.start(tasks)
    await informer.wait_synced()


async def settle() -> None:
    await asyncio.sleep(60)


async def test_it_lists_and_then_follows(api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks) -> None:
    log = Log(nodes)
    await add(api, "b", "a")
    assert not nodes.synced
    await run(nodes, tasks)
    assert log.take() == ["ADDED a", "ADDED b"]
    await cordon(api, "a")
    await api.delete(objects.Node, "b")
    await settle()
    assert log.take() == ["MODIFIED a", "DELETED b"]
    assert [node.metadata.name for node in nodes.items()] == ["a"]
    assert nodes.get("", "a") == nodes.items()[0]
    assert nodes.get("", "b") is None
    assert nodes.resource_version == api.registry.revision


async def test_a_handler_sees_the_state_that_its_event_led_to(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    seen: list[int] = []
    nodes.add_handler(lambda event: seen.append(len(nodes)))
    await run(nodes, tasks)
    await add(api, "a", "b")
    await api.delete(objects.Node, "a")
    await settle()
    assert seen == [1, 2, 1]


async def test_a_late_handler_is_told_what_is_there(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    await add(api, "b", "a")
    await run(nodes, tasks)
    assert Log(nodes).take() == ["ADDED a", "ADDED b"]


async def test_old_and_new_states_come_with_the_event(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    log = Log(nodes)
    await add(api, "a")
    await run(nodes, tasks)
    await cordon(api, "a")
    await api.delete(objects.Node, "a")
    await settle()
    added, modified, deleted = log.events
    assert (added.old, added.new is not None) == (None, True)
    assert modified.old == added.new
    assert modified.new is not None
    assert modified.new.spec.unschedulable
    assert deleted.type is EventType.DELETED
    assert deleted.new is None
    assert deleted.old is not None
    assert deleted.old.spec.unschedulable


async def test_after_410_it_lists_again_and_tells_the_differences(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    log = Log(nodes)
    await add(api, "a", "b", "c", "d")
    await run(nodes, tasks)
    log.take()
    # The watch is told of all of it only as "too old".
    await cordon(api, "b")
    await api.delete(objects.Node, "c")
    await api.delete(objects.Node, "d")
    await add(api, "d", "e")
    api.registry.compact()
    await settle()
    assert log.take() == ["DELETED c", "DELETED d", "MODIFIED b", "ADDED d", "ADDED e"]
    assert nodes.resource_version == api.registry.revision


async def test_a_list_of_what_is_known_tells_nothing(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    await add(api, "a")
    await run(nodes, tasks)
    log = Log(nodes)
    log.take()
    await cordon(api, "a")
    await settle()
    assert log.take() == ["MODIFIED a"]
    # Something else moves on, and only the watch's version is forgotten.
    await api.create(objects.DeviceClass(metadata=objects.ObjectMeta(name="gpu")))
    api.registry.compact()
    await settle()
    assert log.take() == []


async def test_it_waits_while_the_api_is_away(
    api: LocalApi, clock: LoopClock, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    begin = clock.monotonic()
    api.registry.faults.lose(RequestMatch("list", "Node"), times=4, done=False)
    await add(api, "a")
    await run(nodes, tasks)
    # 0.1, 0.2, 0.4 and 0.8 seconds.
    assert clock.monotonic() - begin == pytest.approx(1.5)
    assert nodes.get("", "a") is not None


async def test_a_refused_watch_is_tried_again_and_loses_nothing(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    api.registry.faults.fail(RequestMatch("watch", "Node"), times=3, status=500)
    await run(nodes, tasks)
    log = Log(nodes)
    await add(api, "a")
    await cordon(api, "a")
    await settle()
    assert log.take() == ["ADDED a", "MODIFIED a"]


class Breaking(LocalApi):
    """Every watch brings one event and breaks."""

    def watch(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        return self._broken(super().watch(*args, **options))

    @staticmethod
    async def _broken(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            yield event
            raise ApiUnavailable("the line broke")


async def test_a_watch_that_worked_ends_the_growing_of_the_waits(
    clock: LoopClock, ids: SeededIds, tasks: ComponentTasks
) -> None:
    api = Breaking(Registry(MemoryStore(), clock, ids.uuid), clock)
    nodes: Informer[objects.Node] = Informer(api, objects.Node, clock)
    await run(nodes, tasks)
    seen: list[float] = []
    nodes.add_handler(lambda event: seen.append(clock.monotonic()))
    begin = clock.monotonic()
    await add(api, *(f"n{number}" for number in range(8)))
    await asyncio.sleep(60)
    # One event a watch, and 0.1 seconds between watches, however many have broken.
    assert [moment - begin for moment in seen] == pytest.approx([number * 0.1 for number in range(8)], abs=0.01)


async def test_a_version_that_is_always_too_old_is_not_listed_without_pause(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    lists = 0

    def refused(*args: Any, **options: Any) -> AsyncIterator[Any]:
        nonlocal lists
        lists += 1
        assert lists < 1000, "listed in a tight loop"
        raise ApiError(410, "Expired", "too old")

    api.watch = refused  # type: ignore[method-assign]
    await run(nodes, tasks)
    await asyncio.sleep(10)
    assert lists == 7


async def test_it_follows_only_what_is_selected(api: LocalApi, clock: LoopClock, tasks: ComponentTasks) -> None:
    informer = Informer(api, objects.Node, clock, field_selector="metadata.name=a")
    await run(informer, tasks)
    await add(api, "a", "b")
    await settle()
    assert [node.metadata.name for node in informer.items()] == ["a"]


async def test_what_handlers_get_is_nobody_else_s(
    api: LocalApi, nodes: Informer[objects.Node], tasks: ComponentTasks
) -> None:
    await add(api, "a")
    await run(nodes, tasks)
    node = nodes.get("", "a")
    assert node is not None
    node.metadata.labels["mine"] = "1"
    assert (await api.get(objects.Node, "a")).metadata.labels == {}
