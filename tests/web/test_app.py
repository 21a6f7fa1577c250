"""The application over a real socket: who may see it, what it sends, and how it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from earmark.runtime.clock import SystemClock
from earmark.web.access import Access
from earmark.web.actions import Refused
from earmark.web.app import LARGEST_MANIFEST, STATIC, make_app
from earmark.web.board import Board
from earmark.web.feed import Feed
from earmark.web.serving import listen, server_of
from support.web_objects import claim, slice_of


class FakeActions:
    """Answers what it is asked."""

    async def explain(self, namespace: str, name: str) -> Sequence[str]:
        if name == "nobody":
            raise Refused("the framework does not answer", 502)
        return [f"{namespace}/{name} is pending.", "  because"]

    async def whatif(self, text: str) -> dict[str, object]:
        if text == "bad":
            raise Refused("kind: want Pod, found Node", 400)
        return {"summary": text}


@dataclass
class Site:
    """The application, served."""

    access: Access
    feed: Feed
    session: aiohttp.ClientSession

    @property
    def base(self) -> str:
        return f"http://{self.access.host}:{self.access.port}"

    async def status(self, path: str, **more: Any) -> int:
        async with self.session.get(self.base + path, **more) as answer:
            return answer.status


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    board = Board()
    board.slice_changed(None, slice_of("a", "gpu-0"))
    feed = Feed(board, SystemClock())
    feed.tick()
    bound = listen(0)
    access = Access.fresh(*bound.getsockname())
    server = server_of(make_app(feed, FakeActions(), access))
    running = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield Site(access, feed, session)
    finally:
        server.should_exit = True
        await running
        bound.close()


@pytest.fixture
def cookie(site: Site) -> dict[str, str]:
    return {"Cookie": f"{site.access.cookie}={site.access.token}"}


async def test_the_token_becomes_a_cookie_and_leaves_the_address(site: Site) -> None:
    async with site.session.get(site.access.address, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


@pytest.mark.parametrize(
    "path", ["/", "/events", "/explain?name=x", "/static/page.js", "/?token=wrong", "/?token=%C3%A9"]
)
async def test_nothing_is_shown_without_the_token(site: Site, path: str) -> None:
    assert await site.status(path) == 403


async def test_a_wrong_cookie_is_refused(site: Site) -> None:
    assert await site.status("/", headers={"Cookie": f"{site.access.cookie}=x"}) == 403


async def test_a_name_that_was_made_to_point_here_is_refused(site: Site, cookie: dict[str, str]) -> None:
    assert await site.status("/", headers={**cookie, "Host": "evil.example.com"}) == 421


async def test_another_site_may_not_ask(site: Site, cookie: dict[str, str]) -> None:
    assert await site.status("/explain?name=x", headers={**cookie, "Origin": "http://evil.example.com"}) == 403
    assert await site.status("/explain?name=x", headers={**cookie, "Origin": site.base}) == 200


async def test_every_answer_forbids_inline_scripts_and_other_sites(site: Site, cookie: dict[str, str]) -> None:
    for headers in (cookie, {}):
        async with site.session.get(site.base + "/", headers=headers) as answer:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_page_holds_no_secret_and_no_inline_script_or_style(site: Site, cookie: dict[str, str]) -> None:
    async with site.session.get(site.base + "/", headers=cookie) as answer:
        text = await answer.text()
    assert site.access.token not in text
    assert re.findall(r"<script(?![^>]*src=)|\son[a-z]+=|\sstyle=|<style", text) == []


async def test_every_file_that_the_page_names_is_served(site: Site, cookie: dict[str, str]) -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in sorted(STATIC.iterdir()))
    names = set(re.findall(r'"(/static/[^"]+)"', text)) | {
        f"/static/{name}" for name in re.findall(r'from "\./([^"]+)"', text)
    }
    assert {name: await site.status(name, headers=cookie) for name in names} == dict.fromkeys(names, 200)


async def test_files_outside_the_folder_are_not_served(site: Site, cookie: dict[str, str]) -> None:
    assert await site.status("/static/..%2fapp.py", headers=cookie) == 404


async def test_events_begin_with_the_state_and_go_on_with_changes(site: Site, cookie: dict[str, str]) -> None:
    async with site.session.get(site.base + "/events", headers=cookie) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert (await answer.content.readuntil(b"\n\n")).startswith(b"retry:")
        assert b"event: snapshot" in await answer.content.readuntil(b"\n\n")
        site.feed.board.claim_changed(None, claim("work", "a/gpu-0", "train"))
        site.feed.tick()
        change = await answer.content.readuntil(b"\n\n")
    assert json.loads(change.split(b"data: ")[1])["cells"][0][:2] == [0, "A"]
    async with asyncio.timeout(5):
        while site.feed.readers:
            # The browser has gone: it is noticed at the next write.
            site.feed.board.claim_changed(None, claim("more", "a/gpu-0", "train"))
            site.feed.board.claim_changed(claim("more", "a/gpu-0", "train"), None)
            site.feed.tick()
            await asyncio.sleep(0.01)


async def test_an_explanation_is_lines(site: Site, cookie: dict[str, str]) -> None:
    async with site.session.get(site.base + "/explain?name=x", headers=cookie) as answer:
        assert await answer.json() == {"lines": ["default/x is pending.", "  because"]}


async def test_what_cannot_be_explained_says_why(site: Site, cookie: dict[str, str]) -> None:
    async with site.session.get(site.base + "/explain?name=nobody", headers=cookie) as answer:
        assert (answer.status, await answer.json()) == (502, {"error": "the framework does not answer"})
    assert await site.status("/explain", headers=cookie) == 400


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b'{"manifest": "good"}', "application/json", 200),
        (b'{"manifest": "bad"}', "application/json", 400),
        (b'{"manifest": 1}', "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"manifest": "good"}', "text/plain", 415),
        (b" " * (LARGEST_MANIFEST + 1), "application/json", 413),
    ],
)
async def test_a_what_if_is_answered_or_refused_in_json(
    site: Site, cookie: dict[str, str], body: bytes, kind: str, status: int
) -> None:
    headers = {**cookie, "Content-Type": kind}
    async with site.session.post(site.base + "/whatif", data=body, headers=headers) as answer:
        assert answer.status == status
        assert ("error" in await answer.json()) == (status != 200)


async def test_a_reader_who_hangs_up_is_forgotten(site: Site, cookie: dict[str, str]) -> None:
    for _ in range(3):
        answer = await site.session.get(site.base + "/events", headers=cookie)
        await answer.content.readuntil(b"\n\n")
        answer.close()
    for _ in range(500):
        if not site.feed.readers:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"{site.feed.readers} readers are still known")


def test_the_socket_is_this_machines_only() -> None:
    with contextlib.closing(listen(0)) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"


def test_scripts_never_write_markup() -> None:
    found = [
        f"{file.name}: {word}"
        for file in sorted(Path(STATIC).glob("*.js"))
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
        if word in file.read_text(encoding="utf-8")
    ]
    assert found == []
