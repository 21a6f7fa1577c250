"""How fast the embedded Kubernetes API is, through HTTPS, with clients on the same machine.

python tests/bench/bench_api.py [--seconds 5] [--kube-apiserver PROGRAM --etcd PROGRAM] [--objects 100000] [--json FILE]

Where kube-apiserver and etcd are built (or named by EARMARK_KUBE_APISERVER and EARMARK_ETCD) they are measured in the
same run. The clients are threads of this process. Exit status 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from earmark.apiserver.registry import Registry
from earmark.apiserver.sqlite import SqliteStore
from earmark.kube.resources import BY_KIND
from earmark.runtime.clock import SystemClock
from earmark.runtime.ids import SystemIds
from support.apiserver_process import Address, Connection, embedded, kubernetes

CLIENTS = 4
PODS = "/api/v1/namespaces/default/pods"
LIST_PODS = 5_000
WRITES_A_SECOND = 200
PATCH = "application/merge-patch+json"


@dataclass(frozen=True)
class Row:
    """A measurement, its limit (negative: at least), and the same of kube-apiserver."""

    name: str
    value: float
    limit: float | None = None
    beside: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the limit is kept, and more creates are done than kube-apiserver does."""
        if self.limit is None:
            return True
        if self.limit < 0:
            return self.value >= -self.limit and (self.beside is None or self.value > self.beside)
        return self.value <= self.limit


