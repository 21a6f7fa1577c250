"""Watches over HTTP: bookmarks, initial events, the end of a stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from earmark.apiserver.app import ApiApplication
from earmark.apiserver.registry import Registry
from earmark.apiserver.storage import MemoryStore
from earmark.kube.resources import BY_KIND
from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds
from support.apiserver_http import TOKEN, application
from support.apiserver_registry import pod

pytestmark = pytest.mark.virtual


class Stream:
    """A watch being read, in virtual time."""

    def __init__(self, app: ApiApplication, query: str, path: str = "/api/v1/pods") -> None:
        self.events: list[tuple[str, Any]] = []
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(self._run(app, query, path))

    async def _run(self, app: ApiApplication, query: str, path: str) -> None:
        asked = False

        async def receive() -> Any:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await self._gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            for line in message.get("body", b"").splitlines():
                event = json.loads(line)
                self.events.append((event["type"], event["object"]))

        headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
        await app(scope, receive, send)

    def leave(self) -> None:
        self._gone.set()

    def take(self) -> list[tuple[str, str]]:
        events, self.events = self.events, []
        return [(kind, value["metadata"].get("name") or value["metadata"]["resourceVersion"]) for kind, value in events]


@pytest.fixture
async def registry(clock: LoopClock, ids: SeededIds) -> Registry:
    return Registry(MemoryStore(), clock, ids.uuid)


@pytest.fixture
async def app(registry: Registry, clock: LoopClock) -> ApiApplication:
    return application(registry, clock)


def add(registry: Registry, kind: str, data: dict[str, Any]) -> int:
    resource = BY_KIND[kind]
    return registry.create(resource, "default" if resource.namespaced else "", data).revision


async def test_bookmarks_tell_of_other_kinds_versions_once(app: ApiApplication, registry: Registry) -> None:
    stream = Stream(app, f"watch=1&resourceVersion={registry.revision}&allowWatchBookmarks=true")
    await asyncio.sleep(1)
    add(registry, "Pod", pod("a"))
    revision = add(registry, "Node", {"metadata": {"name": "n"}})
    await asyncio.sleep(60)
    assert stream.take() == [("ADDED", "a"), ("BOOKMARK", str(revision))]
    stream.leave()
    await stream.task


async def test_a_quiet_cluster_gives_a_sign_of_life_each_minute(app: ApiApplication, registry: Registry) -> None:
    version = str(registry.revision)
    stream = Stream(app, f"watch=1&resourceVersion={version}&allowWatchBookmarks=true")
    await asyncio.sleep(600)
    told = stream.take()
    assert set(told) == {("BOOKMARK", version)}
    # The client takes 150 seconds of silence for a broken line.
    assert 9 <= len(told) <= 11
    stream.leave()
    await stream.task


async def test_a_bookmark_is_never_newer_than_what_was_sent(app: ApiApplication, registry: Registry) -> None:
    stream = Stream(app, f"watch=1&resourceVersion={registry.revision}&allowWatchBookmarks=true")
    names = []
    for index in range(50):
        await asyncio.sleep(4.9 + 0.01 * (index % 20))
        names.append(f"p{index}")
        add(registry, "Node", {"metadata": {"name": f"n{index}"}})
        add(registry, "Pod", pod(names[-1]))
    await asyncio.sleep(10)
    newest = 0
    for kind, value in stream.events:
        version = int(value["metadata"]["resourceVersion"])
        assert version >= newest if kind == "BOOKMARK" else version > newest
        newest = version
    assert [name for kind, name in stream.take() if kind == "ADDED"] == names
    stream.leave()
    await stream.task


async def test_without_bookmarks_silence_is_kept(app: ApiApplication, registry: Registry) -> None:
    stream = Stream(app, f"watch=true&resourceVersion={registry.revision}")
    add(registry, "Node", {"metadata": {"name": "n"}})
    await asyncio.sleep(60)
    assert stream.take() == []
    stream.leave()
    await stream.task


async def test_a_watch_ends_after_its_time(app: ApiApplication, registry: Registry, clock: LoopClock) -> None:
    begin = clock.monotonic()
    stream = Stream(app, "watch=1&timeoutSeconds=7")
    await stream.task
    assert clock.monotonic() - begin == pytest.approx(7)


async def test_initial_events_end_with_a_marked_bookmark(app: ApiApplication, registry: Registry) -> None:
    add(registry, "Pod", pod("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    stream = Stream(app, query)
    await asyncio.sleep(1)
    assert stream.events[-1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert stream.take() == [("ADDED", "a"), ("BOOKMARK", str(registry.revision))]
    add(registry, "Pod", pod("b"))
    await asyncio.sleep(1)
    assert stream.take() == [("ADDED", "b")]
    stream.leave()
    await stream.task


async def test_a_watch_that_fell_behind_is_told_and_ended(app: ApiApplication, registry: Registry) -> None:
    stream = Stream(app, f"watch=1&resourceVersion={registry.revision}")
    await asyncio.sleep(1)
    add(registry, "Pod", pod("a"))
    registry.compact()
    await stream.task
    kind, status = stream.events[0]
    assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")


async def test_a_stopping_server_ends_its_watches(app: ApiApplication, registry: Registry) -> None:
    stream = Stream(app, "watch=1")
    await asyncio.sleep(1)
    app.close()
    await asyncio.wait_for(stream.task, 1)


async def test_one_object_can_be_watched(app: ApiApplication, registry: Registry) -> None:
    add(registry, "Pod", pod("a"))
    stream = Stream(app, "watch=1", "/api/v1/namespaces/default/pods/b")
    add(registry, "Pod", pod("b"))
    await asyncio.sleep(1)
    assert stream.take() == [("ADDED", "b")]
    stream.leave()
    await stream.task
