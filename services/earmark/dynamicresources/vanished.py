"""Devices that are allocated and no longer published: found when a pool changes, and told on the claims.

As in 1.37 the counters that such a device uses are not known any more, so they count as free: its driver may give out
more than there is. Who operates the cluster has to hear of it. Nothing here changes what is allocated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from earmark.dynamicresources.happened import DevicesChanged, Happened
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import PoolId
from earmark.dynamicresources.state import World
from earmark.kube import objects
from earmark.kube.recorder import WARNING, EventRecorder, reference_to
from earmark.kube.spawner import Spawner

_log = logging.getLogger(__name__)

REASON = "AllocatedDeviceGone"


def published(inventory: Inventory, pool: PoolId) -> frozenset[str] | None:
    """Return the names of a pool's devices; None while its newest generation is incomplete."""
    record = inventory.pool(pool)
    if record is None:
        return None
    newest = max(view.generation for view in record.slices)
    views = [view for view in record.slices if view.generation == newest]
    if len(views) != views[0].slice.spec.pool.resource_slice_count:
        return None
    return frozenset(device.name for view in views for device in view.devices)


def vanished(world: World, pool: PoolId) -> Iterator[tuple[objects.ResourceClaim, str]]:
    """Yield the claims that hold a device which the complete pool does not have, with the device's name."""
    held = world.ledger.pool(pool).devices
    names = published(world.inventory, pool) if held else None
    if names is None or all(name in names for name in held):
        return
    for claim in world.claims.values():
        allocation = world.allocation_of(claim)
        for result in () if allocation is None else allocation.devices.results:
            if (result.driver, result.pool) == pool and result.device not in names:
                yield claim, result.device


class VanishedDevices:
    """Records an event on a claim for each of its devices that is gone, once in the life of the process."""

    def __init__(self, recorder: EventRecorder, tasks: Spawner) -> None:
        """Write with `recorder`, in the background."""
        self._recorder = recorder
        self._tasks = tasks
        self._told: dict[tuple[str, PoolId, str], None] = {}

    def happened(self, world: World, events: tuple[Happened, ...]) -> None:
        """Look at the pool of a slice that has come or changed."""
        for event in events:
            if isinstance(event, DevicesChanged) and event.kind == "ResourceSlice":
                view = world.inventory.slice_named(event.name)
                if view is not None:
                    self._look(world, view.pool)

    def _look(self, world: World, pool: PoolId) -> None:
        for claim, device in vanished(world, pool):
            key = (claim.metadata.uid, pool, device)
            if key in self._told:
                continue
            self._told[key] = None
            note = (
                f"device {pool[0]}/{pool[1]}/{device} is allocated to this claim and no longer published; counters "
                "that it uses are given out as if they were free"
            )
            _log.warning("claim %s/%s: %s", *claim.key, note)
            writing = self._recorder.record(
                reference_to(claim), type_=WARNING, reason=REASON, action="Watching", note=note
            )
            self._tasks.spawn(writing, f"event {REASON} {claim.metadata.name}")
