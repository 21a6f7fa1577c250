"""Composes the page and serves it until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from earmark.client import EarmarkClient
from earmark.kube.http import HttpApi
from earmark.runtime.clock import SystemClock
from earmark.runtime.main import SUPERVISED_VARIABLE
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.tasks import ComponentTasks
from earmark.web.access import Access
from earmark.web.actions import ClientActions, Explain
from earmark.web.app import make_app
from earmark.web.board import Board
from earmark.web.feed import Feed
from earmark.web.following import Following

HOST = "127.0.0.1"
GRACE_SECONDS = 1
# How often it is looked whether who started the page is still there.
PARENT_SECONDS = 1.0


class PageServer(uvicorn.Server):
    """Leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def listen(port: int) -> socket.socket:
    """Bind the page's socket, on this machine only; port 0 takes a free one. Raises OSError."""
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((HOST, port))
        bound.listen()
    except BaseException:
        bound.close()
        raise
    return bound


def server_of(application: object) -> PageServer:
    """Return a server for an application; `serve(sockets=[...])` runs it until `should_exit` is set."""
    config = uvicorn.Config(
        application,  # type: ignore[arg-type]
        http="httptools",
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return PageServer(config)


async def serve(
    runtime: RuntimeSettings, api: HttpApi, bound: socket.socket, explain: Explain, opened: Callable[[str], None]
) -> bool:
    """Serve the page of a running earmark until SIGINT or SIGTERM; `opened` is told its address.

    Returns False if it had to end because it could not follow any more (the reason is logged).
    """
    access = Access.fresh(*bound.getsockname())
    clock = SystemClock()
    board = Board()
    failures: list[str] = []
    feed = Feed(board, clock)
    async with EarmarkClient(runtime) as client:
        server = server_of(make_app(feed, ClientActions(client, api, board, explain), access))

        def stop() -> None:
            server.should_exit = True

        def failed(name: str, error: BaseException) -> None:
            # A page that has stopped following would show what is not so.
            failures.append(name)
            stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        tasks = ComponentTasks("web", failed)
        Following(feed, api, client, clock).start(tasks)
        if SUPERVISED_VARIABLE in os.environ:
            tasks.spawn(_end_with_parent(stop), "parent")
        try:
            opened(access.address)
            await server.serve(sockets=[bound])
        finally:
            await tasks.cancel_all()
    return not failures


async def _end_with_parent(stop: Callable[[], None]) -> None:
    parent = os.getppid()
    # Nobody tells of a parent's end: it is looked for.
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        if os.getppid() != parent:
            stop()
