"""Records events.k8s.io/v1 Events about objects. One that cannot be written is logged and lost, as upstream's are."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi
from earmark.kube.clock import Clock
from earmark.kube.resources import BY_STRUCT

NORMAL = "Normal"
WARNING = "Warning"

# The API server refuses a longer note.
_LONGEST_NOTE = 1024

_log = logging.getLogger(__name__)


def reference_to(value: objects.Object) -> objects.ObjectReference:
    """Return a reference to an object, as events carry it."""
    resource = BY_STRUCT[type(value)]
    meta = value.metadata
    return objects.ObjectReference(
        api_version=resource.api_version, kind=resource.kind, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def pod_reference(namespace: str, name: str, uid: str) -> objects.ObjectReference:
    """Return a reference to a pod of which only the identity is known."""
    return objects.ObjectReference(api_version="v1", kind="Pod", namespace=namespace, name=name, uid=uid)


class EventRecorder:
    """Writes the events of one component."""

    def __init__(self, api: KubeApi, clock: Clock, *, controller: str, instance: str = "") -> None:
        """Report as `controller`; `instance` is its own name where it has several."""
        self._api = api
        self._clock = clock
        self._controller = controller
        self._instance = instance or controller

    async def record(
        self,
        regarding: objects.ObjectReference,
        *,
        type_: str,
        reason: str,
        action: str,
        note: str,
        related: objects.ObjectReference | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Write one event about `regarding`, dated now."""
        now = self._clock.now()
        event = objects.Event(
            metadata=objects.ObjectMeta(
                generate_name=f"{regarding.name}.",
                namespace=regarding.namespace or "default",
                annotations=dict(annotations or {}),
            ),
            # A MicroTime needs its fraction, and one of zero is not written out.
            event_time=now.replace(microsecond=now.microsecond or 1),
            reporting_controller=self._controller,
            reporting_instance=self._instance,
            action=action,
            reason=reason,
            type=type_,
            note=note[:_LONGEST_NOTE],
            regarding=regarding,
            related=related,
        )
        try:
            await self._api.create(event)
        except (ApiError, ApiUnavailable) as error:
            _log.warning("event %s about %s/%s is lost: %s", reason, regarding.namespace, regarding.name, error)
