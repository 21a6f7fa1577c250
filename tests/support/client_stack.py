"""A stack of services in one event loop, with the cluster of examples/gpu-cluster, and clients of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from earmark.client import EarmarkClient
from earmark.kube import objects
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.virtual import virtual_clock
from support.contract_stack import Stack

# The nodes are equal; here it is not chance which pod gets which.
PLACES = {"training": "gpu-a", "serving": "gpu-b"}


class StackChannels:
    """The stack's channels, as a client is given them."""

    def __init__(self, stack: Stack) -> None:
        self.to = stack.channel


def client_of(stack: Stack, *, timeout: float = 5.0) -> EarmarkClient:
    """Return a client of a stack."""
    runtime = RuntimeSettings(state_dir="/nowhere")
    return EarmarkClient(runtime, timeout, channels=StackChannels(stack), api=stack.world.api)


@contextlib.asynccontextmanager
async def example_stack(examples: Path, *names: str) -> AsyncIterator[Stack]:
    """Run all services on the manifests of files and folders, until all their pods run."""
    stack = Stack(virtual_clock(), "inprocess")
    await stack.start_all()
    try:
        for name in names:
            path = examples / name
            for file in sorted(path.glob("*.yaml")) if path.is_dir() else [path]:
                for manifest in yaml.safe_load_all(file.read_text(encoding="utf-8")):
                    if manifest["metadata"]["name"] in PLACES:
                        manifest["spec"]["nodeSelector"] = {
                            "kubernetes.io/hostname": PLACES[manifest["metadata"]["name"]]
                        }
                    await stack.world.apply(manifest)

        async def all_run() -> bool:
            return all(pod.status.phase == "Running" for pod in (await stack.world.api.list(objects.Pod)).items)

        await stack.until(all_run)
        yield stack
    finally:
        await stack.close()


@dataclass
class Elsewhere:
    """A stack in the event loop of another thread."""

    stack: Stack
    loop: asyncio.AbstractEventLoop


@contextlib.contextmanager
def example_stack_elsewhere(examples: Path, *names: str) -> Iterator[Elsewhere]:
    """Run a stack in a thread of its own, for callers without an event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = example_stack(examples, *names)
    try:
        stack = asyncio.run_coroutine_threadsafe(running.__aenter__(), loop).result(30)
        try:
            yield Elsewhere(stack, loop)
        finally:
            asyncio.run_coroutine_threadsafe(running.__aexit__(None, None, None), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
