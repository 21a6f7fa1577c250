"""Watches what is held for preemptors: nobody of at most their priority may take it while the nomination stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.happened import Happened
from earmark.dynamicresources.nominations import Phase
from earmark.dynamicresources.state import World
from earmark.kube.objects import AllocationResult

Device = tuple[str, str, str]


@dataclass(frozen=True)
class _Hold:
    """For whom a device is held. Who shares the claim takes nothing away, and a hold is for one node (KEP: Holding)."""

    owner: str
    generation: int
    priority: int
    node: str
    claim: str


def _exclusive(allocation: AllocationResult) -> Iterator[Device]:
    for item in allocation.devices.results:
        if not item.admin_access and item.share_id is None:
            yield item.driver, item.pool, item.device


class HoldWatch:
    """Listens to a plugin; only exclusive devices are looked at, which need no search to be told apart."""

    def __init__(self, complaints: list[str]) -> None:
        """Add what is wrong to `complaints`."""
        self._complaints = complaints
        self._known: frozenset[str] = frozenset()
        self._before: dict[Device, _Hold] = {}

    def listen(self, plugin: DynamicResources) -> None:
        """Listen to this plugin, which was just built and knows nothing yet."""
        self._known = frozenset()
        self._before = {}
        plugin.core.listen(self._look)

    def _look(self, world: World, happened: tuple[Happened, ...]) -> None:
        newcomers = [uid for uid in world.reservations if uid not in self._known]
        self._known = frozenset(world.reservations)
        held = _held(world)
        for uid in newcomers:
            self._taken(world, uid, held)
        self._before = held

    def _taken(self, world: World, uid: str, held: dict[Device, _Hold]) -> None:
        taker, reservation = world.pods.get(uid), world.reservations[uid]
        if taker is None:
            return
        for claim, allocation in reservation.allocations.items():
            for device in _exclusive(allocation):
                hold = self._before.get(device)
                if hold is None or held.get(device) != hold or uid == hold.owner or claim == hold.claim:
                    continue
                if taker.priority <= hold.priority and reservation.node == hold.node:
                    self._complaints.append(
                        f"{taker.ref.name} takes {'/'.join(device)}, which is held for {hold.owner}"
                    )


def _held(world: World) -> dict[Device, _Hold]:
    found: dict[Device, _Hold] = {}
    for item in world.nominations.all():
        if item.phase is Phase.CONFIRMED:
            for result in item.results:
                hold = _Hold(item.pod.uid, item.generation, item.priority, item.node, result.claim_uid)
                found.update(dict.fromkeys(_exclusive(result.allocation), hold))
    return found
