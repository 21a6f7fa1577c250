"""The durable store: what was acknowledged is there after whatever happened, and one process owns it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from earmark.apiserver import sqlite
from earmark.apiserver.sqlite import SqliteStore
from earmark.apiserver.storage import Change, StoreError
from earmark.kube.resources import BY_KIND
from support.apiserver_registry import Cluster, pod

LEASE = BY_KIND["Lease"]


def change(revision: int, name: str, body: bytes | None = b"{}") -> Change:
    return Change("Lease", "default", name, revision, body)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def test_a_restart_finds_everything_as_it_was(path: Path) -> None:
    store = SqliteStore(path)
    cluster = Cluster(store)
    kept = cluster.create(pod("kept"))
    cluster.create(pod("gone"))
    cluster.delete("Pod", "gone")
    revision = cluster.registry.revision
    await cluster.registry.durable(revision)
    await store.close()
    again = SqliteStore(path)
    cluster = Cluster(again)
    assert cluster.registry.revision == revision
    assert cluster.get("Pod", "kept") == kept
    assert not cluster.exists("Pod", "gone")
    await again.close()


async def test_watches_see_a_write_only_when_it_is_durable(path: Path) -> None:
    store = SqliteStore(path)
    cluster = Cluster(store)
    await cluster.registry.durable(cluster.registry.revision)
    watch = cluster.registry.watch(BY_KIND["Pod"], resource_version=str(cluster.registry.revision))
    revision = int(cluster.create(pod("a"))["metadata"]["resourceVersion"])
    assert watch.take() == []
    assert cluster.registry.watch(BY_KIND["Pod"]).take() == []
    await cluster.registry.durable(revision)
    assert [event.revision for event in watch.take()] == [revision]
    await store.close()


async def test_writes_that_wait_together_are_committed_together(path: Path) -> None:
    store = SqliteStore(path)
    store.load()
    told: list[int] = []
    store.on_durable(told.append)
    for revision in range(1, 101):
        store.append(change(revision, f"l{revision % 7}"))
    await store.durable(100)
    assert told == [100]
    await store.close()


def test_a_second_process_gets_a_clear_error(path: Path) -> None:
    store = SqliteStore(path)
    code = (
        f"from pathlib import Path; from earmark.apiserver.sqlite import SqliteStore; SqliteStore(Path({str(path)!r}))"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"another process owns this store (process id {os.getpid()})" in other.stderr
    asyncio.run(store.close())
    asyncio.run(SqliteStore(path).close())


def test_other_files_are_not_stores(path: Path) -> None:
    path.write_bytes(b"no database, but long enough to be looked at as one" * 100)
    with pytest.raises(StoreError, match="cannot be used as a store"):
        SqliteStore(path)
    path.unlink()
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="another database"):
        SqliteStore(path)


async def test_a_newer_store_is_left_alone(path: Path) -> None:
    await SqliteStore(path).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = 99 WHERE key = 'schema_version'")
    with pytest.raises(StoreError, match="schema version 99, and this earmark knows"):
        SqliteStore(path)


async def test_an_older_store_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await SqliteStore(path).close()
    monkeypatch.setattr(sqlite, "SCHEMA_VERSION", 2)
    with pytest.raises(StoreError, match="no way from schema version 1 to 2"):
        SqliteStore(path)
    monkeypatch.setattr(sqlite, "MIGRATIONS", {1: "CREATE TABLE more (x)"})
    await SqliteStore(path).close()
    with sqlite3.connect(path) as database:
        assert sqlite.read_version(database) == 2
        assert database.execute("SELECT count(*) FROM more").fetchone() == (0,)


async def test_a_failed_commit_is_told_to_all_who_wait(path: Path) -> None:
    store = SqliteStore(path)
    store.load()
    failures: list[StoreError] = []
    store.on_failure(failures.append)
    store._database.execute("DROP TABLE objects")
    store.append(change(1, "a"))
    store.append(change(2, "b"))
    for outcome in await asyncio.gather(store.durable(1), store.durable(2), return_exceptions=True):
        assert isinstance(outcome, StoreError)
    assert len(failures) == 1
    with pytest.raises(StoreError):
        store.append(change(3, "c"))
    await store.close()


async def test_a_commit_that_cannot_begin_is_a_failed_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(path)
    store.load()
    failures: list[StoreError] = []
    store.on_failure(failures.append)

    def refused(*work: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(store._thread, "submit", refused)
        store.append(change(1, "a"))
        async with asyncio.timeout(10):
            with pytest.raises(StoreError, match="can't start new thread"):
                await store.durable(1)
    # What comes later must not count as kept: the store would then lack what was before it.
    with pytest.raises(StoreError):
        store.append(change(2, "b"))
    assert len(failures) == 1
    await store.close()


async def test_a_check_finds_damage(path: Path) -> None:
    store = SqliteStore(path)
    cluster = Cluster(store)
    cluster.create(pod("a"))
    cluster.create(pod("b"))
    await cluster.registry.durable(cluster.registry.revision)
    await store.close()
    assert sqlite.check(path) == []
    with sqlite3.connect(path) as database:
        database.execute("UPDATE objects SET body = x'7b7d' WHERE name = 'a'")
        database.execute("UPDATE objects SET name = 'c', revision = 9999 WHERE name = 'b'")
    problems = sqlite.check(path)
    assert any(line.startswith("Pod default/a: its text is damaged") for line in problems)
    assert "Pod default/c: its text belongs to another object or version" in problems
    assert any(line.startswith("Pod default/c: its revision 9999 is newer") for line in problems)


@pytest.mark.parametrize("round_", range(3))
def test_kill_9_loses_no_acknowledged_write(path: Path, repository: Path, round_: int) -> None:
    there: dict[str, int] = {}
    gone: dict[str, int] = {}
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, str(repository / "tests" / "support" / "apiserver_writer.py"), str(path)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        # So many writes, not so much time: what a busy machine does in a moment is anybody's guess.
        lines = [process.stdout.readline() for _ in range(20 + 150 * round_)]
        process.kill()
        lines += process.stdout.readlines()
        process.wait()
        # The last line may be cut: what was not told in full was not acknowledged.
        for line in (line for line in lines if line.endswith("\n")):
            sign, name, written_at = line.split()
            (there if sign == "+" else gone)[name] = int(written_at)
    assert len(there) > 10
    store = SqliteStore(path)
    revision, records = store.load()
    stored = {record.name: record for record in records}
    os.close(store._lock)
    assert revision >= max([*there.values(), *gone.values()])
    for name, written in there.items():
        if name in gone:
            assert name not in stored
        elif name in stored:
            assert stored[name].revision == written
            assert msgspec.json.decode(stored[name].body)["metadata"]["name"] == name
        else:
            # Its deletion was under way and is durable, though nobody was told any more.
            assert int(name.rsplit("-", 1)[1]) % 3 == 1
    assert sqlite.check(path) == []


def test_a_registry_outside_an_event_loop_writes_at_once(path: Path) -> None:
    store = SqliteStore(path)
    Cluster(store)
    assert store.durable_revision == 4
    os.close(store._lock)


def test_the_files_stay_small_however_often_objects_change(path: Path) -> None:
    store = SqliteStore(path, synchronous="NORMAL")
    store.load()

    async def write() -> None:
        for revision in range(1, 20_001):
            store.append(change(revision, f"l{revision % 20}", b"x" * 2000 if revision % 40 else None))
            if revision % 10 == 0:
                await store.durable(revision)

    asyncio.run(write())
    # 40 MB have been written; the log is worked in at 16 MiB, and the database holds 20 objects.
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size < 20 * 2**20
    assert path.stat().st_size < 2**20
    asyncio.run(store.close())
    assert not log.exists()


def test_a_check_changes_nothing_and_reads_what_a_killed_process_left(path: Path) -> None:
    store = SqliteStore(path)
    Cluster(store)
    before = {
        file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith(("-shm", ".lock"))
    }
    assert len(before) == 2
    with pytest.raises(StoreError, match="another process owns this store"):
        sqlite.check(path)
    # As after a kill: the lock is gone, the log is there.
    os.close(store._lock)
    assert sqlite.check(path) == []
    assert sqlite.summary(path) == "4 objects, revision 4, schema version 1"
    assert {name: (path.parent / name).read_bytes() for name in before} == before


def test_a_check_of_what_is_no_store(path: Path) -> None:
    with pytest.raises(StoreError, match="no such store"):
        sqlite.check(path)
    path.write_bytes(b"no database, but long enough to be looked at as one" * 100)
    assert sqlite.check(path) == ["SQLite: file is not a database"]
