"""API servers as processes of their own: the embedded one, and kube-apiserver with etcd where they are built.

Both are given as an `Address`; `Connection` is a small blocking client that costs about as little as a client can.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

START_SECONDS = 90.0
CALL_SECONDS = 30.0


@dataclass(frozen=True)
class Address:
    """Where an API server listens, and the token that it takes."""

    host: str
    port: int
    token: str
    ca_pem: str = ""

    @staticmethod
    def of(kubeconfig: Path) -> Address:
        """Read a kubeconfig that the embedded API has written."""
        data = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        cluster = data["clusters"][0]["cluster"]
        host, _, port = cluster["server"].removeprefix("https://").rpartition(":")
        ca_pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return Address(host, int(port), data["users"][0]["user"]["token"], ca_pem)


class Connection:
    """One connection that is kept; not for several threads."""

    def __init__(self, address: Address) -> None:
        if address.ca_pem:
            context = ssl.create_default_context(cadata=address.ca_pem)
        else:
            context = ssl._create_unverified_context()
        self._http = http.client.HTTPSConnection(address.host, address.port, timeout=CALL_SECONDS, context=context)
        self._headers = {"Authorization": f"Bearer {address.token}"}

    def ask(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json"
    ) -> tuple[int, bytes]:
        """Send a request; return status and body. Raises OSError or HTTPException if the connection breaks."""
        headers = {**self._headers, "Content-Type": content_type} if body else self._headers
        self._http.request(method, path, body=body or None, headers=headers)
        answer = self._http.getresponse()
        return answer.status, answer.read()

    def watch(self, path: str) -> Iterator[dict[str, Any]]:
        """Iterate over the events of a watch."""
        self._http.request("GET", path, headers=self._headers)
        answer = self._http.getresponse()
        while line := answer.readline():
            yield json.loads(line)

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class EmbeddedApi:
    """The embedded API as a process, with its files in a folder; it can be killed and started again."""

    def __init__(self, state: Path, settings: Mapping[str, str] | None = None) -> None:
        """`settings` are variables EARMARK_APISERVER_NAME by their NAME in lower case."""
        self.state = state
        self.kubeconfig = state / "kubeconfig"
        named = {f"EARMARK_APISERVER_{name.upper()}": value for name, value in (settings or {}).items()}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EARMARK_")}
        self._environment = {**kept, "EARMARK_RUNTIME_STATE_DIR": str(state), **named}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Address:
        """Start it, and return once it answers."""
        self.state.mkdir(parents=True, exist_ok=True)
        with (self.state / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "earmark.apiserver"], env=self._environment, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"the API has ended: {self.log()[-2000:]}")
            with contextlib.suppress(OSError, http.client.HTTPException, yaml.YAMLError, TypeError, KeyError):
                # Not there yet, or half written.
                address = Address.of(self.kubeconfig)
                if Connection(address).ask("GET", "/readyz")[0] == 200:
                    return address
            time.sleep(0.05)
        raise RuntimeError(f"the API does not answer: {self.log()[-2000:]}")

    def log(self) -> str:
        """Return what it has logged."""
        return (self.state / "log").read_text(encoding="utf-8", errors="replace")

    def rss_bytes(self) -> int:
        """Return its resident memory."""
        assert self.process is not None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; return the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        status = self.process.wait(timeout=START_SECONDS)
        self.process = None
        return status


@contextlib.contextmanager
def embedded(state: Path, settings: Mapping[str, str] | None = None) -> Iterator[tuple[EmbeddedApi, Address]]:
    """Run the embedded API."""
    api = EmbeddedApi(state, settings)
    try:
        yield api, api.start()
    finally:
        if api.process is not None:
            api.kill()


def free_port() -> int:
    """Return a port that nobody listens on at the moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def kubernetes(etcd: Path, apiserver: Path, state: Path) -> Iterator[Address]:
    """Run etcd and kube-apiserver as upstream sets them, without authorization."""
    state.mkdir(parents=True, exist_ok=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key_file, token_file = state / "sa.key", state / "tokens.csv"
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    token_file.write_text("the-token,admin,1,system:masters\n", encoding="utf-8")
    client, peer, port = free_port(), free_port(), free_port()
    clients, peers = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
    commands: list[Sequence[str]] = [
        [str(etcd), f"--data-dir={state / 'etcd'}", f"--listen-client-urls={clients}", "--log-level=error",
         f"--advertise-client-urls={clients}", f"--listen-peer-urls={peers}",
         f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"],
        [str(apiserver), f"--etcd-servers={clients}", f"--secure-port={port}", "--bind-address=127.0.0.1",
         f"--cert-dir={state / 'certs'}", f"--token-auth-file={token_file}", "--authorization-mode=AlwaysAllow",
         "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key_file}",
         f"--service-account-signing-key-file={key_file}", "--disable-admission-plugins=ServiceAccount"],
    ]  # fmt: skip
    address = Address("127.0.0.1", port, "the-token")
    running: list[subprocess.Popen[bytes]] = []
    try:
        with (state / "log").open("wb") as log:
            for command in commands:
                running.append(subprocess.Popen(command, stdout=log, stderr=log))
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if Connection(address).ask("GET", "/api/v1/namespaces/default")[0] == 200:
                    break
            if time.monotonic() > deadline or running[1].poll() is not None:
                raise RuntimeError((state / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
            time.sleep(0.2)
        yield address
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()
