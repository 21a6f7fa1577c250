"""What a scheduler does before its first attempt: its epoch, the nominator from the API, reconciliation (design 3).

A nomination whose victims are all gone or terminating is taken up again. One of whose victims none was deleted is
cleared, and the preemptor tries again. Where some were, the rest follows: another decision could choose other victims,
and these would have gone for nothing.
"""

from __future__ import annotations

import logging

from earmark.framework import record
from earmark.framework.core import Core
from earmark.framework.nominator import NominatedPod, Victim
from earmark.framework.preempting import Preempting
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.kube.informer import Informer

_log = logging.getLogger(__name__)


class Recovery:
    """See the module."""

    def __init__(self, core: Core, preempting: Preempting) -> None:
        self._core = core
        self._preempting = preempting

    # --- the epoch ---------------------------------------------------------------------------------------------------

    async def take_epoch(self) -> None:
        """Raise the lease's transitions by one: they are the epoch. Waits while the API is away."""
        while True:
            try:
                self._core.epoch = await self._transition()
                return
            except (ApiError, ApiUnavailable) as error:
                _log.warning("lease %s: %s; tried again", self._core.settings.lease_name, error)
            await self._core.env.clock.sleep(self._core.settings.reconnect_seconds)

    async def _transition(self) -> int:
        core, settings = self._core, self._core.settings
        name, namespace = settings.lease_name, settings.lease_namespace
        try:
            lease = await core.env.api.get(objects.Lease, name, namespace)
        except ApiError as error:
            if not error.not_found:
                raise
            lease = await self._create_lease()
        transitions = (lease.spec.lease_transitions or 0) + 1
        now = core.env.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        holder = f"{settings.scheduler_names[0] if settings.scheduler_names else 'earmark'}-{core.env.ids.uuid()}"
        patch = {
            "metadata": {"resourceVersion": lease.metadata.resource_version},
            "spec": {
                "holderIdentity": holder,
                "leaseTransitions": transitions,
                "acquireTime": now,
                "renewTime": now,
            },
        }
        await core.env.api.patch(objects.Lease, name, namespace, patch)
        core.deployment = lease.metadata.uid
        return transitions

    async def _create_lease(self) -> objects.Lease:
        core, settings = self._core, self._core.settings
        lease = objects.Lease(metadata=objects.ObjectMeta(name=settings.lease_name, namespace=settings.lease_namespace))
        try:
            return await core.env.api.create(lease)
        except ApiError as error:
            if not error.not_found:
                raise
        # A bare API has no namespaces of its own.
        await core.env.api.create(objects.Namespace(metadata=objects.ObjectMeta(name=settings.lease_namespace)))
        return await core.env.api.create(lease)

    # --- nominations -------------------------------------------------------------------------------------------------

    def load_nominations(self) -> None:
        """Fill the nominator with what pods say of themselves, in the order of their generations."""
        core = self._core
        found = []
        for pod in core.pods.items():
            if pod.spec.node_name or pod.terminal or not pod.status.nominated_node_name or not core.responsible(pod):
                continue
            deployment = core.record_deployment
            recorded = record.read(pod, deployment) if deployment is not None else None
            meta = pod.metadata
            found.append(
                recorded
                or NominatedPod(
                    meta.uid, meta.namespace, meta.name, pod.status.nominated_node_name, priority=pod.priority
                )
            )
        for nomination in sorted(found, key=lambda n: (n.generation, n.namespace, n.name)):
            core.nominator.nominate(nomination)
            core.generation = max(core.generation, nomination.generation)

    async def reconcile(self) -> None:
        """Clear nominations that nobody was deleted for, and let their pods try again; finish what was begun."""
        core = self._core
        for nomination in core.nominator.all():
            if nomination.generation == 0:
                continue
            alive = untouched_victims(nomination, core.pods)
            if not alive:
                continue
            begun = len(alive) < len(nomination.victims)
            _log.warning(
                "nomination %d of pod %s/%s: %s: %s",
                nomination.generation,
                nomination.namespace,
                nomination.name,
                "still to be deleted" if begun else "never deleted",
                ", ".join(f"{victim.namespace}/{victim.name}" for victim in alive),
            )
            if begun:
                self._preempting.resume(nomination)
                continue
            await self._preempting.give_up(nomination, alive)
            core.queue.activate([nomination.uid], core.now())


def untouched_victims(nomination: NominatedPod, pods: Informer[objects.Pod]) -> list[Victim]:
    """Return the victims that still exist, are the same pods and do not terminate."""
    untouched = []
    for victim in nomination.victims:
        pod = pods.get(victim.namespace, victim.name)
        if pod is None or pod.metadata.uid != victim.uid or pod.terminal:
            continue
        if pod.metadata.deletion_timestamp is None:
            untouched.append(victim)
    return untouched
