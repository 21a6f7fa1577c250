"""What the plugin knows, in a form that can be compared before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.contract_plugin import Scheduler


def plugin_state(scheduler: Scheduler) -> Callable[[], Any]:
    """What the plugin knows for the scheduler, without the number of the revision."""

    def read() -> Any:
        core = scheduler.component.core
        world = core.world
        return (
            world.ledger,
            dict(world.in_flight),
            dict(world.reservations),
            world.nominations,
            world.victim_claims.all(),
            core.wake_ups.sleepers,
            core.wake_ups.last_number,
            [(cycle.id, cycle.status, _results(cycle), dict(cycle.forks)) for cycle in core.open_cycles()],
        )

    return read


def _results(cycle: Any) -> dict[str, Any]:
    return {node: dict(fit.results) for node, fit in cycle.results.items()}
