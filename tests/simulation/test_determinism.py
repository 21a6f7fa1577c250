"""The same file with the same seed gives the same log, byte for byte, in every process."""

import json
import os
import subprocess
import sys

import pytest

from support.simulation_player import OWN

FILES = [str(OWN / name) for name in ("window.yaml", "shared.yaml", "parts.yaml", "refusals.yaml")]


def run(hash_seed: str, seed: int) -> bytes:
    code = (
        "import sys; from pathlib import Path; from earmark.simulation.cli import simulate; "
        f"sys.exit(simulate([Path(f) for f in sys.argv[1:]], seed={seed}, as_json=True, quiet=False))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", code, *FILES], env=environment, capture_output=True, check=False, timeout=100
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout


def test_two_processes_write_the_same_bytes() -> None:
    first = run("1", 7)
    assert first == run("4242", 7)
    assert all(json.loads(line)["log"] for line in first.splitlines())


@pytest.mark.parametrize("seed", [1, 2])
def test_the_seed_is_reported(seed: int) -> None:
    assert {json.loads(line)["seed"] for line in run("0", seed).splitlines()} == {seed}
