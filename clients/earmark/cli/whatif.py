"""`earmark whatif`: what would happen if pods were submitted. Who finds out is earmark.simulation.whatif."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earmark.simulation.dumping import Dump
    from earmark.simulation.scenario import Manifest


def whatif(
    filename: Annotated[list[Path], typer.Option("--filename", "-f", help="Manifests of pods and what they need.")],
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=1000, help="How often each pod is submitted.")] = 1,
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="Ask about the running cluster; this is the default.")
    ] = False,
    state: Annotated[Path | None, typer.Option("--state", help="Ask about a dump instead of a cluster.")] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of pods that name none.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Say who would be evicted where if pods were submitted, and what other nodes would cost. Changes nothing."""
    from earmark.cli.dump import dump_of
    from earmark.cli.errors import BadInput
    from earmark.cli.forecast import as_data, lines
    from earmark.cli.output import Terminal
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings
    from earmark.simulation import whatif as core
    from earmark.simulation.errors import ScenarioError

    if from_cluster and state is not None:
        raise typer.BadParameter("--from-cluster and --state exclude each other", param_hint="--state")
    manifests = core.replicas(_read(filename, namespace), replicas)
    # What services log is not for here.
    logging.getLogger("earmark").addHandler(logging.NullHandler())
    try:
        dump = _of_file(state) if state is not None else run(dump_of(runtime_settings(config, state_dir)))
        answer = core.what_if(dump, manifests)
    except ScenarioError as error:
        raise BadInput(str(error)) from error
    if as_json:
        print(json.dumps(as_data(answer)))
        return
    terminal = Terminal()
    for line in lines(answer):
        terminal.print_indented(line)


def _of_file(path: Path) -> Dump:
    from earmark.simulation.dumping import read_dump

    return read_dump(path, datetime.now(UTC))


def _read(paths: list[Path], namespace: str) -> tuple[Manifest, ...]:
    from earmark.cli.apply import read_manifests
    from earmark.cli.errors import BadInput
    from earmark.kube.resources import BY_KIND
    from earmark.simulation.scenario import Manifest, Source

    found = []
    for item in read_manifests(paths):
        metadata = {**item.data["metadata"]}
        name = item.name or f"{metadata.pop('generateName', 'pod-')}what-if"
        metadata["name"] = name
        where = (item.namespace or namespace) if BY_KIND[item.kind].namespaced else ""
        if where:
            metadata["namespace"] = where
        data = {**item.data, "metadata": metadata}
        found.append(Manifest(item.kind, name, where, data, Source(item.source, item.line)))
    if not any(item.kind == "Pod" for item in found):
        raise BadInput(f"{', '.join(map(str, paths))}: no Pod to ask about")
    return tuple(found)
