"""Settings of the embedded Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ApiServerSettings:
    """Settings of the table `[apiserver]`. Paths that are not absolute are relative to the state folder."""

    host: str = "127.0.0.1"
    """Address on which the API listens."""

    port: int = 0
    """Port on which the API listens; 0 takes the one of the last start, or a free one."""

    data_dir: str = "apiserver"
    """Folder of the store, the token and the certificates."""

    token_file: str = ""
    """File with the token that every request has to carry; made if missing. Default: DATA_DIR/token."""

    kubeconfig: str = ""
    """Where the kubeconfig for this API is written. Default: the one of `[runtime]`, STATE_DIR/kubeconfig."""

    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """FULL: an acknowledged write survives a power cut. NORMAL: it survives the end of the process, and is faster."""

    watch_history: int = 10_000
    """Changes of each resource that are remembered for watches; older watches get 410 and list again."""

    event_seconds: int = 3600
    """How long Events are kept."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port: {self.port} is not a port (0 to 65535)")
        if self.watch_history < 1:
            raise ValueError("watch_history: at least 1 change has to be remembered")
        if self.event_seconds < 1:
            raise ValueError("event_seconds: has to be at least 1")
