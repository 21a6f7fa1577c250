"""The /metrics endpoint of a process, over its component's own registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from earmark.runtime.server import AddressError, check_address


def process_registry() -> CollectorRegistry:
    """Return a registry with the process's memory and CPU time."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    return registry


@contextlib.contextmanager
def served(registry: CollectorRegistry, address: str, written_to: Path) -> Iterator[str]:
    """Serve /metrics on a loopback address for the length of the block and yield the address with its real port.

    The address is written to a file too, for whoever looks for it. Raises AddressError.
    """
    check_address(address)
    host, _, port = address.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except OSError as error:
        raise AddressError(f"metrics_address {address!r}: cannot listen: {error.strerror or error}") from error
    actual = f"{host}:{server.server_port}"
    written_to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written_to.write_text(f"http://{actual}/metrics\n", encoding="utf-8")
    try:
        yield actual
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=1)
        written_to.unlink(missing_ok=True)
