"""The HTTP application: the page's files, the events, and two questions. Everything that thinks is elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from earmark.web.access import Access, Guard
from earmark.web.actions import Actions, Refused
from earmark.web.feed import READERS, Feed

STATIC = Path(__file__).parent / "static"
LARGEST_MANIFEST = 256 * 1024


class _Question(msgspec.Struct, frozen=True):
    manifest: str


def make_app(feed: Feed, actions: Actions, access: Access) -> Starlette:
    """Return the application; it begins to answer when it is served."""

    async def index(request: Request) -> Response:
        return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")

    async def events(request: Request) -> Response:
        if feed.readers >= READERS:
            return PlainTextResponse(f"{READERS} pages are open already.\n", 503)
        return StreamingResponse(_events(feed), media_type="text/event-stream")

    async def explain(request: Request) -> Response:
        namespace, name = (request.query_params.get(key, "") for key in ("namespace", "name"))
        if not name:
            return _refused(Refused("name: which pod?", 400))
        try:
            return JSONResponse({"lines": list(await actions.explain(namespace or "default", name))})
        except Refused as error:
            return _refused(error)

    async def whatif(request: Request) -> Response:
        # A form of another site cannot send this type.
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused(Refused("content-type: want application/json", 415))
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LARGEST_MANIFEST:
                return _refused(Refused(f"manifest: want {LARGEST_MANIFEST // 1024} KiB at most", 413))
        try:
            question = msgspec.json.decode(body, type=_Question)
        except msgspec.MsgspecError as error:
            return _refused(Refused(str(error), 400))
        try:
            return JSONResponse(await actions.whatif(question.manifest))
        except Refused as error:
            return _refused(error)

    return Starlette(
        routes=[
            Route("/", index),
            Route("/events", events),
            Route("/explain", explain),
            Route("/whatif", whatif, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, access=access)],
    )


async def _events(feed: Feed) -> AsyncIterator[bytes]:
    # Browsers try again after this many milliseconds.
    yield b"retry: 1000\n\n"
    async for event in feed.follow():
        yield event


def _refused(error: Refused) -> Response:
    return JSONResponse({"error": str(error)}, error.status)
