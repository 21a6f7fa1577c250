"""Watches what is held for preemptors: nobody of at most their priority may take it while the nomination stands."""

from __future__ import annotations

from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.happened import Happened
from earmark.dynamicresources.nominations import Phase
from earmark.dynamicresources.state import World
from earmark.kube.objects import AllocationResult

Device = tuple[str, str, str]


def _exclusive(allocation: AllocationResult) -> list[Device]:
    return [
        (item.driver, item.pool, item.device)
        for item in allocation.devices.results
        if not item.admin_access and item.share_id is None
    ]


class HoldWatch:
    """Listens to a plugin; only exclusive devices are looked at, which need no search to be told apart."""

    def __init__(self, complaints: list[str]) -> None:
        """Add what is wrong to `complaints`."""
        self._complaints = complaints
        self._known: frozenset[str] = frozenset()
        self._before: dict[Device, tuple[str, int, int]] = {}

    def listen(self, plugin: DynamicResources) -> None:
        """Listen to this plugin, which was just built and knows nothing yet."""
        self._known = frozenset()
        self._before = {}
        plugin.core.listen(self._look)

    def _look(self, world: World, happened: tuple[Happened, ...]) -> None:
        newcomers = [uid for uid in world.reservations if uid not in self._known]
        self._known = frozenset(world.reservations)
        held = self._held(world)
        for uid in newcomers:
            taker = world.pods.get(uid)
            for allocation in world.reservations[uid].allocations.values():
                for device in _exclusive(allocation):
                    owner = self._before.get(device)
                    if owner is None or held.get(device) != owner or owner[0] == uid or taker is None:
                        continue
                    if taker.priority <= owner[2]:
                        name = "/".join(device)
                        self._complaints.append(f"{taker.ref.name} takes {name}, which is held for {owner[0]}")
        self._before = held

    @staticmethod
    def _held(world: World) -> dict[Device, tuple[str, int, int]]:
        """Return the owner, generation and priority of each exclusive device that is held."""
        found: dict[Device, tuple[str, int, int]] = {}
        for nomination in world.nominations.all():
            if nomination.phase is Phase.CONFIRMED:
                for result in nomination.results:
                    for device in _exclusive(result.allocation):
                        found[device] = (nomination.pod.uid, nomination.generation, nomination.priority)
        return found
