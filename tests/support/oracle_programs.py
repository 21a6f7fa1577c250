"""Kubernetes' own code as programs to compare with: built once from ../shared/oracle, where that and Go are there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ORACLE = ROOT.parent / "shared" / "oracle"
BUILD = ROOT / "build" / "oracle"


def missing() -> str:
    """Return why nothing can be compared here, "" if it can."""
    if not ORACLE.is_dir():
        return f"{os.path.relpath(ORACLE, ROOT)} is not there"
    if shutil.which("go") is None:
        return "Go is not installed"
    return ""


def built(name: str) -> Path:
    """Return a program (allocate, cel, fleet), built if its source has changed. Raises CalledProcessError."""
    source, target = ORACLE / name, BUILD / name
    program = target / "program"
    newest = max(path.stat().st_mtime for path in source.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        print(f"building {name} ...", file=sys.stderr)
        shutil.copytree(source, target, dirs_exist_ok=True)
        subprocess.run(["nice", "go", "build", "-o", "program", "."], cwd=target, check=True)
    return program
