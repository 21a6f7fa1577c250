"""Late, reordered and broken watches and a slow API, for runs that look for what only happens sometimes.

Every watch waits by itself, so that events of different kinds, and of one kind at different services, overtake each
other; within one watch the order stays, as Kubernetes promises.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import TypeVar

from earmark.apiserver.faults import RequestMatch
from earmark.apiserver.registry import Registry
from earmark.kube import objects
from earmark.kube.api import ApiError, KubeApi, WatchEvent
from earmark.kube.clock import Clock
from earmark.runtime.ids import SeededIds
from earmark.simulation.hooks import Hooks
from earmark.simulation.passthrough import PassThroughApi

T = TypeVar("T", bound=objects.Object)


@dataclass(frozen=True, slots=True)
class WatchTrouble:
    """How bad watches are."""

    # Share of the events that come late, 0 to 1, and by how many seconds at the most.
    late: float = 0.0
    longest_seconds: float = 0.0
    # Share of the events before which the watch breaks with 410, so that everything is listed anew.
    broken: float = 0.0


class TroubledApi(PassThroughApi):
    """A KubeApi whose watches are late and break."""

    def __init__(self, inner: KubeApi, clock: Clock, ids: SeededIds, trouble: WatchTrouble) -> None:
        super().__init__(inner)
        self._clock = clock
        self._ids = ids
        self._trouble = trouble

    async def watch(
        self,
        kind: type[T],
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[WatchEvent[T]]:
        """Iterate over events, some of them late; raises ApiError 410 now and then."""
        events = self._inner.watch(
            kind,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
        )
        async for event in events:
            if self._ids.random() < self._trouble.broken:
                raise ApiError(410, "Expired", "the watch was broken on purpose")
            if self._ids.random() < self._trouble.late:
                await self._clock.sleep(self._ids.random() * self._trouble.longest_seconds)
            yield event


def troubled_hooks(seed: int, trouble: WatchTrouble) -> Hooks:
    """Return hooks that trouble the watches of every service, each by a random stream of its own."""
    ids = SeededIds(f"trouble/{seed}")
    starts: dict[str, int] = {}

    def wrap(client: str, api: KubeApi, clock: Clock) -> KubeApi:
        starts[client] = starts.get(client, 0) + 1
        return TroubledApi(api, clock, ids.derive(f"{client}/{starts[client]}"), trouble)

    # An event may wait behind others that are late.
    return Hooks(api=wrap, staleness=10 * trouble.longest_seconds)


# Requests of services that a slow API answers late.
_SLOW = (
    ("patch", "Pod"),
    ("patch", "ResourceClaim"),
    ("create", "Pod"),
    ("create", "ResourceClaim"),
    ("delete", "Pod"),
)


def slow_api(hooks: Hooks, seed: int, longest_seconds: float) -> Hooks:
    """Return the hooks with an API that answers about half of the kinds of writes late, each kind by its own delay."""
    ids = SeededIds(f"slow/{seed}")

    def prepare(registry: Registry) -> None:
        hooks.prepare(registry)
        for verb, kind in _SLOW:
            if ids.random() < 0.5:
                registry.faults.delay(RequestMatch(verb, kind), round(ids.random() * longest_seconds, 3))

    return replace(hooks, prepare=prepare, staleness=hooks.staleness + 2 * longest_seconds)
