"""Reports that need more than a scenario file: many pods, a clock that runs out, a look at what is stored."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.allocator import solve
from earmark.dynamicresources.settings import Settings
from earmark.kube.clock import Clock
from earmark.runtime.component import Component, Environment
from earmark.simulation import load_scenarios, play
from earmark.simulation.composition import builders
from earmark.simulation.hooks import Hooks
from earmark.simulation.scenario import Scenario
from support.kep_runs import Ledger
from support.reports_play import FOLDER, holds
from support.simulation_player import complaint

GPU = "gpu.example.com"


def written(folder: Path, objects: list[Any], timeline: list[Any], **spec: Any) -> Scenario:
    """Return a scenario that is made here."""
    file = folder / "made.yaml"
    basics = yaml.safe_load((FOLDER / "common" / "basics.yaml").read_text(encoding="utf-8"))
    document = {
        "apiVersion": "earmark.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "made"},
        "spec": {"featureGates": {"DRAPreemption": True}, "objects": basics + objects, "timeline": timeline, **spec},
    }
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_scenarios(file)[0]


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec,
        "status": {"allocatable": {"cpu": "64", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def devices(node_name: str, named: list[Any]) -> dict[str, Any]:
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "nodeName": node_name, "pool": pool, "devices": named}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": node_name}, "spec": spec}


def pod(name: str, template: str | None = "gpu-1", priority: str = "low", **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    claims = [{"name": "dev", "resourceClaimTemplateName": template}] if template else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 2,
            "containers": [container],
            "resourceClaims": claims,
            **spec,
        },
    }


@pytest.mark.kep("R16")
def test_r16_the_allocation_keeps_the_toleration_of_the_request() -> None:
    ledger = Ledger()
    outcome = play(load_scenarios(FOLDER / "r16-tolerations-of-the-result.yaml")[0], seed=1, hooks=ledger.hooks())
    assert outcome.ok, complaint(outcome)
    name = ledger.stored("Pod", "p")["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    (result,) = ledger.stored("ResourceClaim", name)["status"]["allocation"]["devices"]["results"]
    assert result["tolerations"] == [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}]


@pytest.mark.kep("R17")
def test_r17_two_hundred_pods_at_once_get_160_devices(tmp_path: Path) -> None:
    fleet = [node(f"n{n:02}") for n in range(20)]
    fleet += [devices(f"n{n:02}", [{"name": f"d{d}"} for d in range(8)]) for n in range(20)]
    pods = [pod(f"p{n:03}") for n in range(200)]
    scenario = written(tmp_path, fleet, [{"at": "0s", "apply": pods}, {"at": "30s", "expect": {}}])
    outcome = play(scenario, seed=1)
    # That no device is held twice is one of the invariants, looked at after every event.
    assert outcome.ok, complaint(outcome)
    placed = [found for found in outcome.pods.values() if found.node]
    assert len(placed) == 160
    assert all(found.reason == "Unschedulable" for found in outcome.pods.values() if not found.node)


@pytest.mark.kep("R17")
@pytest.mark.parametrize("seed", [1, 2])
def test_r17_random_deletes_meanwhile_leave_no_device_idle_and_none_twice(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    fleet = [node(f"n{n}") for n in range(5)]
    fleet += [devices(f"n{n}", [{"name": f"d{d}"} for d in range(8)]) for n in range(5)]
    names = [f"p{n:02}" for n in range(60)]
    timeline: list[Any] = [{"at": "0s", "apply": [pod(name) for name in names]}]
    for at in sorted(rng.sample(range(1, 20_000), 15)):
        # Only pods that are surely there still; one that is bound leaves its device to one that waits.
        victim = names.pop(rng.randrange(len(names)))
        timeline.append({"at": f"{at}ms", "delete": {"kind": "Pod", "name": victim}})
    scenario = written(tmp_path, fleet, [*timeline, {"at": "end", "expect": {}}], delays={"deallocation": "3s"})
    outcome = play(scenario, seed=seed)
    assert outcome.ok, complaint(outcome)
    assert sum(1 for name in names if outcome.pods[name].node) == 40


class _Late:
    """A clock whose time runs out at every look, until a moment of virtual time."""

    def __init__(self, clock: Clock, until: float) -> None:
        self._clock = clock
        self._until = until
        self._begun = clock.monotonic()
        self._shift = 0.0

    def now(self) -> Any:
        return self._clock.now()

    def monotonic(self) -> float:
        if self._clock.monotonic() - self._begun < self._until:
            self._shift += 100.0
        return self._clock.monotonic() + self._shift

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


@pytest.mark.kep("R18", "R19")
def test_r19_a_search_that_was_cut_off_is_tried_again_by_backoff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solve, "_CLOCK_EVERY", 1)
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}}
    hard = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "hard"},
        "spec": {"spec": {"devices": {"requests": [request], "constraints": [{"matchAttribute": f"{GPU}/x"}]}}},
    }
    named = [{"name": f"d{n}", "attributes": {"x": {"int": n % 2}}} for n in range(6)]
    timeline = [
        {"at": "0s", "apply": [pod("p", "hard"), pod("plain", None)]},
        # What needs no device does not wait for it.
        {"at": "1s", "expect": {"pods": {"plain": {"node": "n1"}, "p": {"node": None, "reason": "SchedulerError"}}}},
        {"at": "60s", "expect": {"pods": {"p": {"node": "n1"}}}},
    ]
    scenario = written(tmp_path, [node("n1"), devices("n1", named), hard], timeline)

    def late(made: Scenario) -> Mapping[str, Callable[[Environment], Component]]:
        settings = Settings(feature_gates=made.feature_gates, filter_timeout_seconds=10)
        return {
            **builders(made),
            "dynamicresources": lambda env: dynamicresources.build(
                settings, replace(env, clock=_Late(env.clock, 30.0))
            ),
        }  # fmt: skip

    outcome = play(scenario, seed=1, hooks=Hooks(builders=late))
    assert outcome.ok, complaint(outcome)
    messages = [str(dict(entry.details)) for entry in outcome.log if entry.event == "unschedulable"]
    assert any("timed out trying to allocate devices" in message for message in messages)


@pytest.mark.kep("R53")
def test_r53_two_entries_make_two_claims_however_often_they_are_looked_at(tmp_path: Path) -> None:
    two = [
        {"name": "a", "resourceClaimTemplateName": "gpu-1"},
        {"name": "b", "resourceClaimTemplateName": "gpu-1"},
    ]
    # Pending, so that a claim may go: there is no device.
    timeline: list[Any] = [{"at": "0s", "apply": [pod("p", None, resourceClaims=two)]}]
    timeline += [{"at": f"{n}m", "restart": "claimcontroller"} for n in range(1, 20)]
    ledger = Ledger()
    play(written(tmp_path, [node("n1")], [*timeline, {"at": "end", "expect": {}}]), seed=1, hooks=ledger.hooks())
    statuses = ledger.stored("Pod", "p")["status"]["resourceClaimStatuses"]
    assert [status["name"] for status in statuses] == ["a", "b"]
    made = [name for _, client, verb, kind, name, _ in ledger.wrote if verb == "create" and kind == "ResourceClaim"]
    assert len(made) == 2
    assert sum(1 for _, client, verb, kind, _, sub in ledger.wrote if client == "claimcontroller" and sub) <= 2


@pytest.mark.kep("R13")
def test_r13_an_allocated_device_that_is_no_longer_published_is_told() -> None:
    holds("r13-allocated-device-leaves-its-slice")
