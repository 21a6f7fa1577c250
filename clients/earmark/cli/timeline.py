"""`earmark timeline`: settling windows, past and present. What a line says is earmark.cli.windows'."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earmark.cli.windows import Wanted
    from earmark.client import EarmarkClient
    from earmark.runtime.process import RuntimeSettings
    from earmark.v1 import settlement_pb2


def timeline(
    pod: Annotated[
        str, typer.Argument(metavar="[POD]", help="Only windows in which this pod is preemptor or victim.")
    ] = "",
    node: Annotated[str, typer.Option("--node", help="Only windows on this node.")] = "",
    victim: Annotated[str, typer.Option("--victim", help="Only windows with this pod as a victim.")] = "",
    preemptor: Annotated[str, typer.Option("--preemptor", help="Only windows of this preemptor.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the pods (default: all).")] = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with every change, until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a window and line.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Show who was preempted for whom, and when each device came free: windows from t0 to t4."""
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings
    from earmark.cli.windows import Wanted

    wanted = Wanted(pod=pod, node=node, victim=victim, preemptor=preemptor, namespace=namespace)
    run(_show(runtime_settings(config, state_dir), wanted, watch, as_json))


async def _show(runtime: RuntimeSettings, wanted: Wanted, watch: bool, as_json: bool) -> None:
    from earmark.client import EarmarkClient

    async with EarmarkClient(runtime) as client:
        await follow(client, wanted, watch=watch, as_json=as_json)


async def follow(client: EarmarkClient, wanted: Wanted, *, watch: bool, as_json: bool) -> None:
    """Print the windows that are known, and with `watch` every change from then on, until it is cancelled."""
    found = [window for window in await client.settlements() if wanted.admits(window)]
    for window in found:
        # Of those that are open the watch tells.
        if window.outcome or not watch:
            _print(window, as_json)
    if not watch:
        if not found and not as_json:
            print("no settling windows")
        return
    async for window in client.watch_settlements():
        if wanted.admits(window):
            _print(window, as_json)


def _print(window: settlement_pb2.Settlement, as_json: bool) -> None:
    from earmark.cli.output import Terminal
    from earmark.cli.windows import as_data, lines

    if as_json:
        print(json.dumps(as_data(window)), flush=True)
        return
    terminal = Terminal()
    for line in lines(window, datetime.now(UTC), min(terminal.width, 120)):
        terminal.print_indented(line)
