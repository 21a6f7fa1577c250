"""The page of a big made-up cluster that changes all the time: 500 nodes with 8 devices, preempted one after another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from earmark.runtime.clock import SystemClock
from earmark.v1 import common_pb2, framework_pb2
from earmark.web.access import Access
from earmark.web.app import make_app
from earmark.web.board import Board
from earmark.web.feed import Feed
from earmark.web.queueing import queue_data
from earmark.web.serving import listen, server_of
from earmark.web.windows import window
from support.web_objects import claim, pod, settlement, slice_of

NODES, DEVICES = 500, 8
PHASES = ("terminating", "deallocating", "held", "ended")


class NoActions:
    """Nobody asks."""

    async def explain(self, namespace: str, name: str) -> Sequence[str]:
        """See Actions."""
        return ["nothing is known"]

    async def whatif(self, text: str) -> dict[str, object]:
        """See Actions."""
        return {}


@dataclass
class Load:
    """A feed on a made-up cluster, and who changes it."""

    changes_a_second: float
    nodes: int = NODES
    changes: int = 0
    feed: Feed = field(init=False)

    def __post_init__(self) -> None:
        board = Board()
        self.feed = Feed(board, SystemClock())
        for number in range(self.nodes):
            board.slice_changed(None, slice_of(f"node-{number:03}", *(f"gpu-{item}" for item in range(DEVICES))))
        self._work = [f"node-{number:03}/gpu-{item}" for number in range(self.nodes) for item in range(DEVICES)]
        for number in range(0, len(self._work), 2):
            self._begin(number, "work")
        self.feed.tick()

    def _begin(self, number: int, name: str) -> None:
        board = self.feed.board
        board.pod_changed(None, pod(f"{name}-{number}"))
        board.claim_changed(None, claim(f"{name}-claim-{number}", self._work[number], f"{name}-{number}"))

    def _end(self, number: int, name: str) -> None:
        board = self.feed.board
        board.claim_changed(claim(f"{name}-claim-{number}", self._work[number], f"{name}-{number}"), None)
        board.pod_changed(pod(f"{name}-{number}"), None)

    async def run(self) -> None:
        """Change something `changes_a_second` times a second: each device goes through a settling window."""
        step = 0
        while True:
            turn, phase = divmod(step, len(PHASES))
            # A stride, so that changes are all over the map.
            number = (turn * 194) % len(self._work)
            now = SystemClock().now()
            message = settlement(
                f"urgent-{turn}",
                self._work[number],
                f"work-{number}",
                claim=f"work-claim-{number}",
                phase=PHASES[phase],
                generation=turn,
                t0=now,
            )
            self.feed.board.window_changed(window(message))
            if phase == 1:
                self._end(number, "work")
            elif phase == 3:
                self._begin(number, "work")
                reference = common_pb2.PodReference(namespace="default", name=f"urgent-{turn}", uid=f"uid-{turn}")
                waits = [framework_pb2.QueuedPod(pod=reference, queue="unschedulable", priority=9, message="0/500")]
                self.feed.put("queue", queue_data(waits))
            step += 1
            self.changes += 1
            await asyncio.sleep(1 / self.changes_a_second)


@contextlib.contextmanager
def loaded_page(load: Load) -> Iterator[str]:
    """Serve the page of a load in a thread of its own; yields the address."""
    bound = listen(0)
    access = Access.fresh(*bound.getsockname())
    server = server_of(make_app(load.feed, NoActions(), access))

    async def serve() -> None:
        tasks = [asyncio.create_task(load.run()), asyncio.create_task(load.feed.run())]
        await server.serve(sockets=[bound])
        for task in tasks:
            task.cancel()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    try:
        yield access.address
    finally:
        server.should_exit = True
        thread.join(10)
        bound.close()
