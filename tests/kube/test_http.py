"""The HTTP client against a server that answers as told: streams in pieces, refusals, broken connections, throttling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, EventType
from earmark.kube.http import HttpApi
from earmark.kube.kubeconfig import Access, from_file, in_cluster
from earmark.kube.throttle import Throttle

Handler = Callable[[Any], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def server(handler: Handler) -> AsyncIterator[HttpApi]:
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with HttpApi(Access(f"http://127.0.0.1:{port}", token="secret")) as api:
        yield api
    await runner.cleanup()


async def test_a_watch_reads_lines_that_come_in_pieces_and_bookmarks_with_nulls() -> None:
    name = "x" * 200_000
    lines = (
        b'{"type":"ADDED","object":{"metadata":{"name":"' + name.encode() + b'"}}}\n'
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9","creationTimestamp":null},'
        b'"spec":{"containers":null},"status":{}}}\n'
    )

    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer secret"
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse()
        await response.prepare(request)
        for begin in range(0, len(lines), 50_001):
            await response.write(lines[begin : begin + 50_001])
        return response

    async with server(handle) as api:
        events = [event async for event in api.watch(objects.Pod, resource_version="1")]
    assert [(event.type, event.object.metadata.name) for event in events] == [
        (EventType.ADDED, name), (EventType.BOOKMARK, ""),
    ]  # fmt: skip
    assert events[1].object.metadata.resource_version == "9"


async def test_an_error_event_is_a_refusal() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(
            text='{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
        )

    async with server(handle) as api:
        with pytest.raises(ApiError, match="too old") as caught:
            await anext(api.watch(objects.Pod, resource_version="1"))
    assert caught.value.gone


async def test_a_refusal_from_something_else_is_told_as_it_is() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=502, text="bad gateway, says the proxy")

    async with server(handle) as api:
        with pytest.raises(ApiError, match="bad gateway, says the proxy") as caught:
            await api.get(objects.Node, "n")
    assert caught.value.status == 502


@pytest.mark.parametrize("text", ["", "<html>", '{"items": 3}', '{"type":"ADDED"}'])
async def test_an_answer_that_is_no_object_is_trouble(text: str) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(text=f"{text}\n")

    async with server(handle) as api:
        with pytest.raises(ApiUnavailable):
            await api.list(objects.Node)
        if text:
            with pytest.raises(ApiUnavailable):
                await anext(api.watch(objects.Node, resource_version="1"))


async def test_a_null_list_is_empty() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(text='{"kind":"NodeList","metadata":{"resourceVersion":"5"},"items":null}')

    async with server(handle) as api:
        result = await api.list(objects.Node)
    assert (result.items, result.resource_version) == ((), "5")


async def test_a_connection_that_breaks_is_trouble() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with server(handle) as api:
        with pytest.raises(ApiUnavailable):
            await api.create(objects.Node(metadata=objects.ObjectMeta(name="n")))


async def test_names_cannot_leave_their_path() -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(request.raw_path)
        return web.Response(text="{}")

    async with server(handle) as api:
        await api.get(objects.Pod, "../../nodes/n?x", "a/b")
    assert seen == ["/api/v1/namespaces/a%2Fb/pods/..%2F..%2Fnodes%2Fn%3Fx"]


@pytest.mark.virtual
async def test_calls_are_throttled_after_a_burst() -> None:
    throttle = Throttle(qps=10, burst=5)
    loop = asyncio.get_running_loop()
    begin = loop.time()
    times = []
    for _ in range(8):
        await throttle.pass_()
        times.append(round(loop.time() - begin, 3))
    assert times == [0, 0, 0, 0, 0, 0.1, 0.2, 0.3]
    await asyncio.sleep(100)
    begin = loop.time()
    for _ in range(5):
        await throttle.pass_()
    assert loop.time() == begin


def test_a_kubeconfig_names_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    path = tmp_path / "config"
    path.write_text(
        "clusters: [{name: c, cluster: {server: 'https://k:6443/', insecure-skip-tls-verify: true}}]\n"
        "users: [{name: u, user: {tokenFile: token}}]\n"
        "contexts: [{name: x, context: {cluster: c, user: u, namespace: n}}]\ncurrent-context: x\n"
    )
    access = from_file(path)
    assert (access.server, access.namespace) == ("https://k:6443", "n")
    assert access.authorization() == "Bearer from-a-file"
    assert "from-a-file" not in repr(access)


def test_outside_a_cluster_there_is_no_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ValueError, match="not in a cluster"):
        in_cluster()
