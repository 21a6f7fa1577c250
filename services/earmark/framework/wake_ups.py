"""The stream of wake-ups of one plugin: which pods may have become schedulable (design: Wake-ups)."""

from __future__ import annotations

import asyncio
import logging

import grpc

from earmark.framework import wire
from earmark.framework.core import Core
from earmark.framework.events import ClusterEvent
from earmark.framework.remote import RemotePlugin
from earmark.v1 import scheduler_plugin_pb2

_log = logging.getLogger(__name__)


class WakeUpStream:
    """Follows one plugin's wake-ups; connects again with the last number and the sleepers."""

    def __init__(self, core: Core, plugin: RemotePlugin) -> None:
        self._core = core
        self._plugin = plugin

    async def run(self) -> None:
        """Follow until cancelled. The stream begins anew with each session, and after it broke."""
        plugin = self._plugin
        while True:
            await plugin.opened.wait()
            plugin.opened.clear()
            following = asyncio.ensure_future(self._follow())
            reopened = asyncio.ensure_future(plugin.opened.wait())
            try:
                await asyncio.wait({following, reopened}, return_when=asyncio.FIRST_COMPLETED)
                broken = following.done()
            finally:
                following.cancel()
                reopened.cancel()
            if broken:
                following.result()
                # Plugin or session may be gone: the loop looks, and says when there is a session to follow.
                await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)
                plugin.doubtful = True
                self._core.notify()

    async def _follow(self) -> None:
        plugin = self._plugin
        request = scheduler_plugin_pb2.WatchWakeUpsRequest(
            session=plugin.session,
            last_number=plugin.last_wake_up,
            sleepers=[wire.pod_reference(queued.pod) for queued in self._core.queue.rejected_by(plugin.name)],
        )
        try:
            # A stream lives as long as the session: it has no deadline.
            async for message in plugin.stub.WatchWakeUps(request):
                self._wake(message)
        except grpc.aio.AioRpcError as error:
            _log.info("wake-ups of %s: %s: %s", plugin.name, error.code().name, error.details())

    def _wake(self, message: scheduler_plugin_pb2.WatchWakeUpsResponse) -> None:
        core, plugin = self._core, self._plugin
        plugin.last_wake_up = max(plugin.last_wake_up, message.number)
        now = core.now()
        for pod in message.pods:
            event = ClusterEvent(message.event or "WakeUp", target=pod.uid, plugin=plugin.name, at_once=message.at_once)
            core.queue.wake(pod.uid, event, now)
        core.notify()
