"""Runs the services as processes: starts them in order, waits for health, restarts what dies, stops them in order.

It decides nothing about what they do. A service that ends with status 2 has settings that no restart cures: everything
stops. Everything else is restarted, with a growing wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from earmark.runtime.logfile import LogFile
from earmark.runtime.main import CONFIG_VARIABLE, SUPERVISED_VARIABLE
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.server import serving, until_serving

# Others need the API before they can list anything.
_FIRST = "apiserver"

# Waits before restarts, in seconds: doubled each time, forgotten after a minute of life.
_FIRST_BACKOFF = 0.2
_LONGEST_BACKOFF = 30.0
_LONG_LIFE = 60.0

# How long a service may take to end by itself before it is killed.
_STOP_SECONDS = 10.0


class SupervisorError(Exception):
    """The services could not be started. The text is for people, in one line.

    `bad_settings` says that the reason is in the settings, and no second try helps.
    """

    def __init__(self, text: str, *, bad_settings: bool = False) -> None:
        super().__init__(text)
        self.bad_settings = bad_settings


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened to a service, for people."""

    service: str
    text: str
    # Whether it is bad news.
    warning: bool = False


class _Service:
    """One supervised process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: asyncio.subprocess.Process | None = None
        self.restarts = 0
        self.keeper: asyncio.Task[None] | None = None
        self.last_lines: deque[str] = deque(maxlen=20)


class Supervisor:
    """Keeps services running. An async context manager: entering starts them and waits until all are ready."""

    def __init__(
        self,
        runtime: RuntimeSettings,
        config: Path | None,
        notify: Callable[[Notice], None],
        *,
        services: Sequence[str] = SERVICES,
        environ: Mapping[str, str] | None = None,
        command: Callable[[str], Sequence[str]] = lambda name: (sys.executable, "-m", f"earmark.{name}"),
        ready_seconds: float = 30.0,
        on_line: Callable[[str, bytes], None] | None = None,
    ) -> None:
        """Prepare to run `services` with the settings of `config`.

        `notify` is told what happens; `command` is what runs a service; all are to be ready within `ready_seconds`;
        `on_line` hears each line that a service logs, by the service's name.
        """
        self._runtime = runtime
        self._config = config
        self._notify = notify
        self._services = [_Service(name) for name in services]
        self._environ = dict(os.environ if environ is None else environ)
        self._command = command
        self._ready_seconds = ready_seconds
        self._on_line = on_line
        self._stopping = False
        self._failed: asyncio.Future[str] | None = None
        self._lock: TextIO | None = None

    async def __aenter__(self) -> Supervisor:
        """Start everything. Raises SupervisorError; what had been started is then stopped."""
        self._failed = asyncio.get_running_loop().create_future()
        for folder in (self._runtime.state, self._runtime.run_dir, self._runtime.log_dir):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _lock(self._runtime.state / "supervisor.lock")
        try:
            first = [service for service in self._services if service.name == _FIRST]
            rest = [service for service in self._services if service.name != _FIRST]
            for group in (first, rest):
                for service in group:
                    service.keeper = asyncio.create_task(self._keep(service), name=f"keep {service.name}")
                await self._until_ready(group)
        except BaseException:
            await self._stop_all()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._stop_all()

    def processes(self) -> dict[str, int]:
        """Return the process id of each service that runs."""
        return {
            service.name: service.process.pid
            for service in self._services
            if service.process is not None and service.process.returncode is None
        }

    def restarts(self, name: str) -> int:
        """Return how often a service has been restarted."""
        return next(service.restarts for service in self._services if service.name == name)

    async def failed(self) -> str:
        """Return, with the reason, when the services cannot go on."""
        if self._failed is None:
            raise RuntimeError("the supervisor has not been started")
        return await asyncio.shield(self._failed)

    async def _until_ready(self, services: Sequence[_Service]) -> None:
        if not services or self._failed is None:
            return
        waits = asyncio.gather(*(until_serving(self._runtime.address(service.name)) for service in services))
        try:
            watched: list[asyncio.Future[Any]] = [waits, self._failed]
            done, _ = await asyncio.wait(watched, timeout=self._ready_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waits
        if self._failed in done:
            raise SupervisorError(self._failed.result(), bad_settings=True)
        if not done:
            late = [service for service in services if not await serving(self._runtime.address(service.name), 0.5)]
            names = ", ".join(service.name for service in late)
            last = next((f" ({s.name} says: {s.last_lines[-1]})" for s in late if s.last_lines), "")
            raise SupervisorError(
                f"{names or 'services'} not ready after {self._ready_seconds:g} s{last}; logs: {self._runtime.log_dir}"
            )

    async def _keep(self, service: _Service) -> None:
        backoff = _FIRST_BACKOFF
        loop = asyncio.get_running_loop()
        while not self._stopping:
            begun = loop.time()
            try:
                status = await self._run(service)
                reason = _reason(status, service.last_lines)
            except OSError as error:
                # No process, memory or file to be had just now.
                status, reason = 1, f"cannot be started: {error}"
            if self._stopping:
                return
            if status == 2:
                if self._failed is not None and not self._failed.done():
                    self._failed.set_result(f"{service.name}: {reason}")
                return
            if loop.time() - begun > _LONG_LIFE:
                backoff = _FIRST_BACKOFF
            self._notify(Notice(service.name, f"{reason}; restarting in {backoff:g} s", warning=True))
            await asyncio.sleep(backoff)
            backoff = min(_LONGEST_BACKOFF, backoff * 2)
            service.restarts += 1

    async def _run(self, service: _Service) -> int:
        """Run the process until it ends, and return its status (negative: the signal)."""
        environ = {**self._environ, SUPERVISED_VARIABLE: "1"}
        environ["EARMARK_RUNTIME_STATE_DIR"] = str(self._runtime.state)
        if self._config is not None:
            environ[CONFIG_VARIABLE] = str(self._config.absolute())
        service.last_lines.clear()
        process = await asyncio.create_subprocess_exec(
            *self._command(service.name),
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            # Ctrl-C in a terminal reaches only the supervisor, which then stops the others in order.
            start_new_session=True,
        )
        service.process = process
        if service.restarts:
            self._notify(Notice(service.name, f"runs again (process {process.pid})"))
        with LogFile(self._runtime.log_dir / f"{service.name}.log") as log:
            while line := await _line(process.stdout):
                log.write(line)
                if self._on_line is not None:
                    self._on_line(service.name, line)
                service.last_lines.append(line.decode(errors="replace").rstrip())
        return await process.wait()

    async def _stop_all(self) -> None:
        """Stop in the reverse order of starting, so that nobody loses the API it writes to."""
        self._stopping = True
        first = [service for service in self._services if service.name == _FIRST]
        rest = [service for service in self._services if service.name != _FIRST]
        for group in (rest, first):
            await asyncio.gather(*(self._stop(service) for service in group))
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    async def _stop(self, service: _Service) -> None:
        process = service.process
        if process is not None and process.returncode is None:
            process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _STOP_SECONDS)
            except TimeoutError:
                self._notify(Notice(service.name, f"did not end within {_STOP_SECONDS:g} s; killed", warning=True))
                process.kill()
                await process.wait()
        if service.keeper is not None:
            service.keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await service.keeper


def _lock(path: Path) -> TextIO:
    """Take the state folder for this process, until the returned file is closed. Raises SupervisorError."""
    file = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise SupervisorError(f"earmark runs already in {path.parent} (process {owner})") from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


async def _line(stream: asyncio.StreamReader | None) -> bytes:
    if stream is None:
        return b""
    try:
        return await stream.readline()
    except ValueError:
        # A line beyond the reader's limit: the limit's worth of it was dropped, the next one is whole.
        return b"(a line that was too long)\n"


def _reason(status: int, last_lines: Sequence[str]) -> str:
    """Return why a process ended, with its last words."""
    if status < 0:
        try:
            return f"killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"killed by signal {-status}"
    # Of a traceback the last line says what happened.
    last = next((line for line in reversed(last_lines) if line.strip()), "")
    if status == 2 and last:
        return last
    return f"ended with status {status}" + (f": {last}" if last else "")
