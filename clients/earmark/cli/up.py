"""`earmark up`: the services as processes, until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from earmark.cli.errors import BadInput, CommandError
from earmark.cli.output import Terminal
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.supervisor import Notice, Supervisor, SupervisorError


def up(runtime: RuntimeSettings, config: Path | None) -> int:
    """Run all services and return 0 after Ctrl-C or SIGTERM.

    Raises CommandError when they cannot be started, BadInput when that is for their settings.
    """
    return asyncio.run(_up(runtime, config))


async def _up(runtime: RuntimeSettings, config: Path | None) -> int:
    console = Terminal()
    errors = Terminal(stderr=True)

    def notify(notice: Notice) -> None:
        style = "yellow" if notice.warning else "dim"
        errors.print(f"[{style}]{notice.service}[/]: {notice.text}", markup=True)

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    begun = loop.time()
    stopped = asyncio.ensure_future(stop.wait())
    supervisor = Supervisor(runtime, config, notify)
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
        console.print(f"earmark is up ({loop.time() - begun:.1f} s). Ctrl-C stops it.\n")
        for line in addresses(runtime):
            console.print(line, soft_wrap=True)
        sys.stdout.flush()
        failed = asyncio.ensure_future(supervisor.failed())
        await asyncio.wait({failed, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            raise CommandError(failed.result())
        failed.cancel()
        console.print("\nstopping ...")
    finally:
        await supervisor.__aexit__(None, None, None)
    return 0


def startup_error(error: SupervisorError) -> CommandError:
    """Return what a command ends with when the services did not start."""
    return BadInput(str(error)) if error.bad_settings else CommandError(str(error))


def addresses(runtime: RuntimeSettings) -> list[str]:
    """Return lines that say where everything is."""
    lines = [f"Kubernetes API  kubectl --kubeconfig {runtime.kubeconfig_path} get pods", ""]
    width = max(len(name) for name in SERVICES)
    for name in SERVICES:
        try:
            metrics = runtime.metrics_file(name).read_text(encoding="utf-8").strip()
        except OSError:
            metrics = "none"
        lines.append(f"{name:<{width}}  rpc {runtime.address(name)}  metrics {metrics}")
    lines += ["", f"logs  {runtime.log_dir}"]
    return lines
