"""Writes pods' statuses, and keeps the nominator right about its own writes."""

from __future__ import annotations

import logging
from typing import Any

from earmark.framework import pod_status
from earmark.framework.core import Core
from earmark.framework.pod_status import Nominating
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, PatchType

_log = logging.getLogger(__name__)


class PodWriter:
    """See the module."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def failed(self, pod: objects.Pod, reason: str, message: str, nominating: Nominating) -> bool:
        """Write the outcome of a failed attempt; return whether the API has it (or nothing had to be written)."""
        now = self._core.env.clock.now()
        patch = pod_status.failure_patch(pod, reason, message, nominating, now, deployment=self._core.record_deployment)
        return await self._write(pod, patch)

    async def clear_nomination(self, pod: objects.Pod) -> bool:
        """Take a pod's nomination out of the API; return whether it is out."""
        return await self._write(pod, pod_status.clear_patch(pod))

    async def _write(self, pod: objects.Pod, patch: dict[str, Any] | None) -> bool:
        if patch is None:
            return True
        meta = pod.metadata
        # What is not about the nomination must not make the watch's word on it wait.
        nominates = "nominatedNodeName" in patch.get("status", {})
        version = 0
        if nominates:
            self._core.nominator.writing(meta.uid)
        try:
            written = await self._core.env.api.patch(
                objects.Pod,
                meta.name,
                meta.namespace,
                patch,
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
            text = written.metadata.resource_version
            version = int(text) if text.isdigit() else 0
        except ApiError as error:
            if not (error.not_found or error.conflict):
                _log.warning("status of pod %s/%s: the API refused: %s", meta.namespace, meta.name, error)
            return False
        except ApiUnavailable as error:
            _log.warning("status of pod %s/%s: the API is away: %s", meta.namespace, meta.name, error)
            self._core.api_away = True
            return False
        finally:
            if nominates:
                self._core.nominator.wrote(meta.uid, version)
        return True
