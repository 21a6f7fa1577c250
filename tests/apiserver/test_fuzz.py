"""Whatever is sent: a Status that says what is wrong, never a fault of the server. `make soak-requests` sends 10,000."""

from __future__ import annotations

import contextlib
import http.client
import random
import socket
import ssl
from pathlib import Path

import pytest

from earmark.cel.devices import selector_problem
from support.apiserver_fuzz import fuzzed
from support.apiserver_http import application
from support.apiserver_process import Address, Connection, embedded
from support.apiserver_registry import Cluster


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_sent_is_never_the_server_s_fault(seed: int) -> None:
    cluster = Cluster(selector_problem=selector_problem)
    app = application(cluster.registry, cluster.clock)
    rng = random.Random(seed)
    answered: dict[int, int] = {}
    for _ in range(800):
        answer = await fuzzed(app, rng)
        assert answer.status < 500, answer.body
        if "json" in answer.headers["content-type"]:
            assert isinstance(answer.json, dict)
        answered[answer.status] = answered.get(answer.status, 0) + 1
    assert {200, 201, 400, 404, 405, 415, 422} <= set(answered)


def _raw(address: Address, data: bytes) -> bytes:
    """Send bytes over TLS and return the first of what comes back."""
    context = ssl.create_default_context(cadata=address.ca_pem)
    with (
        socket.create_connection((address.host, address.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=address.host) as secure,
    ):
        secure.sendall(data)
        secure.settimeout(1.0)
        with contextlib.suppress(TimeoutError, ssl.SSLError, ConnectionError):
            # An answer, the end of the connection, or waiting for more: all are right.
            return secure.recv(4096)
    return b""


def test_bytes_that_are_no_http_leave_the_server_alive(tmp_path: Path) -> None:
    rng = random.Random(5)
    heads = [b"GET / HTTP/1.1\r\n", b"GET /readyz HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50, b"\r\n" * 100,
             b"POST /api HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
             b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 99_999]  # fmt: skip
    with embedded(tmp_path) as (api, address):
        for number in range(24):
            head = heads[number % len(heads)]
            answer = _raw(address, head + rng.randbytes(rng.randrange(40)))
            assert not answer.startswith(b"HTTP/1.1 5"), (head, answer)
        # Not TLS at all, and a connection that says nothing and goes.
        with socket.create_connection((address.host, address.port)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        socket.create_connection((address.host, address.port)).close()
        with contextlib.suppress(OSError, http.client.HTTPException):
            Connection(address).ask("POST", "/api/v1/pods", b"x" * (5 * 2**20))
        assert Connection(address).ask("GET", "/readyz") == (200, b"ok")
        assert "Traceback" not in api.log()
