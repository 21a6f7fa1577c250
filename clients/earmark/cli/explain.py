"""`earmark explain pod NAME`: why a pod is where it is. What is said is earmark.cli.explanation's."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earmark.cli.explanation import Explanation
    from earmark.client import EarmarkClient
    from earmark.runtime.process import RuntimeSettings


class Explained(StrEnum):
    """What can be explained."""

    pod = "pod"


def explain(
    what: Annotated[Explained, typer.Argument(metavar="pod", help="What to explain.")],
    name: Annotated[str, typer.Argument(help="Name of the pod.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Say in plain words why a pod is pending, node by node and device by device."""
    from earmark.cli.explanation import as_data, lines
    from earmark.cli.output import Terminal
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings

    explanation = run(_ask(runtime_settings(config, state_dir), namespace, name))
    if as_json:
        print(json.dumps(as_data(explanation)))
        return
    terminal = Terminal()
    for line in lines(explanation, datetime.now(UTC)):
        terminal.print_indented(line)


async def _ask(runtime: RuntimeSettings, namespace: str, name: str) -> Explanation:
    from earmark.client import EarmarkClient

    async with EarmarkClient(runtime) as client:
        return await ask(client, namespace, name)


async def ask(client: EarmarkClient, namespace: str, name: str) -> Explanation:
    """Ask the framework about the pod and the plugin about its devices. Raises CommandError for an unknown pod."""
    from earmark.cli.errors import CommandError
    from earmark.cli.explanation import explained
    from earmark.v1 import explanation_pb2

    pod = await client.explain(namespace, name)
    if not pod.pod.uid:
        raise CommandError(f"the scheduler knows no pod {namespace}/{name}")
    devices: explanation_pb2.ExplainDevicesResponse | None = None
    if pod.where not in ("bound", "unknown"):
        devices = await client.explanation.explain_devices(pod=pod.pod, timeout=30.0)
    return explained(pod, devices)
