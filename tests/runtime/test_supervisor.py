"""The supervisor: services of the tests' own, as real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from earmark.runtime.process import RuntimeSettings
from earmark.runtime.server import serving
from earmark.runtime.supervisor import Notice, Supervisor, SupervisorError

PROGRAM = Path(__file__).parent.parent / "support" / "runtime_program.py"


def supervisor(tmp_path: Path, notices: list[Notice], *, ready_seconds: float = 30.0, **variables: str) -> Supervisor:
    return Supervisor(
        RuntimeSettings(state_dir=str(tmp_path)),
        None,
        notices.append,
        services=("apiserver", "nodes"),
        environ={**os.environ, **variables},
        command=lambda name: (sys.executable, str(PROGRAM), name),
        ready_seconds=ready_seconds,
    )


async def test_services_are_ready_when_it_has_started_and_gone_when_it_has_stopped(tmp_path: Path) -> None:
    notices: list[Notice] = []
    async with supervisor(tmp_path, notices) as running:
        assert sorted(running.processes()) == ["apiserver", "nodes"]
        assert await serving(f"unix:{tmp_path}/run/nodes.sock")
    assert running.processes() == {}
    assert notices == []
    assert (tmp_path / "logs/nodes.log").read_text().endswith("stopped\n")


async def test_a_service_that_is_killed_runs_again_and_the_reason_is_told(tmp_path: Path) -> None:
    notices: list[Notice] = []
    async with supervisor(tmp_path, notices) as running:
        before = running.processes()["nodes"]
        os.kill(before, signal.SIGKILL)
        async with asyncio.timeout(30):
            while running.processes().get("nodes") in (before, None):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
            while not await serving(f"unix:{tmp_path}/run/nodes.sock"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert running.restarts("nodes") == 1
        assert running.restarts("apiserver") == 0
    assert notices[0] == Notice("nodes", "killed by SIGKILL; restarting in 0.2 s", warning=True)


async def test_a_service_that_fails_is_restarted_with_its_last_words(tmp_path: Path) -> None:
    notices: list[Notice] = []
    async with supervisor(tmp_path, notices, EARMARK_NODES_FAIL_AFTER="0.5") as running:
        async with asyncio.timeout(30):
            while not running.restarts("nodes"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
    assert "nodes" in notices[0].service
    assert "ended with status 1" in notices[0].text
    assert "worn out" in notices[0].text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
async def test_a_service_is_restarted_also_when_its_log_cannot_be_written(tmp_path: Path) -> None:
    notices: list[Notice] = []
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/nodes.log").symlink_to("/dev/full")
    async with supervisor(tmp_path, notices, EARMARK_NODES_FAIL_AFTER="0.5") as running:
        async with asyncio.timeout(30):
            while running.restarts("nodes") < 2:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
    assert "worn out" in notices[0].text


async def test_a_service_that_cannot_be_started_for_now_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[Notice] = []
    start, left = asyncio.create_subprocess_exec, [2]

    async def refused(*command: str, **options: Any) -> asyncio.subprocess.Process:
        if command[-1] == "nodes" and left[0]:
            left[0] -= 1
            raise OSError(11, "Resource temporarily unavailable")
        return await start(*command, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)
    async with supervisor(tmp_path, notices) as running:
        assert sorted(running.processes()) == ["apiserver", "nodes"]
    assert "cannot be started: [Errno 11]" in notices[0].text


async def test_the_wait_before_a_restart_grows(tmp_path: Path) -> None:
    notices: list[Notice] = []
    async with supervisor(tmp_path, notices, EARMARK_NODES_FAIL_AFTER="0.5") as running:
        async with asyncio.timeout(60):
            while running.restarts("nodes") < 3:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
    waits = [notice.text.rpartition("; ")[2] for notice in notices if notice.warning]
    assert waits[:3] == ["restarting in 0.2 s", "restarting in 0.4 s", "restarting in 0.8 s"]


async def test_the_api_server_stops_last_so_that_the_others_can_finish(tmp_path: Path) -> None:
    heard: list[tuple[str, bytes]] = []
    running = supervisor(tmp_path, [])
    running._on_line = lambda service, line: heard.append((service, line))
    async with running:
        pass
    assert [service for service, line in heard if line == b"stopped\n"] == ["nodes", "apiserver"]


async def test_settings_that_cannot_be_used_end_it_at_once(tmp_path: Path) -> None:
    with pytest.raises(SupervisorError, match="EARMARK_NODES_FAIL_AFTER") as caught:
        async with supervisor(tmp_path, [], EARMARK_NODES_FAIL_AFTER="never"):
            pass
    assert caught.value.bad_settings


async def test_a_service_that_never_gets_ready_is_named(tmp_path: Path) -> None:
    with pytest.raises(SupervisorError, match=r"^nodes not ready after 3 s.*logs: "):
        async with supervisor(tmp_path, [], ready_seconds=3, EARMARK_NODES_READY_AFTER="600"):
            pass


async def test_two_supervisors_do_not_share_a_state_folder(tmp_path: Path) -> None:
    async with supervisor(tmp_path, []):
        with pytest.raises(SupervisorError, match=rf"earmark runs already in .* \(process {os.getpid()}\)"):
            async with supervisor(tmp_path, []):
                pass
        assert await serving(f"unix:{tmp_path}/run/nodes.sock")
    async with supervisor(tmp_path, []):
        assert await serving(f"unix:{tmp_path}/run/nodes.sock")


async def test_services_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[3]); from pathlib import Path\n"
        "from earmark.runtime.process import RuntimeSettings\n"
        "from earmark.runtime.supervisor import Supervisor\n"
        "async def main():\n"
        "    settings = RuntimeSettings(state_dir=sys.argv[1])\n"
        "    command = lambda name: (sys.executable, sys.argv[2], name)\n"
        "    async with Supervisor(settings, None, print, services=('nodes',), command=command) as s:\n"
        "        print(s.processes()['nodes'], flush=True)\n"
        "        await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), str(PROGRAM), str(PROGRAM.parent), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(15):
        while runs(child):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.1)


def runs(pid: int) -> bool:
    """Whether a process is there and not only waits to be reaped."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and ") Z " not in stat.read_text()
