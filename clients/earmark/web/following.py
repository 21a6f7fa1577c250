"""Follows the cluster: informers over the Kubernetes API, settling windows and the queue over gRPC."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from earmark.client import CallFailed, EarmarkClient
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi
from earmark.kube.clock import Clock
from earmark.kube.informer import Informer
from earmark.runtime.component import Tasks
from earmark.web.feed import Feed
from earmark.web.queueing import queue_data
from earmark.web.windows import window

QUEUE_SECONDS = 1.0
# A window that ended after it was listed and before it was watched is found this much later.
ENDED_SECONDS = 10.0
# How often it is looked whether the Kubernetes API answers: informers only wait where it does not.
API_SECONDS = 5.0
# Before a call that failed is tried again.
RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Following:
    """Tells a feed's board everything that the page shows."""

    def __init__(self, feed: Feed, api: KubeApi, client: EarmarkClient, clock: Clock) -> None:
        self._feed = feed
        self._api = api
        self._client = client
        self._clock = clock
        self._problems: dict[str, str] = {}
        board = feed.board
        slices = Informer(api, objects.ResourceSlice, clock)
        claims = Informer(api, objects.ResourceClaim, clock)
        pods = Informer(api, objects.Pod, clock)
        slices.add_handler(lambda event: board.slice_changed(event.old, event.new))
        pods.add_handler(lambda event: board.pod_changed(event.old, event.new))
        claims.add_handler(lambda event: board.claim_changed(event.old, event.new))
        self._informers = (slices, pods, claims)

    def start(self, tasks: Tasks) -> None:
        """Begin to follow, in background tasks."""
        for informer in self._informers:
            informer.start(tasks)
        tasks.spawn(self._again("windows", self._windows), "windows")
        tasks.spawn(self._again("ended windows", self._ended), "ended windows")
        tasks.spawn(self._again("api", self._answers), "api")
        tasks.spawn(self._again("queue", self._queue), "queue")
        tasks.spawn(self._feed.run(), "feed")

    async def _again(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (CallFailed, ApiError, ApiUnavailable) as error:
                if name not in self._problems:
                    _log.warning("%s: %s", name, error)
                away = "the Kubernetes API does not answer: " if isinstance(error, ApiUnavailable) else ""
                self._problem(name, f"{away}{error}")
            await self._clock.sleep(RETRY_SECONDS)

    def _problem(self, name: str, text: str) -> None:
        self._problems.pop(name, None)
        if text:
            self._problems[name] = text
        self._feed.put("problems", list(dict.fromkeys(self._problems.values())))

    async def _windows(self) -> None:
        # The watch sends only open windows, and what happened while nobody watched is not sent again.
        listed = await self._client.settlements()
        self._feed.board.windows_replaced([window(item) for item in listed])
        self._problem("windows", "")
        async for item in self._client.watch_settlements():
            self._feed.board.window_changed(window(item))

    async def _ended(self) -> None:
        while True:
            await self._clock.sleep(ENDED_SECONDS)
            listed = await self._client.settlements()
            self._problem("ended windows", "")
            known = {item.key for item in self._feed.board.windows.open()}
            for item in map(window, listed):
                # Only the end is final: anything else here may be older than what the watch has told.
                if not item.open and item.key in known:
                    self._feed.board.window_changed(item)

    async def _answers(self) -> None:
        while True:
            # There are few of them.
            await self._api.list(objects.PriorityClass)
            self._problem("api", "")
            await self._clock.sleep(API_SECONDS)

    async def _queue(self) -> None:
        while True:
            pods = await self._client.queue()
            self._feed.put("queue", queue_data(pods))
            self._problem("queue", "")
            await self._clock.sleep(QUEUE_SECONDS)
