"""Whatever is sent to an RPC: a refusal that says why, never a fault of the service, and everything works afterwards.

`make soak-requests` sends 10,000.
"""

from __future__ import annotations

import pytest

from earmark.kube import objects
from support.contract_stack import Stack
from support.rpc_fuzz import Fuzzer


@pytest.mark.parametrize("seed", range(2))
async def test_random_calls_are_never_the_service_s_fault(services: Stack, seed: int) -> None:
    await services.pod("v")
    fuzzer = Fuzzer(services, seed)
    await fuzzer.run(400)
    assert fuzzer.bad == []
    assert {"OK", "INVALID_ARGUMENT"} <= set(fuzzer.answered)
    assert services.world.failures == []
    assert all(component.ready() for component in services.components.values())


async def test_a_pod_is_scheduled_after_random_calls(services: Stack) -> None:
    fuzzer = Fuzzer(services, 7)
    await fuzzer.run(300)
    await services.pod("late")

    async def scheduled() -> bool:
        # Not Running: random calls hold kubelets up, as they may.
        pod = await services.world.api.get(objects.Pod, "late", "default")
        return bool(pod.spec.node_name)

    await services.until(scheduled, 30.0)