def pod(name: str) -> dict[str, Any]:
    """Return a pod as they are in clusters with devices."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "bench", "tier": "worker"}},
        "spec": {
            "containers": [{"name": "main", "image": "registry.example/app:1",
                            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
    }  # fmt: skip


def expect(answer: tuple[int, bytes], status: int) -> bytes:
    """Return the body of an answer that must have a status."""
    if answer[0] != status:
        raise RuntimeError(f"{answer[0]}: {answer[1][:500]!r}")
    return answer[1]


def rate(address: Address, seconds: float, step: Callable[[Connection, int, int], None]) -> float:
    """Return how often a second `step(connection, client, number)` is done by all clients together."""
    counts = [0] * CLIENTS
    barrier = threading.Barrier(CLIENTS + 1)
    failures: list[BaseException] = []

    def client(index: int) -> None:
        connection = Connection(address)
        connection.ask("GET", "/readyz")
        barrier.wait()
        ends = time.perf_counter() + seconds
        try:
            while time.perf_counter() < ends:
                step(connection, index, counts[index])
                counts[index] += 1
        except (OSError, RuntimeError) as error:
            failures.append(error)
        connection.close()

    threads = [threading.Thread(target=client, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - begun)


def creates(address: Address, seconds: float) -> float:
    """Return creates a second."""
    return rate(
        address,
        seconds,
        lambda connection, client, number: _ignore(
            expect(connection.ask("POST", PODS, json.dumps(pod(f"c{client}-{number}")).encode()), 201)
        ),
    )


def gets(address: Address, seconds: float) -> float:
    """Return gets a second."""
    return rate(
        address,
        seconds,
        lambda connection, client, number: _ignore(
            expect(connection.ask("GET", f"{PODS}/c{client}-{number % 50}"), 200)
        ),
    )


def _ignore(value: object) -> None:
    """A step returns nothing."""


def watch_millis(address: Address, seconds: float) -> list[float]:
    """Write at a steady rate and watch; return the milliseconds from sending each write to its event."""
    sent: dict[str, float] = {}
    seen: list[float] = []
    total = int(WRITES_A_SECOND * seconds)
    version = json.loads(Connection(address).ask("GET", f"{PODS}?limit=1")[1])["metadata"]["resourceVersion"]
    ready = threading.Event()

    def watcher() -> None:
        connection = Connection(address)
        ready.set()
        for event in connection.watch(f"{PODS}?watch=true&resourceVersion={version}"):
            mark = event["object"]["metadata"].get("annotations", {}).get("mark")
            if mark in sent:
                seen.append((time.perf_counter() - sent[mark]) * 1000)
                if len(seen) == total:
                    return

    reader = threading.Thread(target=watcher, daemon=True)
    reader.start()
    ready.wait()
    time.sleep(0.3)
    begun = time.perf_counter()

    def writer(client: int) -> None:
        connection = Connection(address)
        for number in range(client, total, CLIENTS):
            due = begun + number / WRITES_A_SECOND
            time.sleep(max(0.0, due - time.perf_counter()))
            body = json.dumps({"metadata": {"annotations": {"mark": str(number)}}}).encode()
            sent[str(number)] = time.perf_counter()
            expect(connection.ask("PATCH", f"{PODS}/c{client}-{number % 50}", body, PATCH), 200)
        connection.close()

    writers = [threading.Thread(target=writer, args=(index,)) for index in range(CLIENTS)]
    for thread in writers:
        thread.start()
    for thread in (*writers, reader):
        thread.join(timeout=seconds + 30)
    if len(seen) != total:
        raise RuntimeError(f"{len(seen)} of {total} events were seen")
    return sorted(seen)


def list_millis(address: Address) -> float:
    """Return the milliseconds that a list of `LIST_PODS` pods takes, the median of five."""
    connection = Connection(address)
    there = len(json.loads(connection.ask("GET", PODS)[1])["items"])
    for number in range(there, LIST_PODS):
        expect(connection.ask("POST", PODS, json.dumps(pod(f"l{number}")).encode()), 201)
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        body = expect(connection.ask("GET", f"{PODS}?limit={LIST_PODS}"), 200)
        taken.append((time.perf_counter() - begun) * 1000)
    if len(json.loads(body)["items"]) != LIST_PODS:
        raise RuntimeError("the list is not complete")
    return statistics.median(taken)


def measure(address: Address, seconds: float) -> dict[str, float]:
    """Return all measurements of one API server."""
    found = {"creates/s": creates(address, seconds), "gets/s": gets(address, seconds)}
    millis = watch_millis(address, seconds)
    found["watch p50 (ms)"] = millis[len(millis) // 2]
    found["watch p99 (ms)"] = millis[len(millis) * 99 // 100]
    found[f"list of {LIST_PODS} pods (ms)"] = list_millis(address)
    return found


async def fill(path: Path, count: int) -> None:
    """Put pods into a store that nobody uses."""
    store = SqliteStore(path, synchronous="NORMAL")
    registry = Registry(store, SystemClock(), SystemIds().uuid)
    resource = BY_KIND["Pod"]
    for number in range(count - registry.revision):
        written = registry.create(resource, "default", pod(f"p{number}"))
        if number % 1000 == 0:
            await registry.durable(written.revision)
    await registry.durable(registry.revision)
    await store.close()


def memory(folder: Path, count: int, seconds: float) -> Row:
    """Return the resident MiB of an API that was started with many objects, listed them, and took writes."""
    store = folder / "apiserver" / "store.db"
    store.parent.mkdir(parents=True)
    asyncio.run(fill(store, count))
    with embedded(folder) as (api, address):
        token, connection = "", Connection(address)
        while True:
            page = json.loads(connection.ask("GET", f"{PODS}?limit=500&continue={token}")[1])
            token = page["metadata"].get("continue", "")
            if not token:
                break
        creates(address, seconds)
        return Row(f"RSS with {count:,} objects (MiB)", api.rss_bytes() / 2**20, 500.0 if count == 100_000 else None)


LIMITS = {
    "creates/s": -500.0, "gets/s": -1200.0, "watch p99 (ms)": 10.0, f"list of {LIST_PODS} pods (ms)": 400.0,
}  # fmt: skip


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="for each rate")
    parser.add_argument("--objects", type=int, default=100_000, help="for the memory; 0 leaves that out")
    parser.add_argument("--kube-apiserver", default=os.environ.get("EARMARK_KUBE_APISERVER"), help="built program")
    parser.add_argument("--etcd", default=os.environ.get("EARMARK_ETCD"), help="built program")
    parser.add_argument("--json", help="write the results to this file")
    options = parser.parse_args()
    # The threads of the clients shall not wait 5 ms for each other.
    sys.setswitchinterval(0.0002)
    beside: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with embedded(folder / "embedded") as (_, address):
            found = measure(address, options.seconds)
        if options.kube_apiserver and options.etcd:
            with kubernetes(Path(options.etcd), Path(options.kube_apiserver), folder / "kubernetes") as address:
                beside = measure(address, options.seconds)
        rows = [Row(key, value, LIMITS.get(key), beside.get(key)) for key, value in found.items()]
        if options.objects:
            rows.append(memory(folder / "memory", options.objects, min(options.seconds, 5.0)))
    print(f"{'':36} {'earmark':>10} {'limit':>10} {'kube-apiserver + etcd':>22}")
    for row in rows:
        limit = "" if row.limit is None else f"{'>=' if row.limit < 0 else '<='} {abs(row.limit):g}"
        other = "" if row.beside is None else f"{row.beside:.1f}"
        print(f"{row.name:36} {row.value:10.1f} {limit:>10} {other:>22} {'' if row.holds else '  MISSED'}")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
