"""The life of a process: settings, server, readiness, signals, an orderly end. Each service's __main__ calls `run`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from earmark.kube.api import ApiUnavailable, KubeApi
from earmark.runtime import export, logs, memory, metrics
from earmark.runtime.clock import SystemClock
from earmark.runtime.component import Component, Environment
from earmark.runtime.environment import RememberedChannels
from earmark.runtime.ids import SystemIds
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.server import AddressError, ServiceServer, open_channel
from earmark.runtime.settings import RUNTIME, SettingsError, check_sections, load, read_file
from earmark.runtime.tasks import ComponentTasks
from earmark.runtime.telemetry import Tracing

S = TypeVar("S")

_log = logging.getLogger(__name__)

# How often readiness is looked at until it is there, and afterwards.
_READY_POLL_SECONDS = 0.02
_WATCH_POLL_SECONDS = 1.0

CONFIG_VARIABLE = "EARMARK_CONFIG"

# Set by the supervisor: the process ends when its parent does, so that nothing is left behind.
SUPERVISED_VARIABLE = "EARMARK_SUPERVISED"

ApiOpener = Callable[[RuntimeSettings], contextlib.AbstractAsyncContextManager[KubeApi]]


@contextlib.asynccontextmanager
async def api_over_https(runtime: RuntimeSettings) -> AsyncIterator[KubeApi]:
    """Open the Kubernetes API that the kubeconfig names. Raises SettingsError where that cannot be used."""
    from earmark.kube.http import HttpApi
    from earmark.kube.kubeconfig import KubeconfigError

    async with contextlib.AsyncExitStack() as stack:
        try:
            api = await stack.enter_async_context(HttpApi.from_kubeconfig(runtime.kubeconfig_path))
        except (KubeconfigError, ApiUnavailable) as error:
            # Nothing has been sent yet: unavailable means certificates that cannot be used.
            raise SettingsError(f"[{RUNTIME}] kubeconfig: {error}") from error
        yield api


class _NoApi:
    """Stands where a component has no Kubernetes API, because it is one."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("this component has no Kubernetes API")


@contextlib.asynccontextmanager
async def no_api(runtime: RuntimeSettings) -> AsyncIterator[KubeApi]:
    """Open nothing: for the API server itself."""
    yield _NoApi()


def run(
    name: str,
    settings_type: type[S],
    build: Callable[[S, Environment], Component],
    *,
    open_api: ApiOpener = api_over_https,
    argv: Sequence[str] | None = None,
) -> NoReturn:
    """Run one service as this process until SIGTERM or SIGINT.

    Exit status: 0 after a signal, 1 when the service failed, 2 with one line on standard error for bad settings.
    """
    parser = argparse.ArgumentParser(prog=f"earmark.{name}", description=f"Runs the earmark service {name}.")
    parser.add_argument("--config", type=Path, help=f"TOML file with settings (default: ${CONFIG_VARIABLE})")
    arguments = parser.parse_args(argv)
    try:
        runtime, settings = _settings(name, settings_type, arguments.config)
    except SettingsError as error:
        sys.exit(_bad_settings(name, str(error)))
    logs.configure(name, runtime.log_format, runtime.log_level)
    memory.begin()
    try:
        sys.exit(asyncio.run(_serve(name, runtime, settings, build, open_api)))
    except (AddressError, SettingsError) as error:
        sys.exit(_bad_settings(name, str(error)))


def _settings(name: str, settings_type: type[S], config: Path | None) -> tuple[RuntimeSettings, S]:
    if config is None and os.environ.get(CONFIG_VARIABLE):
        config = Path(os.environ[CONFIG_VARIABLE])
    tables = read_file(config)
    check_sections(tables, SERVICES, config)
    runtime = load(RuntimeSettings, RUNTIME, file=config, tables=tables, environ=os.environ)
    return runtime, load(settings_type, name, file=config, tables=tables, environ=os.environ)


def _bad_settings(name: str, text: str) -> int:
    print(f"earmark.{name}: {text}", file=sys.stderr)
    return 2


async def _serve(
    name: str, runtime: RuntimeSettings, settings: S, build: Callable[[S, Environment], Component], open_api: ApiOpener
) -> int:
    ending = asyncio.get_running_loop().create_future()

    def end(status: int, reason: str) -> None:
        if not ending.done():
            ending.set_result((status, reason))

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end, 0, signal.Signals(number).name)
    runtime.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    clock, ids = SystemClock(), SystemIds()
    processor = export.otlp_processor(runtime.otlp_endpoint)
    telemetry = Tracing(name, clock, ids, processor)
    tasks = ComponentTasks(name, lambda task, error: end(1, f"task {task} failed: {error}"))
    channels = RememberedChannels(lambda service: open_channel(runtime.address(service), telemetry))
    registry = metrics.process_registry()
    async with open_api(runtime) as api:
        environment = Environment(clock, ids, api, channels, tasks, telemetry, registry)
        component = build(settings, environment)
        server = ServiceServer(runtime.address(name), telemetry, grace=runtime.grace_seconds)
        component.register(server)
        try:
            with metrics.served(registry, runtime.metrics_address, runtime.metrics_file(name)):
                async with server:
                    await component.start()
                    watch = asyncio.ensure_future(_watch(name, component, server, end))
                    watch.add_done_callback(lambda task: _watch_ended(task, end))
                    status, reason = await ending
                    _log.info("%s ends: %s", name, reason)
                    watch.cancel()
                    await server.set_ready(ready=False)
                    await component.stop()
        finally:
            await tasks.cancel_all()
            await channels.close()
            await export.flush(processor)
    if status:
        # The last line of the log: what a supervisor tells people.
        _log.error("%s has failed: %s", name, reason)
    return int(status)


async def _watch(name: str, component: Component, server: ServiceServer, end: Callable[[int, str], None]) -> None:
    """Tell health what the component says of itself; end with the parent, if that was asked for."""
    parent = os.getppid() if os.environ.get(SUPERVISED_VARIABLE) else None
    known = settled = False
    while True:
        ready = component.ready()
        if ready and not settled:
            # What the caches have loaded by now stays for as long as the process.
            memory.settle()
            settled = True
        if ready != known:
            await server.set_ready(ready=ready)
            _log.info("%s is %s", name, "ready" if ready else "not ready")
            known = ready
        if parent is not None and os.getppid() != parent:
            end(0, "the supervisor is gone")
        await asyncio.sleep(_WATCH_POLL_SECONDS if known else _READY_POLL_SECONDS)


def _watch_ended(task: asyncio.Task[None], end: Callable[[int, str], None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("readiness could not be told", exc_info=error)
        end(1, f"readiness could not be told: {error}")
