"""The settling-window scenario with real processes, over sockets and HTTPS, at half its length.

The simulation plays the same file in virtual time. Here each expectation gets a little longer to come true, because
the machine has other things to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.kube import objects
from earmark.kube.apply import apply, in_order
from earmark.kube.http import HttpApi
from earmark.kube.manifests import load_manifests
from earmark.runtime import semconv
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.supervisor import Supervisor
from support.runtime_otlp import Receiver, receiver

pytestmark = pytest.mark.timeout(180)

SPEED = 2
# What an expectation may be late, in seconds.
LATE = 10.0


class Cluster:
    """What the expectations look at."""

    def __init__(self, api: HttpApi) -> None:
        self._api = api
        self.evicted: set[str] = set()

    async def put(self, manifests: list[dict[str, Any]]) -> None:
        for manifest in in_order(load_manifests(yaml.safe_dump_all(manifests), "scenario")):
            if manifest.kind == "Pod":
                manifest.data["spec"]["terminationGracePeriodSeconds"] //= SPEED
            await apply(self._api, manifest)

    async def mismatches(self, expected: dict[str, Any]) -> list[str]:
        pods = {pod.metadata.name: pod for pod in (await self._api.list(objects.Pod)).items}
        claims = (await self._api.list(objects.ResourceClaim)).items
        self.evicted |= {name for name, pod in pods.items() if _disruption(pod) == "PreemptionByScheduler"}
        found = [
            f"{name}.{key}: want {want!r}, got {got!r}"
            for name, wants in expected.get("pods", {}).items()
            for key, want in wants.items()
            if (got := _pod_value(pods.get(name), key)) != want
        ]
        for name, wants in expected.get("claims", {}).items():
            got = _devices(claims, name.partition("/")[0])
            found += [f"{name}: want {wants['devices']}, got {got}"] if got != wants["devices"] else []
        if sorted(expected.get("evicted", self.evicted)) != sorted(self.evicted):
            found.append(f"evicted: {sorted(self.evicted)}")
        return found


def _disruption(pod: objects.Pod) -> str:
    return next((c.reason for c in pod.status.conditions if c.type == "DisruptionTarget"), "")


def _pod_value(pod: objects.Pod | None, key: str) -> Any:
    if pod is None:
        return key == "absent"
    scheduled = next((c for c in pod.status.conditions if c.type == "PodScheduled"), objects.Condition())
    return {
        "absent": False,
        "node": pod.spec.node_name or None,
        "nominatedNode": pod.status.nominated_node_name or None,
        "phase": pod.status.phase,
        "terminating": pod.metadata.deletion_timestamp is not None,
        "disruptionTarget": _disruption(pod),
        "reason": scheduled.reason,
    }[key]


def _devices(claims: tuple[objects.ResourceClaim, ...], owner: str) -> list[str]:
    return [
        f"{result.pool}/{result.device}"
        for claim in claims
        if claim.status.allocation is not None and any(o.name == owner for o in claim.metadata.owner_references)
        for result in claim.status.allocation.devices.results
    ]


@contextlib.asynccontextmanager
async def processes(tmp_path: Path, received: Receiver, deallocation: float) -> AsyncIterator[HttpApi]:
    environ = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_ENDPOINT": received.endpoint,
        "EARMARK_FRAMEWORK_FEATURE_GATES": "{DRAPreemption = true}",
        "EARMARK_DYNAMICRESOURCES_FEATURE_GATES": "{DRAPreemption = true}",
        "EARMARK_FRAMEWORK_SCHEDULER_NAMES": '["default-scheduler"]',
        "EARMARK_CLAIMCONTROLLER_DEALLOCATION_SECONDS": str(deallocation),
    }
    runtime = RuntimeSettings(state_dir=str(tmp_path))
    async with contextlib.AsyncExitStack() as stack:
        supervisor = Supervisor(runtime, None, lambda notice: None, environ=environ)
        await stack.enter_async_context(supervisor)
        # The kubeconfig is there when the API server is.
        yield await stack.enter_async_context(HttpApi.from_kubeconfig(runtime.kubeconfig_path))


@pytest.mark.kep("D1", "E81", "E95", "E106")
async def test_the_scenario_holds_and_its_trace_tells_t0_to_t4(shared: Path, tmp_path: Path) -> None:
    scenario = yaml.safe_load((shared / "scenarios/settling-window.yaml").read_text(encoding="utf-8"))["spec"]
    # Go's "10s".
    deallocation = float(scenario["delays"]["deallocation"].removesuffix("s")) / SPEED
    loop = asyncio.get_running_loop()
    async with receiver() as received:
        async with processes(tmp_path, received, deallocation) as api:
            cluster = Cluster(api)
            await cluster.put(scenario["objects"])
            begun = loop.time()
            for step in scenario["timeline"]:
                at = float(step["at"].removesuffix("s")) / SPEED
                await asyncio.sleep(max(0.0, begun + at - loop.time()))
                if "apply" in step:
                    await cluster.put(step["apply"])
                mismatches = await cluster.mismatches(step.get("expect", {}))
                while mismatches and loop.time() < begun + at + LATE:
                    await asyncio.sleep(0.1)
                    mismatches = await cluster.mismatches(step["expect"])
                assert mismatches == [], f"at {step['at']}"
        _check_trace(received, grace=10 / SPEED, deallocation=deallocation)


def _check_trace(received: Receiver, grace: float, deallocation: float) -> None:
    (root,) = received.named(semconv.SETTLING)
    (started,) = received.named(semconv.SETTLING_STARTED)
    (terminating,) = received.named(semconv.VICTIM_TERMINATING)
    (deallocating,) = received.named(semconv.CLAIM_DEALLOCATING)
    (held,) = received.named(semconv.CAPACITY_HELD)
    trace = (started, terminating, deallocating, held)
    assert {span.trace_id for span in trace} == {root.trace_id}
    assert {span.parent_id for span in trace} == {root.span_id}
    t0, t1, t3, t4 = root.start, terminating.end, deallocating.end, root.end
    assert t0 <= terminating.start < t0 + LATE
    assert grace - 1.0 < t1 - t0 < grace + LATE
    assert deallocation - 1.0 < t3 - t1 < deallocation + LATE
    assert held.start == pytest.approx(t3, abs=0.01)
    assert held.end == pytest.approx(t4, abs=0.01)
    assert 0 <= t4 - t3 < LATE
