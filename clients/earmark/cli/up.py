"""`earmark up`: the services as processes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from pathlib import Path

from earmark.cli.announcing import Announcer
from earmark.cli.errors import BadInput, CommandError
from earmark.cli.page import page
from earmark.runtime.process import RuntimeSettings
from earmark.runtime.supervisor import Supervisor, SupervisorError


def up(runtime: RuntimeSettings, config: Path | None, announcer: Announcer, *, with_page: bool) -> int:
    """Run all services, and the page if it is wanted; return 0 after Ctrl-C or SIGTERM.

    Raises CommandError when they cannot be started, BadInput when that is for their settings.
    """
    return asyncio.run(_up(runtime, config, announcer, with_page))


async def _up(runtime: RuntimeSettings, config: Path | None, announcer: Announcer, with_page: bool) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    begun = loop.time()
    stopped = asyncio.ensure_future(stop.wait())
    supervisor = Supervisor(
        runtime, config, announcer.notice, environ=announcer.environ(), on_line=announcer.line
    )  # fmt: skip
    starting = asyncio.ensure_future(supervisor.__aenter__())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if stop.is_set():
        starting.cancel()
        await asyncio.wait({starting})
        return 0
    try:
        await starting
    except SupervisorError as error:
        raise startup_error(error) from error
    try:
        announcer.up(runtime, loop.time() - begun)
        failed = asyncio.ensure_future(supervisor.failed())
        async with page(runtime, config, announcer) if with_page else contextlib.nullcontext():
            await asyncio.wait({failed, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            raise CommandError(failed.result())
        failed.cancel()
        announcer.stopping()
    finally:
        await supervisor.__aexit__(None, None, None)
    return 0


def startup_error(error: SupervisorError) -> CommandError:
    """Return what a command ends with when the services did not start."""
    return BadInput(str(error)) if error.bad_settings else CommandError(str(error))
