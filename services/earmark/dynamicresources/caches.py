"""From the informers into the core: one dispatcher, which feeds the state before anybody is woken (F34)."""

from __future__ import annotations

import asyncio
import logging
from typing import TypeVar

from earmark.dynamicresources.allocator import NodeFacts
from earmark.dynamicresources.core import Core
from earmark.dynamicresources.facts import pod_facts
from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.reserving import bound
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.state import (
    claim_deleted,
    claim_seen,
    devices_changed,
    node_deleted,
    node_seen,
    pod_deleted,
    pod_seen,
)
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, KubeApi
from earmark.kube.clock import Clock
from earmark.kube.informer import Informer, InformerEvent
from earmark.kube.spawner import Spawner

T = TypeVar("T", bound=objects.Object)

_log = logging.getLogger(__name__)


class Caches:
    """Follows claims, slices, classes, taint rules, nodes and pods."""

    def __init__(self, api: KubeApi, clock: Clock, core: Core, settings: Settings) -> None:
        """Feed `core` from `api` once started."""
        self._api = api
        self._core = core
        self._clock = clock
        self._settings = settings
        self._claims = Informer(api, objects.ResourceClaim, clock)
        self._slices = Informer(api, objects.ResourceSlice, clock)
        self._classes = Informer(api, objects.DeviceClass, clock)
        self._rules = Informer(api, objects.DeviceTaintRule, clock)
        self._nodes = Informer(api, objects.Node, clock)
        self._pods = Informer(api, objects.Pod, clock)
        self._moved = asyncio.Event()
        # Up to these resourceVersions a list has shown nothing that the informers lack.
        self._quiet_pods = 0
        self._quiet_nodes = 0
        # Pods first: whether a claim's consumer goes away is read off them.
        self._pods.add_handler(self._on_pod)
        self._nodes.add_handler(self._on_node)
        self._classes.add_handler(self._on_class)
        self._slices.add_handler(self._on_slice)
        self._claims.add_handler(self._on_claim)
        self._informers: list[Informer[objects.Pod] | Informer[objects.Node] | Informer[objects.ResourceClaim]
                              | Informer[objects.ResourceSlice] | Informer[objects.DeviceClass]
                              | Informer[objects.DeviceTaintRule]] = [
            self._pods, self._nodes, self._classes, self._slices, self._claims
        ]  # fmt: skip
        if settings.gate("DRADeviceTaintRules") and settings.gate("DRADeviceTaints"):
            self._rules.add_handler(self._on_rule)
            self._informers.append(self._rules)

    def start(self, tasks: Spawner) -> None:
        """Begin to follow the API."""
        for informer in self._informers:
            informer.start(tasks)

    @property
    def synced(self) -> bool:
        """Whether every kind has been listed."""
        return all(informer.synced for informer in self._informers)

    async def wait_synced(self) -> None:
        """Return once every kind has been listed."""
        for informer in self._informers:
            await informer.wait_synced()

    # --- how far ---------------------------------------------------------------------------------------------------

    def seen(self, pods: int, nodes: int) -> bool:
        """Whether pods and nodes up to these resourceVersions have been delivered, or are known not to exist."""
        return (
            max(self._pods.resource_version, self._quiet_pods) >= pods
            and max(self._nodes.resource_version, self._quiet_nodes) >= nodes
        )

    def has_pod(self, uid: str, resource_version: int) -> bool:
        """Whether the pod is known, at least as of this resourceVersion."""
        pod = self._core.world.pods.get(uid)
        return pod is not None and pod.resource_version >= resource_version

    async def wait_seen(self, pods: int, nodes: int, pod_uid: str, pod_version: int, seconds: float) -> bool:
        """Wait until all of it has been seen, at most `seconds`; return whether it has."""
        deadline = self._clock.monotonic() + seconds
        while not (self.seen(pods, nodes) and (not pod_uid or self.has_pod(pod_uid, pod_version))):
            # To the nanosecond: a sum of fractions may be a hair behind the instant that is meant.
            left = round(deadline - self._clock.monotonic(), 9)
            if left <= 0:
                await self._look_for_quiet(pods, nodes)
                return self.seen(pods, nodes) and (not pod_uid or self.has_pod(pod_uid, pod_version))
            self._moved.clear()
            try:
                async with asyncio.timeout(left):
                    await self._moved.wait()
            except TimeoutError:
                continue
        return True

    async def _look_for_quiet(self, pods: int, nodes: int) -> None:
        """Find out whether versions that do not come are of other kinds.

        A framework that has listed later names a newer version though no pod or node has changed since, and a watch
        without bookmarks would never tell. One list answers for all calls until then.
        """
        try:
            if max(self._pods.resource_version, self._quiet_pods) < pods:
                self._quiet_pods = max(self._quiet_pods, await _quiet_up_to(self._api, objects.Pod, self._pods))
            if max(self._nodes.resource_version, self._quiet_nodes) < nodes:
                self._quiet_nodes = max(self._quiet_nodes, await _quiet_up_to(self._api, objects.Node, self._nodes))
        except (ApiError, ApiUnavailable) as trouble:
            _log.warning("cannot tell whether the caches are behind: %s", trouble)

    # --- handlers ----------------------------------------------------------------------------------------------------

    def _on_claim(self, event: InformerEvent[objects.ResourceClaim]) -> None:
        if event.new is None:
            self._core.commit(claim_deleted(self._core.world, event.object))
        else:
            self._core.commit(claim_seen(self._core.world, event.new))

    def _on_pod(self, event: InformerEvent[objects.Pod]) -> None:
        pod = pod_facts(event.object)
        if event.new is None:
            self._core.commit(pod_deleted(self._core.world, pod))
            self._core.wake_ups.forget(pod.uid)
            # E44: the hold ends with the pod; the framework says so too, later.
            self._core.remove_nominated_pod(pod.uid, None, Removal.POD_DELETED, ())
        else:
            if event.old is not None and event.old.metadata.uid != pod.uid:
                self._core.commit(pod_deleted(self._core.world, pod_facts(event.old)))
            self._core.commit(pod_seen(self._core.world, pod))
            if pod.node_name:
                self._core.commit((bound(self._core.world, pod.uid), ()))
                # E43: a scheduler that died after the binding will not say so.
                self._core.remove_nominated_pod(pod.uid, None, Removal.BOUND, ())
        self._moved.set()

    def _on_node(self, event: InformerEvent[objects.Node]) -> None:
        world = self._core.world
        if event.new is None:
            self._core.commit((node_deleted(world, event.object.metadata.name), ()))
        else:
            self._core.commit((node_seen(world, NodeFacts.of(event.new)), ()))
        self._moved.set()

    def _on_slice(self, event: InformerEvent[objects.ResourceSlice]) -> None:
        name, world = event.object.metadata.name, self._core.world
        gone = event.new is None
        inventory = world.inventory.without_slice(name) if event.new is None else world.inventory.with_slice(event.new)
        self._core.commit(devices_changed(world, inventory, "ResourceSlice", name, gone=gone))

    def _on_class(self, event: InformerEvent[objects.DeviceClass]) -> None:
        name, world = event.object.metadata.name, self._core.world
        gone = event.new is None
        inventory = world.inventory.without_class(name) if event.new is None else world.inventory.with_class(event.new)
        self._core.commit(devices_changed(world, inventory, "DeviceClass", name, gone=gone))

    def _on_rule(self, event: InformerEvent[objects.DeviceTaintRule]) -> None:
        name, world = event.object.metadata.name, self._core.world
        inventory = world.inventory.without_rule(name) if event.new is None else world.inventory.with_rule(event.new)
        # A rule that goes can make devices usable, as slices that change do upstream.
        self._core.commit(devices_changed(world, inventory, "DeviceTaintRule", name))


async def _quiet_up_to(api: KubeApi, kind: type[T], informer: Informer[T]) -> int:
    """Return the version of a list that holds exactly what the informer has; 0 where the informer is behind."""
    result = await api.list(kind)
    known = {value.key: value.metadata.resource_version for value in informer.items()}
    listed = {value.key: value.metadata.resource_version for value in result.items}
    return int(result.resource_version) if known == listed and result.resource_version.isdigit() else 0
