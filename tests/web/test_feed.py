"""Updates are coalesced, encoded once, and bounded for a reader that does not read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from earmark.runtime.clock import LoopClock
from earmark.web.board import Board
from earmark.web.feed import READERS, TICK_SECONDS, WAITING, Feed, TooManyReaders
from support.web_objects import claim, slice_of, window_of

pytestmark = pytest.mark.virtual


@pytest.fixture
async def feed(clock: LoopClock) -> Feed:
    board = Board()
    board.slice_changed(None, slice_of("a", "gpu-0", "gpu-1"))
    made = Feed(board, clock)
    made.tick()
    return made


def said(event: bytes) -> tuple[str, dict[str, Any]]:
    name, data = event.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def first(reading: AsyncIterator[bytes]) -> tuple[str, dict[str, Any]]:
    return said(await anext(reading))


async def test_a_reader_gets_the_whole_state_and_then_only_what_changes(feed: Feed) -> None:
    reading = feed.follow()
    name, data = await first(reading)
    assert name == "snapshot"
    assert data["layout"] == [{"node": "a", "devices": ["gpu.example.com/a/gpu-0", "gpu.example.com/a/gpu-1"]}]
    assert data["cells"] == [[0, "F", "free"], [1, "F", "free"]]
    feed.board.claim_changed(None, claim("work", "a/gpu-1", "train"))
    feed.tick()
    name, data = await first(reading)
    assert name == "change"
    assert [(number, state) for number, state, _ in data["cells"]] == [(1, "A")]
    assert data["counts"] == {"F": 1, "A": 1, "R": 0, "E": 0}
    assert not {"layout", "windows", "queue", "problems"} & set(data)


async def test_sixty_changes_a_second_are_four_updates(feed: Feed, clock: LoopClock) -> None:
    import asyncio

    running = asyncio.create_task(feed.run())
    before = feed.sent
    work = claim("work", "a/gpu-0", "train")
    for number in range(60):
        feed.board.claim_changed(*((None, work) if number % 2 == 0 else (work, None)))
        feed.board.window_changed(window_of("urgent", "a/gpu-1", f"train-{number}"))
        await clock.sleep(1 / 60)
    running.cancel()
    assert 1 <= feed.sent - before <= 1 / TICK_SECONDS + 1


async def test_nothing_is_sent_where_nothing_changed(feed: Feed) -> None:
    before = feed.sent
    feed.put("problems", [])
    feed.tick()
    feed.tick()
    assert feed.sent == before


async def test_a_reader_that_does_not_read_gets_the_whole_state_instead_of_a_backlog(feed: Feed) -> None:
    reading = feed.follow()
    await first(reading)
    work = claim("work", "a/gpu-0", "train")
    for number in range(WAITING * 10 + 1):
        feed.board.claim_changed(*((None, work) if number % 2 == 0 else (work, None)))
        feed.tick()
        (reader,) = feed._readers
        assert len(reader.waiting) <= WAITING
    name, data = await first(reading)
    assert (name, data["cells"][0][1]) == ("snapshot", "A")


async def test_a_new_layout_is_sent_whole(feed: Feed) -> None:
    reading = feed.follow()
    await first(reading)
    feed.board.slice_changed(None, slice_of("b", "gpu-0"))
    feed.tick()
    name, data = await first(reading)
    assert (name, [row["node"] for row in data["layout"]]) == ("snapshot", ["a", "b"])


async def test_a_silent_connection_is_kept_alive(feed: Feed) -> None:
    reading = feed.follow()
    await first(reading)
    assert (await anext(reading)).startswith(b":")


async def test_who_leaves_is_forgotten_and_no_more_than_a_number_may_come(feed: Feed) -> None:
    readings = [feed.follow() for _ in range(READERS)]
    for reading in readings:
        await first(reading)
    with pytest.raises(TooManyReaders):
        await anext(feed.follow())
    for reading in readings:
        await reading.aclose()  # type: ignore[attr-defined]
    assert feed.readers == 0
