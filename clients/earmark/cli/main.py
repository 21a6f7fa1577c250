"""The commands, their options, and the one place where errors become lines and exit statuses.

Only typer is imported here; a command imports what it needs when it runs.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from earmark.cli.compare import compare
from earmark.cli.dump import dump
from earmark.cli.errors import CommandError
from earmark.cli.explain import explain
from earmark.cli.timeline import timeline
from earmark.cli.trace import trace
from earmark.cli.web import web
from earmark.cli.whatif import whatif

app = typer.Typer(
    name="earmark",
    help="Preempts pods for the devices they hold, and holds the freed devices for the preemptor (KEP-5690).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

db = typer.Typer(help="Look after the embedded API's store.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(db, name="db")

Config = Annotated[
    Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings of the services.")
]
StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", help="Folder of sockets, kubeconfig and data (default: .earmark or the config's)."),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


class Listed(StrEnum):
    """What `get` can list."""

    nodes = "nodes"
    pods = "pods"
    claims = "claims"
    slices = "slices"
    nominations = "nominations"
    queue = "queue"


@app.command()
def up(
    logs: Annotated[bool, typer.Option("--logs", help="Print what the services log, too.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything, logs too, as one JSON object a line.")
    ] = False,
    with_page: Annotated[bool, typer.Option("--page/--no-page", help="Serve the page, too (see `web`).")] = True,
    config: Config = None,
    state_dir: StateDir = None,
) -> None:
    """Start all services on the embedded API and stay up until Ctrl-C."""
    from earmark.cli.announcing import ForMachines, ForPeople
    from earmark.cli.settings import runtime_settings
    from earmark.cli.up import up as start

    announcer = ForMachines() if json else ForPeople(logs=logs)
    raise typer.Exit(start(runtime_settings(config, state_dir), config, announcer, with_page=with_page))


@app.command()
def apply(
    filename: Annotated[list[Path], typer.Option("--filename", "-f", help="Manifest file or folder; - is stdin.")],
    namespace: Namespace = "default",
    config: Config = None,
    state_dir: StateDir = None,
) -> None:
    """Create or change objects from manifests."""
    from earmark.cli.apply import apply_files
    from earmark.cli.settings import runtime_settings

    apply_files(runtime_settings(config, state_dir), filename, namespace)


@app.command()
def get(
    what: Annotated[Listed, typer.Argument(metavar="|".join(Listed), help="What to list.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace (default: all).")] = "",
    as_json: Json = False,
    config: Config = None,
    state_dir: StateDir = None,
) -> None:
    """List what the cluster has: nodes, pods, claims, slices, nominations, queue."""
    from earmark.cli.get import show
    from earmark.cli.settings import runtime_settings

    show(runtime_settings(config, state_dir), what.value, namespace, as_json)


@app.command()
def delete(
    kind: Annotated[str, typer.Argument(help="Kind, plural or short name: pod, nodes, resourceclaim ...")],
    name: Annotated[str, typer.Argument(help="Name of the object.")],
    namespace: Namespace = "default",
    config: Config = None,
    state_dir: StateDir = None,
) -> None:
    """Delete one object."""
    from earmark.cli.apply import delete_object
    from earmark.cli.settings import runtime_settings

    delete_object(runtime_settings(config, state_dir), kind, name, namespace)


@app.command()
def simulate(
    files: Annotated[list[Path], typer.Argument(help="Scenario files.")],
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything that is random.")] = 1,
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only failures.")] = False,
) -> None:
    """Play scenario files in one process and in virtual time."""
    from earmark.simulation.cli import simulate as play

    raise typer.Exit(play(files, seed=seed, as_json=as_json, quiet=quiet))


app.command()(compare)
app.command()(explain)
app.command()(web)
app.command()(timeline)
app.command()(trace)
app.command()(whatif)
app.command()(dump)


@app.command()
def allocate(
    file: Annotated[Path, typer.Argument(metavar="[FILE|-]", help="JSON lines; - is stdin.")] = Path("-"),
    fixed_share_ids: Annotated[bool, typer.Option("--fixed-share-ids", help="Write one fixed shareID.")] = False,
) -> None:
    """Answer allocation problems: JSON lines in, JSON lines out."""
    from earmark.cli.tools import allocate as answer

    raise typer.Exit(answer(file, fixed_share_ids))


@app.command()
def cel(
    expression: Annotated[str, typer.Argument(metavar="EXPRESSION|-", help="Selector; - reads JSON lines.")],
    slices: Annotated[list[Path] | None, typer.Option("--slices", help="Manifests with ResourceSlices.")] = None,
) -> None:
    """Say which devices a selector matches, and why it does not match the others."""
    from earmark.cli.tools import answer_lines, explain_selector

    if expression == "-":
        raise typer.Exit(answer_lines())
    if not slices:
        raise typer.BadParameter("an expression needs devices: --slices FILE", param_hint="--slices")
    raise typer.Exit(explain_selector(expression, slices))


@app.command()
def demo(
    as_json: Json = False,
    config: Config = None,
    manifests: Annotated[
        Path | None,
        typer.Option("--manifests", help="Folder with the demo's manifests (default: examples/gpu-cluster)."),
    ] = None,
) -> None:
    """Show a pod preempted for its GPU, and the GPU held for the preemptor."""
    from earmark.cli.demo import demo as show

    raise typer.Exit(show(config, manifests, as_json))


@db.command("check")
def db_check(
    store: Annotated[
        Path | None, typer.Argument(metavar="[STORE]", help="File (default: that of the settings).")
    ] = None,
    config: Config = None,
    state_dir: StateDir = None,
) -> None:
    """Look for damage in a store that no API uses; exit status 1 if there is any."""
    from earmark.cli.db import check_store
    from earmark.cli.settings import runtime_settings

    raise typer.Exit(check_store(runtime_settings(config, state_dir), config, store))


@app.command()
def version() -> None:
    """Print the version."""
    from importlib.metadata import version as installed

    print(f"earmark {installed('earmark')} (Python {sys.version.split()[0]})")


def main() -> NoReturn:
    """Run the command line. Exit status: 0, 1 (it did not hold or could not be done), 2 (bad input)."""
    try:
        # typer ends the process itself, with 2 for a wrong command line and 130 after Ctrl-C.
        app(prog_name="earmark")
    except CommandError as error:
        sys.exit(_fail(error))
    except BrokenPipeError:
        # The reader has seen enough. Nothing more is to be written, at exit either.
        sys.stdout = None
    sys.exit(0)


def _fail(error: CommandError) -> int:
    print(f"earmark: {error}", file=sys.stderr)
    return error.status


if __name__ == "__main__":
    main()
