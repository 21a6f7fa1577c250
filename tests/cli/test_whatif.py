"""`earmark whatif` and `earmark dump`: a copy of the cluster decides, and nothing of the cluster is touched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from earmark.cli.dump import take
from earmark.cli.errors import BadInput
from earmark.cli.forecast import as_data, lines
from earmark.cli.main import app
from earmark.cli.whatif import _read
from earmark.kube import objects
from earmark.kube.resources import RESOURCES
from earmark.simulation.dumping import Dump, read_dump, redacted, text_of
from earmark.simulation.errors import ScenarioError
from earmark.simulation.loader import load_scenarios
from earmark.simulation.player import play
from earmark.simulation.whatif import Answer, replicas, what_if
from support.client_stack import client_of, example_stack
from support.contract_stack import Stack


@pytest.fixture
async def stack(repository: Path) -> AsyncIterator[Stack]:
    async with example_stack(repository / "examples/gpu-cluster", "cluster", "running.yaml") as running:
        yield running


async def dumped(stack: Stack) -> Dump:
    async with client_of(stack) as client:
        return await take(stack.world.api, client, stack.clock.now())


async def asked(dump: Dump, file: Path, count: int = 1) -> Answer:
    """In a thread: the run has an event loop of its own."""
    return await asyncio.to_thread(what_if, dump, replicas(_read([file], "default"), count))


async def versions(stack: Stack) -> dict[tuple[str, ...], str]:
    return {
        (resource.kind, *value.key): value.metadata.resource_version
        for resource in RESOURCES
        for value in (await stack.world.api.list(resource.struct)).items
    }


@pytest.mark.kep("R59")
async def test_it_says_what_a_dry_run_says_and_what_then_happens(stack: Stack, repository: Path) -> None:
    file = repository / "examples/gpu-cluster/urgent.yaml"
    before = await versions(stack)
    answer = await asked(await dumped(stack), file)
    (arrival,) = answer.arrivals
    assert (arrival.node, arrival.devices) == ("gpu-a", ("gpu-a/gpu-0",))
    assert [victim.pod for victim in arrival.evicted] == ["training"]
    assert [(item.node, [victim.pod for victim in item.victims]) for item in arrival.alternatives] == [
        ("gpu-a", ["training"]),
        ("gpu-b", ["serving"]),
    ]
    assert await versions(stack) == before
    manifest = yaml.safe_load(file.read_text(encoding="utf-8"))
    async with client_of(stack) as client:
        dry = await client.preemption.dry_run(pod=client.made_up_pod(manifest, priority=10000))
        assert [pod.name for pod in dry.chosen.victims] == ["training"]
        assert await versions(stack) == before
        await stack.world.apply(manifest)

        async def chosen() -> bool:
            return bool(await client.settlements())

        await stack.until(chosen)
        (window,) = await client.settlements()
    assert [victim.pod.name for victim in window.victims] == ["training"]


async def test_the_same_question_has_the_same_answer(stack: Stack, repository: Path) -> None:
    dump, file = await dumped(stack), repository / "examples/gpu-cluster/urgent.yaml"
    assert as_data(await asked(dump, file)) == as_data(await asked(dump, file))


@pytest.mark.kep("R64")
async def test_every_replica_counts(stack: Stack, repository: Path) -> None:
    before = await versions(stack)
    answer = await asked(await dumped(stack), repository / "examples/gpu-cluster/urgent.yaml", 3)
    told = {item.pod: (item.node, [victim.pod for victim in item.evicted]) for item in answer.arrivals}
    assert told == {
        "incident-1": ("gpu-a", ["training"]),
        "incident-2": ("gpu-b", ["serving"]),
        "incident-3": ("", []),
    }
    assert await versions(stack) == before
    text = list(lines(answer))
    assert "2 of 3 pods would run; 2 would be evicted." in text
    assert "This is feasible after deallocation, not a promise. Nothing was created or changed." in text
    assert "  alternative gpu-b: evicts serving (priority 1000) from gpu-b/gpu-0" in text


async def test_a_dump_says_the_same_from_a_file_and_in_a_scenario(
    stack: Stack, repository: Path, tmp_path: Path
) -> None:
    dump, file = await dumped(stack), repository / "examples/gpu-cluster/urgent.yaml"
    (tmp_path / "state.yaml").write_text(text_of(dump), encoding="utf-8")
    read = read_dump(tmp_path / "state.yaml", datetime.now(UTC))
    assert as_data(await asked(read, file)) == as_data(await asked(dump, file))
    scenario = {
        "apiVersion": "earmark.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": "from a dump"},
        "spec": {
            "featureGates": {"DRAPreemption": True},
            "objects": [{"file": "state.yaml"}],
            "timeline": [
                {"at": 0, "apply": [{"file": str(file)}]},
                {"at": "end", "expect": {"evicted": ["training"], "pods": {"incident": {"node": "gpu-a"}}}},
            ],
        },
    }
    (tmp_path / "scenario.yaml").write_text(yaml.safe_dump(scenario), encoding="utf-8")
    (loaded,) = load_scenarios(tmp_path / "scenario.yaml")
    outcome = await asyncio.to_thread(play, loaded)
    assert (outcome.failures, outcome.violations) == ((), ())


async def test_a_window_that_is_open_goes_on_in_the_copy(stack: Stack, repository: Path) -> None:
    examples = repository / "examples/gpu-cluster"
    await stack.world.apply(yaml.safe_load((examples / "urgent.yaml").read_text(encoding="utf-8")))

    async def chosen() -> bool:
        pods = (await stack.world.api.list(objects.Pod)).items
        return any(pod.metadata.deletion_timestamp is not None for pod in pods)

    await stack.until(chosen)
    dump = await dumped(stack)
    assert [item["preemptor"] for item in dump.about.nominations] == ["default/incident"]
    answer = await asked(dump, examples / "latecomer.yaml")
    (arrival,) = answer.arrivals
    assert (arrival.node, arrival.evicted) == ("", ())
    assert answer.outcome.pods["incident"].node == "gpu-a"


async def test_the_pod_s_scheduler_is_the_one_that_is_asked(stack: Stack, repository: Path, tmp_path: Path) -> None:
    manifest = yaml.safe_load((repository / "examples/gpu-cluster/urgent.yaml").read_text(encoding="utf-8"))
    manifest["spec"]["schedulerName"] = "gpu-scheduler"
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    answer = await asked(await dumped(stack), tmp_path / "pod.yaml")
    assert [item.node for item in answer.arrivals] == ["gpu-a"]


async def test_a_name_that_is_taken_and_a_manifest_that_is_refused_are_told(
    stack: Stack, repository: Path, tmp_path: Path
) -> None:
    dump = await dumped(stack)
    with pytest.raises(ScenarioError, match="there is a pod training already"):
        await asked(dump, repository / "examples/gpu-cluster/running.yaml")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod), encoding="utf-8")
    with pytest.raises(ScenarioError, match="containers"):
        await asked(dump, tmp_path / "pod.yaml")
    (tmp_path / "claim.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: x}}", encoding="utf-8")
    with pytest.raises(BadInput, match="no Pod to ask about"):
        _read([tmp_path / "claim.yaml"], "default")


async def test_a_claim_that_is_missing_is_told(stack: Stack, tmp_path: Path) -> None:
    claims = [{"name": "gpu", "resourceClaimName": "nowhere"}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "x"}], "resourceClaims": claims},
    }
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod), encoding="utf-8")
    (arrival,) = (await asked(await dumped(stack), tmp_path / "pod.yaml")).arrivals
    assert arrival.node == ""
    assert "nowhere" in arrival.message


def test_a_dump_has_no_secrets() -> None:
    pod: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "SECRET",
                "vault.example.com/token": "SECRET",
                "resource.kubernetes.io/pod-claim-name": "gpu",
                "earmark.dev/nomination": "{}",
            },
        },
        "spec": {
            "volumes": [
                {"name": "a", "csi": {"driver": "x", "volumeAttributes": {"password": "SECRET"}}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            ]
        },
    }
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"config": [{"opaque": {"driver": "d", "parameters": {"key": "SECRET"}}}]}},
    }
    text = json.dumps([redacted(pod), redacted(claim)])
    assert "SECRET" not in text
    assert all(word in text for word in ("pod-claim-name", "earmark.dev/nomination", "claimName", '"parameters": {}'))


async def test_environment_and_commands_are_not_in_a_dump(stack: Stack) -> None:
    container = {"name": "main", "image": "x", "command": ["SECRET"], "env": [{"name": "TOKEN", "value": "SECRET"}]}
    await stack.world.apply({"kind": "Pod", "metadata": {"name": "quiet"}, "spec": {"containers": [container]}})
    text = text_of(await dumped(stack))
    assert "name: quiet" in text
    assert "SECRET" not in text


async def test_the_command_reads_a_dump(stack: Stack, repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(text_of(await dumped(stack)), encoding="utf-8")
    file = str(repository / "examples/gpu-cluster/urgent.yaml")
    arguments = ["whatif", "-f", file, "--state", str(path)]
    result = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert [item["node"] for item in json.loads(result.output)["pods"]] == ["gpu-a"]
    result = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--from-cluster"])
    assert result.exit_code == 2
