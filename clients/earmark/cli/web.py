"""`earmark web`: the page of a running earmark. What explains a pod is the command's own explanation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import socket

    from earmark.client import EarmarkClient
    from earmark.runtime.process import RuntimeSettings


def web(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1 (0: a free one).")] = 0,
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Serve a page for a browser on this machine: devices, settling windows, queue, what if."""
    from earmark.cli.errors import CommandError
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings
    from earmark.web.serving import listen

    runtime = runtime_settings(config, state_dir)
    try:
        bound = listen(port)
    except OSError as error:
        raise CommandError(f"127.0.0.1:{port}: {error.strerror or error}") from error
    with bound:
        if not run(_serve(runtime, bound)):
            raise CommandError("the page cannot follow the cluster any more; the lines above say why")


async def _serve(runtime: RuntimeSettings, bound: socket.socket) -> bool:
    from earmark.cli.running import open_api
    from earmark.web.serving import serve

    async with open_api(runtime) as api:
        # One line: whoever started this reads the address from it.
        return await serve(runtime, api, bound, _explain, lambda address: print(address, flush=True))


async def _explain(client: EarmarkClient, namespace: str, name: str) -> Sequence[str]:
    from earmark.cli.errors import CommandError
    from earmark.cli.explain import ask
    from earmark.cli.explanation import lines

    try:
        return tuple(lines(await ask(client, namespace, name), datetime.now(UTC)))
    except CommandError as error:
        return (str(error),)
