"""The life of a process, with a small component of the tests' own, over real sockets and signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from pathlib import Path

import pytest

from earmark.runtime.server import serving

PROGRAM = Path(__file__).parent.parent / "support" / "runtime_program.py"


async def start(tmp_path: Path, **variables: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        "nodes",
        env={**os.environ, "EARMARK_RUNTIME_STATE_DIR": str(tmp_path), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def until_serving(tmp_path: Path) -> None:
    async with asyncio.timeout(30):
        while not await serving(f"unix:{tmp_path}/run/nodes.sock"):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def test_sigterm_drains_and_ends_with_0(tmp_path: Path) -> None:
    process = await start(tmp_path, EARMARK_NODES_STOP_TAKES="0.1")
    await until_serving(tmp_path)
    process.send_signal(signal.SIGTERM)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (0, b"stopped\n")


async def test_metrics_are_served_where_the_file_says(tmp_path: Path) -> None:
    process = await start(tmp_path)
    await until_serving(tmp_path)
    url = (tmp_path / "run/nodes.metrics").read_text().strip()
    text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode())
    assert url.startswith("http://127.0.0.1:")
    assert "process_resident_memory_bytes" in text
    process.terminate()
    await process.wait()
    assert not (tmp_path / "run/nodes.metrics").exists()


async def test_a_failed_task_ends_the_process_with_1(tmp_path: Path) -> None:
    process = await start(tmp_path, EARMARK_NODES_FAIL_AFTER="0.05")
    _, err = await process.communicate()
    assert process.returncode == 1
    assert b"task nodes/work failed: worn out" in err


@pytest.mark.parametrize(
    ("variable", "value", "line"),
    [
        ("EARMARK_NODES_FAIL_AFTER", "never", "earmark.nodes: EARMARK_NODES_FAIL_AFTER fail_after: Expected `float`"),
        ("EARMARK_RUNTIME_ADDRESSES", '{nodes = "0.0.0.0:1"}', "earmark.nodes: '0.0.0.0:1': plain RPC listens on"),
        ("EARMARK_CONFIG", "/no/such.toml", "earmark.nodes: /no/such.toml: No such file"),
    ],
)
async def test_bad_settings_end_with_2_and_one_line(tmp_path: Path, variable: str, value: str, line: str) -> None:
    process = await start(tmp_path, **{variable: value})
    _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode().startswith(line)
    assert err.decode().count("\n") == 1


@pytest.mark.parametrize(
    ("kubeconfig", "reason"),
    [
        (None, "not found"),
        ("clusters: 7\n", "malformed"),
        (
            "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1', certificate-authority-data: bm8=}}]\n"
            "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n",
            "certificates cannot be used",
        ),
    ],
    ids=["missing", "malformed", "bad certificate"],
)
async def test_a_kubeconfig_that_cannot_be_used_ends_with_2_and_one_line(
    tmp_path: Path, kubeconfig: str | None, reason: str
) -> None:
    path = tmp_path / "kubeconfig"
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "earmark.nodes",
        env={**os.environ, "EARMARK_RUNTIME_STATE_DIR": str(tmp_path), "EARMARK_RUNTIME_KUBECONFIG": str(path)},
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 2
    assert err.decode().startswith("earmark.nodes: [runtime] kubeconfig: ")
    assert reason in err.decode()
    assert err.decode().count("\n") == 1
