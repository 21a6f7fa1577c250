"""The scheduler's sessions with the plugins: the handshake with the complete nominator, repeated where needed."""

from __future__ import annotations

import logging

import grpc

from earmark.framework import wire
from earmark.framework.core import Core
from earmark.framework.remote import PluginError, RemotePlugin
from earmark.v1 import common_pb2, scheduler_plugin_pb2

_log = logging.getLogger(__name__)


class Sessions:
    """See the module."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def agreed(self) -> bool:
        """Whether every plugin has a session that nothing speaks against."""
        return all(plugin.session is not None and not plugin.doubtful for plugin in self._core.remotes)

    async def current(self) -> list[tuple[RemotePlugin, common_pb2.SessionReference]]:
        """Return each plugin with its session, opened anew where it has to be.

        Raises:
            PluginError: if a plugin is away or refuses.
        """
        found = []
        for plugin in self._core.remotes:
            if plugin.session is None or plugin.doubtful:
                await self._ensure(plugin)
            assert plugin.session is not None
            found.append((plugin, plugin.session))
        return found

    async def _ensure(self, plugin: RemotePlugin) -> None:
        """Look whether the session is still good; a plugin that is another process by now needs a new one."""
        description = await plugin.describe()
        if plugin.session is not None and not plugin.refresh and plugin.instance == description.instance_id:
            keep = scheduler_plugin_pb2.KeepSessionRequest(session=plugin.session)
            try:
                await plugin.call(plugin.stub.KeepSession, keep)
            except PluginError as error:
                if error.code is not grpc.StatusCode.FAILED_PRECONDITION:
                    raise
            else:
                plugin.doubtful = False
                plugin.opened.set()
                return
        await self._open(plugin, description)

    async def _open(self, plugin: RemotePlugin, description: scheduler_plugin_pb2.DescribeResponse) -> None:
        core = self._core
        request = plugin.session_request(scheduler_plugin_pb2.SESSION_KIND_SCHEDULER)
        request.epoch = core.epoch
        request.nominations.extend(
            wire.from_nomination(nomination) for nomination in core.nominator.all() if nomination.generation > 0
        )
        answer = await plugin.call(plugin.stub.OpenSession, request)
        if plugin.instance != answer.instance_id:
            # Its wake-ups are numbered from the start again.
            plugin.last_wake_up = 0
        plugin.session = answer.session
        plugin.instance = answer.instance_id
        plugin.doubtful = False
        plugin.refresh = False
        core.generation = max(core.generation, answer.highest_generation)
        core.hints.register_always(plugin.name, description.requeue_events)
        core.queue.asks_remote = any(
            remote.has(scheduler_plugin_pb2.EXTENSION_POINT_PRE_ENQUEUE) for remote in core.remotes
        )
        plugin.opened.set()
        _log.info("session with %s (%s), epoch %d", plugin.name, plugin.service, core.epoch)
