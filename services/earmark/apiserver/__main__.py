"""Runs the embedded Kubernetes API as a process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from earmark.apiserver.component import build
from earmark.apiserver.settings import ApiServerSettings
from earmark.kube.api import KubeApi
from earmark.runtime.main import no_api, run
from earmark.runtime.process import RuntimeSettings


def main() -> None:
    """Run until SIGTERM."""
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
