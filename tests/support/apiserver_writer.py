"""Writes to a store as fast as it can and prints what is acknowledged, until it is killed: `apiserver_writer STORE`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from earmark.apiserver.registry import Registry
from earmark.apiserver.sqlite import SqliteStore
from earmark.kube.resources import BY_KIND
from earmark.runtime.clock import SystemClock
from earmark.runtime.ids import SystemIds


async def main(path: Path) -> None:
    store = SqliteStore(path, synchronous="NORMAL")
    registry = Registry(store, SystemClock(), SystemIds().uuid)
    lease = BY_KIND["Lease"]
    start = registry.revision

    async def writer(number: int) -> None:
        for step in range(1_000_000):
            name = f"r{start}-w{number}-{step}"
            written = registry.create(lease, "default", {"metadata": {"name": name}})
            await registry.durable(written.revision)
            print(f"+ {name} {written.revision}", flush=True)
            if step % 3 == 2:
                deleted = registry.delete(lease, "default", f"r{start}-w{number}-{step - 1}")
                await registry.durable(deleted.revision)
                print(f"- {deleted.name} {deleted.revision}", flush=True)

    await asyncio.gather(*(writer(number) for number in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
