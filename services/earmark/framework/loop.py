"""The scheduling loop: recovery first, then attempt after attempt; it sleeps until something happens or is due."""

from __future__ import annotations

import asyncio
import logging
import math

from earmark.framework import wire
from earmark.framework.attempt import Scheduler
from earmark.framework.core import Core
from earmark.framework.recovery import Recovery
from earmark.framework.remote import PluginError
from earmark.framework.sessions import Sessions
from earmark.framework.status import Status
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.v1 import scheduler_plugin_pb2

_log = logging.getLogger(__name__)


class SchedulingLoop:
    """See the module."""

    def __init__(self, core: Core, sessions: Sessions, recovery: Recovery, scheduler: Scheduler) -> None:
        self._core = core
        self._sessions = sessions
        self._recovery = recovery
        self._scheduler = scheduler
        self.running = False
        # After a plugin could not be asked whether pods may enter: when to ask again.
        self._ask_at = -math.inf
        self._complaint = ""

    async def run(self) -> None:
        """Schedule until cancelled."""
        core = self._core
        await core.pods.wait_synced()
        await core.nodes.wait_synced()
        await self._recovery.take_epoch()
        self._recovery.load_nominations()
        while not await self._connect():
            await core.env.clock.sleep(core.settings.reconnect_seconds)
        await self._recovery.reconcile()
        self.running = True
        _log.info("scheduling, epoch %d", core.epoch)
        while True:
            await self._step()

    async def _step(self) -> None:
        core = self._core
        core.changed.clear()
        if core.api_away:
            await self._await_api()
        core.queue.flush(core.now())
        if not self._sessions.agreed and core.now() >= self._ask_at and not await self._connect():
            self._ask_at = core.now() + core.settings.reconnect_seconds
        await self._ask_entering()
        queued = core.queue.pop(core.now())
        core.metrics.pending(core.queue.counts())
        if queued is not None:
            await self._scheduler.attempt(queued)
            return
        await self._wait()

    async def _wait(self) -> None:
        core = self._core
        deadline = core.queue.next_deadline()
        if core.queue.entering() or not self._sessions.agreed:
            deadline = min(deadline, self._ask_at)
        timeout = None if deadline == math.inf else max(0.0, deadline - core.now())
        try:
            await asyncio.wait_for(core.changed.wait(), timeout)
        except TimeoutError:
            return

    async def _connect(self) -> bool:
        """Open the sessions that are missing; return whether all plugins agree."""
        try:
            await self._sessions.current()
        except PluginError as error:
            # The same text again and again helps nobody.
            if str(error) != self._complaint:
                _log.warning("%s; tried again", error)
            self._complaint = str(error)
            return False
        self._complaint = ""
        return True

    async def _await_api(self) -> None:
        """Pause until the API answers (design 7: schedulers pause, nominations stay)."""
        core = self._core
        while core.api_away:
            try:
                await core.env.api.get(objects.Lease, core.settings.lease_name, core.settings.lease_namespace)
                core.api_away = False
            except ApiError:
                core.api_away = False
            except ApiUnavailable:
                await core.env.clock.sleep(core.settings.reconnect_seconds)
        _log.info("the API is there again")

    # --- PreEnqueue --------------------------------------------------------------------------------------------------

    async def _ask_entering(self) -> None:
        """Ask remote plugins about the pods that want to enter the active queue: one call a plugin."""
        core = self._core
        while core.now() >= self._ask_at and (entering := core.queue.entering()):
            refusals: dict[str, Status] = {}
            try:
                for plugin in core.remotes:
                    if not plugin.has(scheduler_plugin_pb2.EXTENSION_POINT_PRE_ENQUEUE):
                        continue
                    asked = [queued for queued, _ in entering if queued.uid not in refusals]
                    if not asked or plugin.session is None:
                        continue
                    request = scheduler_plugin_pb2.PreEnqueueRequest(
                        session=plugin.session, pods=[wire.pod_input(queued.pod) for queued in asked]
                    )
                    answer = await plugin.call(plugin.stub.PreEnqueue, request)
                    if len(answer.statuses) != len(asked):
                        raise plugin.malformed("PreEnqueue", f"{len(answer.statuses)} statuses for {len(asked)} pods")
                    for queued, message in zip(asked, answer.statuses, strict=True):
                        status = wire.to_status(message, plugin.name)
                        if not status.success:
                            refusals[queued.uid] = status
            except PluginError as error:
                _log.warning("%s; asked again", error)
                self._ask_at = core.now() + core.settings.reconnect_seconds
                return
            for queued, token in entering:
                core.queue.answer(queued.uid, token, refusals.get(queued.uid), core.now())
