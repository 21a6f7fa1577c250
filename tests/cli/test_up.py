"""`earmark up`: it says where everything is, and Ctrl-C stops it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from earmark.runtime.process import SERVICES

pytestmark = pytest.mark.timeout(120)


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


async def test_up_speaks_json_and_drains_on_sigterm(repository: Path, tmp_path: Path) -> None:
    place = ("--config", str(repository / "deploy/config/local.toml"), "--state-dir", str(tmp_path))
    up = await earmark("up", "--json", *place)
    assert up.stdout is not None
    said: list[dict[str, Any]] = []

    async def until(message: str) -> dict[str, Any]:
        while not said or message not in said[-1]["message"]:
            assert up.stdout is not None
            line = await up.stdout.readline()
            assert line, f"ended before {message!r}"
            said.append(json.loads(line))
        return said[-1]

    async with asyncio.timeout(60):
        ready = await until("earmark is up")
        assert ready["stateDir"] == str(tmp_path)
        assert ready["services"]["framework"]["rpc"] == f"unix:{tmp_path}/run/framework.sock"
        # One that dies is told of with the reason, and is there again.
        status = (tmp_path / "run/nodes.sock").stat()
        os.kill(pid_of("earmark.nodes", tmp_path), signal.SIGKILL)
        died = await until("killed by SIGKILL; restarting in 0.2 s")
        assert (died["level"], died["service"]) == ("WARNING", "nodes")
        await until("runs again")
        while not (tmp_path / "run/nodes.sock").exists() or (tmp_path / "run/nodes.sock").stat() == status:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    up.send_signal(signal.SIGTERM)
    out, err = await up.communicate()
    assert (up.returncode, err) == (0, b"")
    said += [json.loads(line) for line in out.splitlines()]
    ends = [entry["service"] for entry in said if entry["message"].endswith("ends: SIGTERM")]
    assert sorted(ends) == sorted(SERVICES)
    assert ends[-1] == "apiserver"
    assert {"time", "level", "service", "logger", "message"} <= set.intersection(*(set(entry) for entry in said))


def pid_of(module: str, state: Path) -> int:
    """The process of a service of this state folder."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            command, environ = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
        except OSError:
            continue
        if module.encode() in command.split(b"\0") and f"EARMARK_RUNTIME_STATE_DIR={state}".encode() in environ:
            return int(folder.name)
    raise AssertionError(f"no {module}")
