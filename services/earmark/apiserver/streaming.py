"""Watches over HTTP: events as lines of JSON, bookmarks, the end after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import msgspec

from earmark.apiserver import errors
from earmark.apiserver.errors import StatusError
from earmark.apiserver.history import RawEvent
from earmark.apiserver.registry import Registry
from earmark.apiserver.requests import Query
from earmark.apiserver.routes import Route
from earmark.apiserver.tables import Form
from earmark.kube.clock import Clock

DEFAULT_SECONDS = 1800
BOOKMARK_SECONDS = 5.0
# Of silence, after which a bookmark goes out even with nothing new in it: clients take silence for a broken line.
SIGN_OF_LIFE_SECONDS = 60.0

Message = MutableMapping[str, Any]

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """What a watch asks for."""

    target: Route
    version: str
    label_selector: str
    field_selector: str
    seconds: float
    bookmarks: bool
    initial_events: bool

    @staticmethod
    def of(target: Route, query: Query) -> WatchRequest:
        """Read the query of a watch."""
        fields = query.text("fieldSelector")
        if target.name:
            fields = f"{fields},metadata.name={target.name}" if fields else f"metadata.name={target.name}"
        initial = query.flag("sendInitialEvents")
        if initial and query.text("resourceVersionMatch") != "NotOlderThan":
            cause = errors.forbidden(
                "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
            raise StatusError(422, "Invalid", f"{cause.field}: {cause.message}", causes=[cause])
        return WatchRequest(
            target,
            "" if initial else query.text("resourceVersion"),
            query.text("labelSelector"),
            fields,
            max(query.number("timeoutSeconds") or DEFAULT_SECONDS, 1),
            query.flag("allowWatchBookmarks"),
            initial,
        )


class WatchStream:
    """One watch being served."""

    def __init__(
        self,
        registry: Registry,
        request: WatchRequest,
        form: Form | None,
        clock: Clock,
        shown: Callable[[Route, bytes], bytes],
        closing: asyncio.Event,
    ) -> None:
        self._registry = registry
        self._request = request
        self._form = form
        self._clock = clock
        self._shown = shown
        self._closing = closing
        self._watch = registry.watch(
            request.target.resource,
            request.target.namespace,
            resource_version=request.version,
            label_selector=request.label_selector,
            field_selector=request.field_selector,
        )

    async def serve(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:  # fmt: skip
        """Send events until the client goes, the time is over, the server stops, or the watch fell behind."""
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")],
            }
        )
        gone = asyncio.ensure_future(_disconnected(receive))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await self._events(send, gone, closing)
            if not gone.done():
                await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            closing.cancel()

    async def _events(
        self, send: Callable[[Message], Awaitable[None]], gone: asyncio.Future[None], closing: asyncio.Future[Any]
    ) -> None:
        ends = self._clock.monotonic() + self._request.seconds
        # Up to which version the client has been told; a bookmark is due when nothing has been for a while.
        told, due, spoke = 0, self._request.initial_events, self._clock.monotonic()
        initial = due
        # The head of the answer goes out with the first bytes of its body.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        while not gone.done() and not closing.done():
            # Read before the events are taken: a bookmark must not be newer than what was sent before it.
            visible = self._registry.visible_revision
            try:
                events = self._watch.take()
                lines = [self._line(event) for event in events]
            except StatusError as error:
                await _send(send, b'{"type":"ERROR","object":' + _encode(error.body()) + b"}\n")
                return
            if events:
                told = events[-1].revision
            left = ends - self._clock.monotonic()
            due = due or (left <= 0 and self._request.bookmarks)
            silent = self._clock.monotonic() - spoke >= SIGN_OF_LIFE_SECONDS
            if due and (visible > told or initial or silent) and (initial or not lines):
                lines.append(self._bookmark(visible, initial=initial))
                initial, told = False, max(told, visible)
            if lines:
                await _send(send, b"".join(lines))
                spoke = self._clock.monotonic()
            if left <= 0:
                return
            changed = asyncio.ensure_future(self._watch.changed())
            try:
                done, _ = await asyncio.wait(
                    (changed, gone, closing),
                    timeout=min(left, BOOKMARK_SECONDS) if self._request.bookmarks else left,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                due = not done and self._request.bookmarks
            finally:
                changed.cancel()

    def _line(self, event: RawEvent) -> bytes:
        target = self._request.target
        body = self._shown(target, event.body)
        if self._form is not None:
            body = self._form.one(target.resource, body, self._clock.now())
        return b'{"type":"' + event.type.encode() + b'","object":' + body + b"}\n"

    def _bookmark(self, revision: int, *, initial: bool = False) -> bytes:
        resource = self._request.target.resource
        meta: dict[str, Any] = {"resourceVersion": str(revision)}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        bookmark: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if self._form is not None:
            bookmark = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        return b'{"type":"BOOKMARK","object":' + _encode(bookmark) + b"}\n"


async def _send(send: Callable[[Message], Awaitable[None]], body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _disconnected(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
