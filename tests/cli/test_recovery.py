"""Services that are killed in a settling window: they are restarted, and the preemptor still gets what was held for it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from earmark.cli.apply import read_manifests
from earmark.client import CallFailed, EarmarkClient
from earmark.kube import objects
from earmark.kube.api import ApiUnavailable
from earmark.kube.apply import apply
from earmark.kube.http import HttpApi
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.supervisor import Notice, Supervisor

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.timeout(180)]


@contextlib.asynccontextmanager
async def running(repository: Path, tmp_path: Path) -> AsyncIterator[tuple[Supervisor, HttpApi, RuntimeSettings]]:
    runtime = RuntimeSettings(state_dir=str(tmp_path))
    notices: list[Notice] = []
    async with contextlib.AsyncExitStack() as stack:
        config = repository / "deploy/config/local.toml"
        supervisor = await stack.enter_async_context(Supervisor(runtime, config, notices.append))
        # The kubeconfig is there when the API server is.
        api = await stack.enter_async_context(HttpApi.from_kubeconfig(runtime.kubeconfig_path))
        yield supervisor, api, runtime


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while True:
            with contextlib.suppress(ApiUnavailable, CallFailed):
                if await holds():
                    return
            await asyncio.sleep(0.1)


async def put(api: HttpApi, repository: Path, *names: str) -> None:
    for manifest in read_manifests([repository / "examples/gpu-cluster" / name for name in names]):
        await apply(api, manifest)


async def pods(api: HttpApi) -> dict[str, objects.Pod]:
    return {pod.metadata.name: pod for pod in (await api.list(objects.Pod)).items}


async def devices(api: HttpApi, pod: str) -> list[str]:
    claims = (await api.list(objects.ResourceClaim)).items
    return [
        f"{result.driver}/{result.pool}/{result.device}"
        for claim in claims
        if claim.status.allocation is not None and any(owner.name == pod for owner in claim.metadata.owner_references)
        for result in claim.status.allocation.devices.results
    ]


@pytest.mark.kep("E51", "E100", "E101", "E102")
@pytest.mark.parametrize(
    "killed", [("dynamicresources",), ("framework",), ("preemption", "claimcontroller"), ("apiserver",)]
)
async def test_the_device_is_kept_through_a_crash_in_the_window(
    killed: Sequence[str], repository: Path, tmp_path: Path
) -> None:
    async with running(repository, tmp_path) as (supervisor, api, runtime):

        async def both_run() -> bool:
            seen = await pods(api)
            return all(seen[name].status.phase == "Running" for name in ("training", "serving"))

        async def in_window() -> bool:
            return "training" not in await pods(api)

        async def incident_runs() -> bool:
            return (await pods(api))["incident"].status.phase == "Running"

        await put(api, repository, "cluster", "running.yaml")
        await until(both_run)
        expected = await devices(api, "training")
        await put(api, repository, "urgent.yaml")
        await until(in_window)
        for name in killed:
            os.kill(supervisor.processes()[name], signal.SIGKILL)
        await until(lambda: _put_latecomer(api, repository))
        await until(incident_runs)
        seen = await pods(api)
        assert await devices(api, "incident") == expected
        assert seen["serving"].metadata.deletion_timestamp is None
        assert seen["latecomer"].spec.node_name == ""
        assert [supervisor.restarts(name) for name in killed] == [1] * len(killed)
        async with EarmarkClient(runtime) as client:
            await until(lambda: _no_open_window(client))


async def _put_latecomer(api: HttpApi, repository: Path) -> bool:
    await put(api, repository, "latecomer.yaml")
    return True


async def _no_open_window(client: EarmarkClient) -> bool:
    return not await client.settlements(open_only=True)
