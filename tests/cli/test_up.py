"""`earmark up`: it says where everything is, and Ctrl-C stops it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from earmark.runtime.process import SERVICES

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.timeout(120)]


async def earmark(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "earmark.cli.main",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_up_prints_addresses_serves_and_ends_with_0_after_ctrl_c(repository: Path, tmp_path: Path) -> None:
    place = ("--config", str(repository / "deploy/config/local.toml"), "--state-dir", str(tmp_path))
    up = await earmark("up", *place)
    assert up.stdout is not None
    lines: list[str] = []
    async with asyncio.timeout(60):
        while not lines or not lines[-1].startswith("logs"):
            line = await up.stdout.readline()
            assert line, "ended before it was up"
            lines.append(line.decode())
    text = "".join(lines)
    assert f"kubectl --kubeconfig {tmp_path}/kubeconfig" in text
    for name in SERVICES:
        assert f"rpc unix:{tmp_path}/run/{name}.sock  metrics http://127.0.0.1:" in text
    apply = await earmark("apply", "-f", str(repository / "examples/gpu-cluster/cluster"), *place)
    out, err = await apply.communicate()
    assert (apply.returncode, err) == (0, b"")
    assert b"node/gpu-a created" in out
    get = await earmark("get", "nodes", *place)
    out, _ = await get.communicate()
    assert [line.split()[:2] for line in out.decode().splitlines()[1:]] == [["gpu-a", "Ready"], ["gpu-b", "Ready"]]
    up.send_signal(signal.SIGINT)
    _, err = await up.communicate()
    assert (up.returncode, err) == (0, b"")
