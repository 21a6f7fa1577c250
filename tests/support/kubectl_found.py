"""The kubectls that tests use: those that EARMARK_KUBECTL names, that `make kubectl` has built, or that PATH has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ABSENT = "no kubectl: EARMARK_KUBECTL names none, `make kubectl` has built none, and PATH has none"


@dataclass(frozen=True)
class Kubectl:
    """A kubectl and its name in test ids."""

    path: Path
    name: str


def kubectls() -> list[Kubectl]:
    """Return all that are there, each once; the one of PATH only if there is no other."""
    named = [Path(text) for text in os.environ.get("EARMARK_KUBECTL", "").split(os.pathsep) if text]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "earmark" / "bin"
    found = named or sorted(cache.glob("kubectl-*"))
    if not found and (of_path := shutil.which("kubectl")):
        found = [Path(of_path)]
    return [Kubectl(path, path.name) for path in found if os.access(path, os.X_OK)]


def client_version(kubectl: Path) -> str:
    """Return the version that a kubectl says it has, such as v1.37.2."""
    done = subprocess.run(
        [str(kubectl), "version", "--client", "-o", "json"], capture_output=True, text=True, check=True, timeout=60
    )  # fmt: skip
    version: str = json.loads(done.stdout)["clientVersion"]["gitVersion"]
    return version
