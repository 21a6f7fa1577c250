"""`earmark db check`."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from earmark.apiserver.sqlite import SqliteStore
from support.apiserver_registry import Cluster


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "earmark.cli.main", "db", "check", *words], capture_output=True, text=True, check=False
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "apiserver" / "store.db"
    made = SqliteStore(path)
    Cluster(made)
    asyncio.run(made.close())
    return path


def test_a_sound_store(store: Path, tmp_path: Path) -> None:
    done = run("--state-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, f"{store}: sound: 4 objects, revision 4, schema version 1\n")
    assert run(str(store)).returncode == 0


def test_a_damaged_store(store: Path) -> None:
    with sqlite3.connect(store) as database:
        database.execute("UPDATE objects SET body = x'7b7d' WHERE name = 'default'")
    done = run(str(store))
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "Namespace default: its text is damaged: 'metadata'", f"{store}: 1 problems",
    ]  # fmt: skip


def test_a_store_in_use_and_one_that_is_not_there(store: Path, tmp_path: Path) -> None:
    owner = SqliteStore(store)
    used = run(str(store))
    assert (used.returncode, used.stdout) == (1, "")
    assert "another process owns this store" in used.stderr
    asyncio.run(owner.close())
    missing = run(str(tmp_path / "nope"))
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
