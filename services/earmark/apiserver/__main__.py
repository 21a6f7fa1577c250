"""Runs the embedded Kubernetes API as a process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator

from earmark.apiserver.component import build
from earmark.apiserver.settings import ApiServerSettings
from earmark.kube.api import KubeApi
from earmark.runtime.main import no_api, run
from earmark.runtime.process import RuntimeSettings

# How long a thread waits for the one that runs. The default, 5 ms, would be most of a write's time: the thread that
# commits to the store has to get its turn beside the event loop.
SWITCH_SECONDS = 0.0005


def main() -> None:
    """Run until SIGTERM."""
    sys.setswitchinterval(SWITCH_SECONDS)
    told: list[RuntimeSettings] = []

    @contextlib.asynccontextmanager
    async def remember(runtime: RuntimeSettings) -> AsyncIterator[KubeApi]:
        # The API is reached by nobody here, but its files lie in the state folder.
        told.append(runtime)
        async with no_api(runtime) as api:
            yield api

    run(
        "apiserver",
        ApiServerSettings,
        lambda settings, env: build(settings, env, told[0].state, told[0].kubeconfig_path),
        open_api=remember,
    )


if __name__ == "__main__":
    main()
