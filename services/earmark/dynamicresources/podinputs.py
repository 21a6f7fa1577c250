"""The pod that a request is about: one of the API's, or one that a sandbox brings itself."""

from __future__ import annotations

import msgspec

from earmark.dynamicresources import convert
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.plugin import Context, Plugin, valid
from earmark.dynamicresources.sessions import Session
from earmark.dynamicresources.whatif import MissingTemplate, wanted_templates, with_pod
from earmark.kube import objects
from earmark.v1 import common_pb2


class PodInputs:
    """Checks and finds them."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    async def check(self, session: Session, item: common_pb2.PodInput, field: str, context: Context) -> None:
        """End the call with INVALID_ARGUMENT where the pod of a request cannot be used."""

        def read() -> None:
            convert.pod_ref(item.pod, f"{field}.pod")
            convert.resource_version(item.resource_version, f"{field}.resource_version")
            if item.manifest and session.scheduler:
                raise convert.InvalidField(f"{field}.manifest: only sandbox sessions may bring a pod of their own")
            if item.manifest:
                _manifest(item, field)

        await valid(context, read)

    async def find(
        self, session: Session, item: common_pb2.PodInput, field: str, wait_seconds: float
    ) -> PodFacts | None:
        """Return the (checked) pod of a request, after a short wait where the cache has not seen it.

        None if it stays unknown. Raises InvalidField for a template of a sandbox's pod that is missing.
        """
        plugin = self._plugin
        ref = convert.pod_ref(item.pod)
        if item.manifest:
            return await self._made(session, _manifest(item, field), item, field)
        if session.scheduler:
            version = convert.resource_version(item.resource_version, field)
            await plugin.caches.wait_seen(0, 0, ref.uid, version, wait_seconds)
            if not plugin.caches.has_pod(ref.uid, version):
                return None
        return session.core.world.pods.get(ref.uid)

    async def _made(self, session: Session, pod: objects.Pod, item: common_pb2.PodInput, field: str) -> PodFacts:
        """Make a sandbox's own pod and its claims in it. Raises InvalidField for a template that is missing."""
        known = session.core.world.pods.get(item.pod.uid)
        if known is not None:
            return known
        templates: dict[str, objects.ResourceClaimTemplate] = {}
        for name in wanted_templates(pod):
            template = await self._plugin.template(pod.metadata.namespace or "default", name)
            if template is not None:
                templates[name] = template
        try:
            world, facts = with_pod(session.core.world, pod, convert.pod_ref(item.pod), item.priority, templates)
        except MissingTemplate as reason:
            raise convert.InvalidField(f"{field}.manifest: {reason}") from reason
        session.core.commit((world, ()))
        return facts


def _manifest(item: common_pb2.PodInput, field: str) -> objects.Pod:
    try:
        return msgspec.json.decode(item.manifest.encode(), type=objects.Pod)
    except (msgspec.DecodeError, msgspec.ValidationError) as reason:
        raise convert.InvalidField(f"{field}.manifest: {reason}") from reason
