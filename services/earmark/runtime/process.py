"""What every process of earmark is told: where it keeps its state, where it listens, how it logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# The services that have a process of their own, in the order in which they are started.
SERVICES: tuple[str, ...] = (
    "apiserver",
    "claimcontroller",
    "nodes",
    "dynamicresources",
    "preemption",
    "framework",
)


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """Settings of the table `[runtime]`."""

    state_dir: str = ".earmark"
    """Folder of sockets, logs, kubeconfig and the embedded API's data; made with owner-only permissions."""

    addresses: Mapping[str, str] = field(default_factory=dict)
    """Where a service listens, by its name: "unix:/path" or "127.0.0.1:port". Default: a socket in STATE_DIR/run."""

    metrics_address: str = "127.0.0.1:0"
    """Where /metrics is served; port 0 takes a free one, which is written to STATE_DIR/run/SERVICE.metrics."""

    kubeconfig: str = ""
    """How the Kubernetes API is reached. Default: STATE_DIR/kubeconfig, which the embedded API writes."""

    log_format: Literal["text", "json"] = "text"
    """Lines for people, or one JSON object a line."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is logged."""

    otlp_endpoint: str = ""
    """Where spans are sent (OTLP over gRPC). Default: OTEL_EXPORTER_OTLP_ENDPOINT; nowhere if that is not set."""

    grace_seconds: float = 3.0
    """How long calls in flight may take to finish when a service stops."""

    @property
    def state(self) -> Path:
        """The state folder as an absolute path."""
        return Path(self.state_dir).expanduser().absolute()

    @property
    def run_dir(self) -> Path:
        """The folder of sockets."""
        return self.state / "run"

    @property
    def log_dir(self) -> Path:
        """The folder of log files, where a supervisor runs the services."""
        return self.state / "logs"

    @property
    def kubeconfig_path(self) -> Path:
        """The kubeconfig as an absolute path."""
        return Path(self.kubeconfig).expanduser().absolute() if self.kubeconfig else self.state / "kubeconfig"

    def address(self, service: str) -> str:
        """Return where a service listens."""
        return self.addresses.get(service) or f"unix:{self.run_dir / service}.sock"

    def metrics_file(self, service: str) -> Path:
        """Return the file that holds the address of a service's /metrics."""
        return self.run_dir / f"{service}.metrics"
