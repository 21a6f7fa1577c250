"""`earmark dump`: the state of a cluster as one file. What is in it is earmark.simulation.dumping's."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earmark.client import EarmarkClient
    from earmark.kube.api import KubeApi
    from earmark.runtime.process import RuntimeSettings
    from earmark.simulation.dumping import Dump


def dump(
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write; - is stdout.")] = Path("-"),
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Write what decides about scheduling as one file, without secrets: for whatif, simulate and bug reports."""
    from earmark.cli.errors import CommandError
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings
    from earmark.simulation.dumping import text_of

    taken = run(dump_of(runtime_settings(config, state_dir)))
    text = text_of(taken)
    if str(output) == "-":
        sys.stdout.write(text)
        return
    try:
        # Nobody else needs to read how a cluster is used.
        with os.fdopen(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from error
    print(f"{output}: {len(taken.manifests)} objects", file=sys.stderr)


async def dump_of(runtime: RuntimeSettings) -> Dump:
    """Take a dump of the cluster that the settings name. Services that do not answer are named in it."""
    from earmark.cli.running import open_api
    from earmark.client import EarmarkClient

    async with open_api(runtime) as api, EarmarkClient(runtime) as client:
        return await take(api, client, datetime.now(UTC))


async def take(api: KubeApi, client: EarmarkClient, now: datetime) -> Dump:
    """Read the objects from the API, and from the services what they say of themselves. Changes nothing."""
    from earmark.cli.windows import as_data
    from earmark.client import CallFailed
    from earmark.simulation.dumping import KINDS, About, Dump, manifests_of

    values = [value for kind in KINDS for value in (await api.list(kind)).items]
    missing: dict[str, None] = {}
    gates: dict[str, bool] = {}
    nominations: tuple[dict[str, object], ...] = ()
    settlements: tuple[dict[str, object], ...] = ()
    queue: tuple[dict[str, object], ...] = ()
    try:
        gates = dict((await client.plugin.describe()).feature_gates)
        settlements = tuple(as_data(window) for window in await client.settlements())
        nominations = tuple(item for item in settlements if item["outcome"] is None)
    except CallFailed:
        missing["dynamicresources"] = None
    try:
        queue = tuple(
            {
                "pod": f"{entry.pod.namespace}/{entry.pod.name}",
                "queue": entry.queue,
                "priority": entry.priority,
                "attempts": entry.attempts,
                "nominatedNode": entry.nominated_node_name or None,
                "message": entry.message,
            }
            for entry in await client.queue()
        )
    except CallFailed:
        missing["framework"] = None
    about = About(now, gates, nominations, settlements, queue, tuple(missing))
    return Dump(about, manifests_of(values))
