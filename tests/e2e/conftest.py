"""One `earmark up` and one OTLP receiver for all end-to-end tests of a session: starting them costs the most."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from earmark.kube.http import HttpApi
from support.e2e_cluster import Cluster
from support.e2e_receiver import Receiver, receiver
from support.e2e_up import Up, up

# Seconds: how long the claim controller takes to notice that a consumer is gone.
DEALLOCATION = 1.0

_CONFIG = f"""
[common]
feature_gates = {{ DRAPreemption = true }}

[framework]
scheduler_names = ["default-scheduler"]

[claimcontroller]
deallocation_seconds = {DEALLOCATION}
"""


@pytest.fixture(scope="session")
def spans() -> Iterator[Receiver]:
    """Where the processes send their spans."""
    with receiver() as receives:
        yield receives


@pytest.fixture(scope="session")
def running(spans: Receiver) -> Iterator[Up]:
    """All services as processes, over sockets and HTTPS."""
    # Not pytest's folder: its name is too long for sockets.
    with tempfile.TemporaryDirectory(prefix="earmark-e2e-") as folder:
        config = Path(folder) / "earmark.toml"
        config.write_text(_CONFIG, encoding="utf-8")
        environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": spans.endpoint}
        with up(Path(folder) / "state", config, environ) as made:
            yield made


@pytest.fixture
async def cluster(running: Up) -> AsyncIterator[Cluster]:
    """Two nodes with a device each; see Cluster."""
    async with HttpApi.from_kubeconfig(running.runtime.kubeconfig_path) as api:
        yield Cluster(api)
