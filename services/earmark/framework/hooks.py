"""Tells plugins with NominationExtensions that nominations are gone, in order and outside of the nominator (F9, F35).

KEP: RemoveNominatedPod is called whenever a nomination is cleared or replaced (E89). A plugin that cannot be reached is
told by the next handshake, which carries the complete nominator.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from earmark.framework import wire
from earmark.framework.nominator import NominatedPod, NominationChange, Victim
from earmark.framework.remote import PluginError, RemotePlugin
from earmark.kube.clock import Clock
from earmark.runtime.component import Ids
from earmark.runtime.retry import retrying
from earmark.v1 import nomination_extensions_pb2

ASSUMED = nomination_extensions_pb2.REMOVE_REASON_ASSUMED
BOUND = nomination_extensions_pb2.REMOVE_REASON_BOUND
POD_DELETED = nomination_extensions_pb2.REMOVE_REASON_POD_DELETED
CLEARED = nomination_extensions_pb2.REMOVE_REASON_CLEARED
EXECUTION_FAILED = nomination_extensions_pb2.REMOVE_REASON_EXECUTION_FAILED

Reason: TypeAlias = nomination_extensions_pb2.RemoveReason.ValueType

_log = logging.getLogger(__name__)


class NominationHook:
    """A queue of removals, delivered one after the other by a background task."""

    def __init__(self, plugins: Sequence[RemotePlugin], clock: Clock, ids: Ids) -> None:
        self._plugins = tuple(plugins)
        self._clock = clock
        self._ids = ids
        self._removals: deque[nomination_extensions_pb2.RemoveNominatedPodRequest] = deque()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def changed(self, change: NominationChange, reason: Reason = CLEARED) -> None:
        """Tell plugins if the nominator's operation lost a nomination that a preemption had made."""
        if change.lost is not None and change.lost.generation > 0:
            self.removed(change.lost, reason)

    def removed(self, nomination: NominatedPod, reason: Reason, not_deleted: Sequence[Victim] = ()) -> None:
        """Tell plugins that a nomination is gone."""
        request = nomination_extensions_pb2.RemoveNominatedPodRequest(
            pod=wire.nominated_reference(nomination),
            generation=nomination.generation,
            reason=reason,
            victims_not_deleted=[victim.uid for victim in not_deleted],
        )
        self._removals.append(request)
        self._idle.clear()
        self._work.set()

    async def delivered(self) -> None:
        """Return when everything so far has been told, or given up on."""
        await self._idle.wait()

    async def run(self) -> None:
        """Deliver until cancelled."""
        while True:
            await self._work.wait()
            while self._removals:
                request = self._removals[0]
                for plugin in self._plugins:
                    await self._tell(plugin, request)
                self._removals.popleft()
            self._work.clear()
            self._idle.set()

    async def _tell(self, plugin: RemotePlugin, request: nomination_extensions_pb2.RemoveNominatedPodRequest) -> None:
        if not plugin.extends_nominations or plugin.session is None:
            return
        mine = nomination_extensions_pb2.RemoveNominatedPodRequest()
        mine.CopyFrom(request)
        mine.session.CopyFrom(plugin.session)
        try:
            await retrying(
                lambda: plugin.remove_nominated(mine),
                clock=self._clock,
                ids=self._ids,
                attempts=3,
                retryable=lambda error: isinstance(error, PluginError) and error.transient,
            )
        except PluginError as error:
            # The session is in doubt now: it is opened anew, with the complete nominator, before the next attempt.
            plugin.doubtful = True
            plugin.refresh = True
            _log.warning("nomination of %s: %s", request.pod.name, error)
