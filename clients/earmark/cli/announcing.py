"""What `earmark up` says: lines for people, or one JSON object a line for machines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from rich.markup import escape

from earmark.cli.output import Terminal
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.supervisor import Notice


class Announcer(Protocol):
    """Says what happens while the services run."""

    def environ(self) -> Mapping[str, str]:
        """The environment that the services get."""

    def notice(self, notice: Notice) -> None:
        """Something has happened to a service."""

    def line(self, service: str, line: bytes) -> None:
        """A service has logged a line."""

    def up(self, runtime: RuntimeSettings, seconds: float) -> None:
        """All services are ready."""

    def page(self, address: str) -> None:
        """The page can be opened."""

    def stopping(self) -> None:
        """They are being stopped."""


class ForPeople:
    """Addresses and what is wrong; with `logs` also the services' lines, each of which names its service."""

    def __init__(self, *, logs: bool) -> None:
        self._logs = logs
        self._console = Terminal()
        self._errors = Terminal(stderr=True)

    def environ(self) -> Mapping[str, str]:
        """See Announcer."""
        return os.environ

    def notice(self, notice: Notice) -> None:
        """See Announcer."""
        style = "yellow" if notice.warning else "dim"
        self._errors.print(f"[{style}]{notice.service}[/]: {escape(notice.text)}", markup=True)

    def line(self, service: str, line: bytes) -> None:
        """See Announcer."""
        if self._logs:
            self._console.print(line.decode(errors="replace").rstrip(), markup=False, soft_wrap=True)

    def up(self, runtime: RuntimeSettings, seconds: float) -> None:
        """See Announcer."""
        self._console.print(f"earmark is up ({seconds:.1f} s). Ctrl-C stops it.\n")
        for line in addresses(runtime):
            self._console.print(line, soft_wrap=True)
        sys.stdout.flush()

    def page(self, address: str) -> None:
        """See Announcer."""
        self._console.print(f"page  {address}", markup=False, soft_wrap=True)
        sys.stdout.flush()

    def stopping(self) -> None:
        """See Announcer."""
        self._console.print("\nstopping ...")


class ForMachines:
    """Everything in the order in which it happens, with the keys that the services' own JSON logs have."""

    def __init__(self) -> None:
        self._console = Terminal()

    def environ(self) -> Mapping[str, str]:
        """See Announcer."""
        return {**os.environ, "EARMARK_RUNTIME_LOG_FORMAT": "json"}

    def notice(self, notice: Notice) -> None:
        """See Announcer."""
        self._say("WARNING" if notice.warning else "INFO", notice.service, notice.text)

    def line(self, service: str, line: bytes) -> None:
        """See Announcer."""
        text = line.decode(errors="replace").rstrip()
        try:
            whole = isinstance(json.loads(text), dict)
        except ValueError:
            whole = False
        if whole:
            self._print(text)
        elif text:
            # From before logging was set up, or from the interpreter itself.
            self._say("ERROR", service, text)

    def up(self, runtime: RuntimeSettings, seconds: float) -> None:
        """See Announcer."""
        services = {name: {"rpc": runtime.address(name), "metrics": metrics(runtime, name)} for name in SERVICES}
        places = {"stateDir": str(runtime.state), "kubeconfig": str(runtime.kubeconfig_path)}
        self._say("INFO", "up", "earmark is up", seconds=round(seconds, 1), services=services, **places)

    def page(self, address: str) -> None:
        """See Announcer."""
        self._say("INFO", "up", "the page can be opened", address=address)

    def stopping(self) -> None:
        """See Announcer."""
        self._say("INFO", "up", "stopping")

    def _say(self, level: str, service: str, message: str, **fields: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        value = {"time": now, "level": level, "service": service, "logger": "earmark.up", "message": message, **fields}
        self._print(json.dumps(value))

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)
        sys.stdout.flush()


def addresses(runtime: RuntimeSettings) -> list[str]:
    """Return lines that say where everything is."""
    lines = [f"Kubernetes API  kubectl --kubeconfig {runtime.kubeconfig_path} get pods", ""]
    width = max(len(name) for name in SERVICES)
    for name in SERVICES:
        lines.append(f"{name:<{width}}  rpc {runtime.address(name)}  metrics {metrics(runtime, name) or 'none'}")
    lines += ["", f"logs  {runtime.log_dir}"]
    return lines


def metrics(runtime: RuntimeSettings, service: str) -> str:
    """Return where a service's /metrics is; "" if nowhere."""
    try:
        return runtime.metrics_file(service).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
