"""`earmark up` in a folder of its own: the processes, and what can be measured of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from earmark.runtime.process import SERVICES, RuntimeSettings


@dataclass
class Up:
    """A running `earmark up`."""

    process: subprocess.Popen[str]
    state: Path
    # Seconds from the start of the command to "earmark is up".
    started_after: float = 0.0
    lines: list[str] = field(default_factory=list)

    @property
    def runtime(self) -> RuntimeSettings:
        """How clients find it."""
        return RuntimeSettings(state_dir=str(self.state))

    def services(self) -> dict[str, int]:
        """The process id of each service that runs."""
        found = {}
        for child in children(self.process.pid):
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
                name = next((word.removeprefix("earmark.") for word in words if word.startswith("earmark.")), "")
                if name in SERVICES:
                    found[name] = child
        return found

    def kill(self, service: str) -> int:
        """SIGKILL one service; returns its process id."""
        pid = self.services()[service]
        os.kill(pid, signal.SIGKILL)
        return pid

    def terminate(self, seconds: float) -> int:
        """SIGTERM, and the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def log(self, service: str) -> str:
        """What a service has logged."""
        return (self.runtime.log_dir / f"{service}.log").read_text(encoding="utf-8")


def children(pid: int) -> list[int]:
    """The process ids of the children of a process."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


def rss_mib(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def up(state: Path, config: Path, environ: dict[str, str] | None = None, seconds: float = 30.0) -> Iterator[Up]:
    """Run `earmark up` for the length of the block; whatever is left of it afterwards is killed."""
    begun = time.monotonic()
    process = subprocess.Popen(
        (sys.executable, "-m", "earmark.cli.main", "up", "--config", str(config), "--state-dir", str(state)),
        env={**os.environ, **(environ or {}), "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    made = Up(process, state)
    ready = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            made.lines.append(line.rstrip())
            if line.startswith("earmark is up"):
                made.started_after = time.monotonic() - begun
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(seconds), "not up in time"
        assert made.started_after, "\n".join(made.lines)
        yield made
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        reader.join(5)


def until(holds: Callable[[], bool], seconds: float, explain: Callable[[], str] = lambda: "") -> None:
    """Poll until something holds; fail after so many seconds, with an explanation."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s\n{explain()}"
        time.sleep(0.05)


def gone(pids: Sequence[int]) -> bool:
    """Whether none of these processes is there any more."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)
