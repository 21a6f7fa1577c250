"""Listening: the socket, and uvicorn as one task among others, without its own signal handlers."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from earmark.apiserver.app import ApiApplication
from earmark.apiserver.tls import Identity

KEEP_ALIVE_SECONDS = 3600
GRACE_SECONDS = 2
BACKLOG = 512


class _Server(uvicorn.Server):
    """The process decides about signals; the server is told to end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def listen(host: str, port: int, remembered: Path) -> socket.socket:
    """Bind the API's socket.

    Port 0 takes the port that is remembered in a file, so that a kubeconfig stays right over a restart, or a free one.
    Raises OSError if the address cannot be used.
    """
    wanted = port
    if port == 0:
        with contextlib.suppress(OSError, ValueError):
            # No file, or something else in it: the first start.
            wanted = int(remembered.read_text(encoding="ascii"))
    try:
        bound = _bind(host, wanted)
    except (OSError, OverflowError):
        if port == wanted:
            raise
        bound = _bind(host, 0)
    remembered.write_text(str(bound.getsockname()[1]), encoding="ascii")
    return bound


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only for sockets that say that they are TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except BaseException:
        bound.close()
        raise
    return bound


class HttpsServer:
    """Serves the application on a socket."""

    def __init__(self, application: ApiApplication, bound: socket.socket, identity: Identity) -> None:
        config = uvicorn.Config(
            application,
            http="httptools",
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            ssl_certfile=str(identity.certificate),
            ssl_keyfile=str(identity.key),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self._server = _Server(config)
        self._application = application
        self._socket = bound

    @property
    def started(self) -> bool:
        """Whether requests are answered."""
        return bool(self._server.started)

    async def run(self) -> None:
        """Serve until `stop` is called."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """End the watches and let calls in flight finish; `run` returns then."""
        self._application.close()
        self._server.should_exit = True
