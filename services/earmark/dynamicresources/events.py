"""Kubernetes Events about pods. A lost one is logged and harms nothing."""

from __future__ import annotations

import logging

from earmark.dynamicresources.facts import PodRef
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi
from earmark.kube.clock import Clock
from earmark.kube.objects import Event, ObjectMeta, ObjectReference
from earmark.runtime.component import Ids

_NOTE_LIMIT = 1024
_CONTROLLER = "earmark-dynamicresources"

_log = logging.getLogger(__name__)


class Events:
    """Writes Events of type Normal."""

    def __init__(self, api: KubeApi, clock: Clock, ids: Ids) -> None:
        self._api = api
        self._clock = clock
        self._ids = ids

    async def record(self, pod: PodRef, reason: str, action: str, note: str) -> None:
        """Record one event about a pod."""
        event = Event(
            metadata=ObjectMeta(name=f"{pod.name}.{self._ids.below(1 << 60):x}", namespace=pod.namespace),
            event_time=self._clock.now(),
            reporting_controller=_CONTROLLER,
            reporting_instance=_CONTROLLER,
            action=action,
            reason=reason,
            type="Normal",
            note=note[:_NOTE_LIMIT],
            regarding=ObjectReference(
                api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid
            ),
        )
        try:
            await self._api.create(event)
        except (ApiError, ApiUnavailable) as trouble:
            _log.warning("event %s about pod %s/%s: %s", reason, pod.namespace, pod.name, trouble)
