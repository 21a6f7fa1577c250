"""Where a test or a generator reaches into a run: faults between services and API, services built in other ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import grpc

from earmark.kube.api import KubeApi
from earmark.kube.clock import Clock
from earmark.simulation.composition import builders
from earmark.simulation.fleet import Builder
from earmark.simulation.scenario import Scenario

if TYPE_CHECKING:
    from earmark.apiserver.registry import Registry


class Crashes(Protocol):
    """What ends services in the middle of what they do. Implemented by earmark.simulation.player."""

    def crash(self, service: str, seconds: float) -> None:
        """End a service at once, as kill -9 does, and start it again so many seconds later."""


def _same_api(client: str, api: KubeApi, clock: Clock) -> KubeApi:
    return api


def _nothing(registry: Registry) -> None:
    """Do nothing."""


def _no_interceptors(service: str) -> Sequence[grpc.aio.ServerInterceptor[Any, Any]]:
    return ()


def _no_crashes(crashes: Crashes) -> None:
    """Let everything live."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What is done besides playing the timeline; by default nothing."""

    # Puts something between a service and the API: late, lost or reordered watch events, refused writes. Gets the
    # service's name, the API and the run's clock.
    api: Callable[[str, KubeApi, Clock], KubeApi] = _same_api
    # Called once, when the registry is there and before any service is: to set registry.faults.
    prepare: Callable[[Registry], None] = _nothing
    # How each service is built: as in production, or one of them in another way.
    builders: Callable[[Scenario], Mapping[str, Builder]] = builders
    # How much later than it happened services may see it, in seconds: nominations of pods that have just gone are
    # forgiven for as long.
    staleness: float = 0.0
    # When the run begins; None is a fixed moment, later than what recorded clusters call the past.
    epoch: datetime | None = None
    # What is put around the calls that a service serves, by the service's name.
    interceptors: Callable[[str], Sequence[grpc.aio.ServerInterceptor[Any, Any]]] = _no_interceptors
    # Called once, before any service is started, with what can end them.
    crashes: Callable[[Crashes], None] = _no_crashes
