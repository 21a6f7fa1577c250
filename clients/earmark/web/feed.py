"""Updates on their way to the browsers: coalesced to a few a second, encoded once, bounded for each reader.

A reader that does not keep up loses what it has not read and gets the whole state instead.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from earmark.kube.clock import Clock
from earmark.web.board import Board, Changes, Row
from earmark.web.cells import Cell

# Updates a second at most: 4.
TICK_SECONDS = 0.25
# Without one for so long a comment is sent, so that a lost connection is noticed.
SILENCE_SECONDS = 15.0
# Updates that wait for one reader.
WAITING = 8
# Browsers at the same time.
READERS = 32

_encode = msgspec.json.Encoder().encode


class TooManyReaders(Exception):
    """There are as many browsers as there may be."""


class _Reader:
    def __init__(self) -> None:
        self.waiting: list[bytes] = []
        self.lost = True
        self.something = asyncio.Event()

    def put(self, update: bytes) -> None:
        if self.lost:
            return
        if len(self.waiting) >= WAITING:
            self.waiting.clear()
            self.lost = True
        else:
            self.waiting.append(update)
        self.something.set()


class Feed:
    """The state that browsers follow, and those who follow it."""

    def __init__(self, board: Board, clock: Clock) -> None:
        """Send what `board` becomes; times are `clock`'s."""
        self.board = board
        self._clock = clock
        self._parts: dict[str, object] = {"queue": {"rows": [], "more": 0}, "problems": []}
        self._changed_parts: dict[str, None] = {}
        self._windows: object = None
        self._readers: dict[_Reader, None] = {}
        self.sent = 0

    @property
    def readers(self) -> int:
        """How many follow."""
        return len(self._readers)

    def put(self, part: str, data: object) -> None:
        """Replace "queue" or "problems"."""
        if self._parts[part] != data:
            self._parts[part] = data
            self._changed_parts[part] = None

    async def run(self) -> None:
        """Send what has changed, a few times a second, until cancelled."""
        while True:
            self.tick()
            await self._clock.sleep(TICK_SECONDS)

    def tick(self) -> None:
        """Send what has changed since the last time, to everybody."""
        changes = self.board.take()
        if changes.layout is not None:
            for reader in self._readers:
                # All cells are new: that is what a lost reader gets.
                reader.waiting.clear()
                reader.lost = True
                reader.something.set()
        windows = self.board.windows.data()
        data: dict[str, Any] = {name: self._parts[name] for name in self._changed_parts}
        self._changed_parts.clear()
        if windows != self._windows:
            self._windows = data["windows"] = windows
        if changes.cells and changes.layout is None:
            data |= {"cells": _cells(changes), "counts": self.board.counts()}
        if not data:
            return
        update = self._event("change", data)
        self.sent += 1
        for reader in self._readers:
            reader.put(update)

    def snapshot(self) -> bytes:
        """Return the whole state as one event."""
        return self._event(
            "snapshot",
            {
                "layout": [_row(row) for row in self.board.rows()],
                "cells": [_cell(number, item) for number, item in enumerate(self.board.cells())],
                "counts": self.board.counts(),
                "windows": self.board.windows.data(),
                **self._parts,
            },
        )

    async def follow(self) -> AsyncIterator[bytes]:
        """Iterate over events: the whole state, then what changes. Raises TooManyReaders."""
        if len(self._readers) >= READERS:
            raise TooManyReaders
        reader = _Reader()
        self._readers[reader] = None
        try:
            while True:
                if reader.lost:
                    reader.lost = False
                    yield self.snapshot()
                elif reader.waiting:
                    yield reader.waiting.pop(0)
                else:
                    reader.something.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(SILENCE_SECONDS):
                            await reader.something.wait()
                        continue
                    yield b": still there\n\n"
        finally:
            del self._readers[reader]

    def _event(self, name: str, data: dict[str, Any]) -> bytes:
        # The browser's clock may be another one: bars and ages count from this one.
        body = _encode({"now": self._clock.now().timestamp(), **data})
        return b"event: " + name.encode() + b"\ndata: " + body + b"\n\n"


def _row(row: Row) -> dict[str, object]:
    return {"node": row.node, "devices": list(row.devices)}


def _cells(changes: Changes) -> list[list[object]]:
    return [_cell(number, item) for number, item in changes.cells]


def _cell(number: int, item: Cell) -> list[object]:
    return [number, item.state.value, item.text]
