"""The page beside the services that `earmark up` runs: a process of its own, which they do not need."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from earmark.cli.announcing import Announcer
from earmark.runtime.main import CONFIG_VARIABLE, SUPERVISED_VARIABLE
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.supervisor import Notice

_STOP_SECONDS = 5.0


@contextlib.asynccontextmanager
async def page(runtime: RuntimeSettings, config: Path | None, announcer: Announcer) -> AsyncIterator[None]:
    """Serve the page for the length of the block; the announcer is told its address, or why there is none."""
    keeper = asyncio.create_task(_keep(runtime, config, announcer), name="page")
    try:
        yield
    finally:
        keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await keeper


async def _keep(runtime: RuntimeSettings, config: Path | None, announcer: Announcer) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "earmark.cli.main", "web", "--state-dir", str(runtime.state)),
        env=_environ(config),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # Ctrl-C in a terminal reaches only who started it.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        if address := (await process.stdout.readline()).decode().strip():
            announcer.page(address)
        status = await process.wait()
        announcer.notice(Notice("page", f"ended with status {status}; `earmark web` says why", warning=True))
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


def _environ(config: Path | None) -> dict[str, str]:
    environ = {**os.environ, SUPERVISED_VARIABLE: "1"}
    if config is not None:
        environ[CONFIG_VARIABLE] = str(config.absolute())
    return environ
