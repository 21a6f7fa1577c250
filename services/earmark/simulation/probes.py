"""What checks look at inside of services: read only, at once, without an RPC that would change the order of things."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import grpc

from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.nominations import Phase
from earmark.framework.component import Framework
from earmark.framework.queue.entry import Place
from earmark.runtime.component import Component
from earmark.simulation.cluster import display
from earmark.simulation.fleet import Fleet
from earmark.simulation.invariants.base import Broken
from earmark.simulation.invariants.nominations import ClaimNomination
from earmark.simulation.invariants.simulations import Fingerprint, disturbed
from earmark.simulation.watchdog import Nominations

_SIMULATION_CALLS = ("FilterForks", "AddPod", "RemovePod")


def look_at_nominations(fleet: Fleet) -> Nominations | None:
    """Return what dynamicresources holds and the framework has nominated.

    None where they cannot be compared: one of them does not run, or they have not agreed since one was started.
    """
    plugin, framework = fleet.running("dynamicresources"), fleet.running("framework")
    if not isinstance(plugin, DynamicResources) or not isinstance(framework, Framework):
        return None
    if not plugin.ready() or not framework.ready():
        return None
    held = tuple(
        ClaimNomination(
            display(item.pod.namespace, item.pod.name), item.pod.uid, item.node, item.phase is Phase.PROPOSED
        )
        for item in plugin.core.world.nominations.all()
        if item.phase is not Phase.ASSIGNED
    )
    nominator = {item.uid: item.node for item in framework.core.nominator.all()}
    in_cycle = {queued.uid for queued in framework.core.queue.pods() if queued.place is Place.IN_FLIGHT}
    return Nominations(held, nominator, frozenset(in_cycle))


def fingerprint(plugin: DynamicResources) -> Fingerprint:
    """Return the plugin's own state: what is allocated, in flight, nominated and awaited."""
    world = plugin.core.world
    claims = sorted(world.ledger.claims(), key=lambda item: item[0])
    pools = sorted({(result.driver, result.pool) for _, held in claims for result in held.devices.results})
    content = (
        claims,
        [(pool, world.ledger.pool(pool)) for pool in pools],
        dict(world.in_flight),
        dict(world.reservations),
        world.nominations,
        world.victim_claims.all(),
    )
    return Fingerprint(world.revision, repr(content))


class SimulationGuard(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Compares the plugin's state before and after each call that only simulates."""

    def __init__(self, plugin: DynamicResources, report: Callable[[Iterable[Broken]], None]) -> None:
        self._plugin = plugin
        self._report = report

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Return the method's handler, with the comparison around those that simulate."""
        handler = await continuation(handler_call_details)
        method = str(handler_call_details.method).rpartition("/")[2]
        if handler is None or method not in _SIMULATION_CALLS:
            return handler

        async def compare(request: Any, context: Any) -> Any:
            before = fingerprint(self._plugin)
            response = await handler.unary_unary(request, context)
            self._report(disturbed(method, before, fingerprint(self._plugin)))
            return response

        return grpc.unary_unary_rpc_method_handler(
            compare, handler.request_deserializer, handler.response_serializer
        )  # fmt: skip


def guards(component: Component, report: Callable[[Iterable[Broken]], None]) -> tuple[SimulationGuard, ...]:
    """Return what watches a component's calls."""
    return (SimulationGuard(component, report),) if isinstance(component, DynamicResources) else ()
