"""The durable store: one SQLite file in WAL mode, with one transaction for all writes that wait at a time.

A commit runs in a thread of its own, so that the event loop goes on taking writes for the next one. A change is durable
(also against a power cut, with synchronous=FULL) before anybody is told of it. One process owns a store.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal

import msgspec

from earmark.apiserver.storage import Change, Record, StoreError
from earmark.kube.resources import BY_KIND

SCHEMA_VERSION: Final = 1

# How long the write-ahead log grows until it is worked into the database: 16 MiB. Each time costs a write some
# milliseconds, so more seldom than SQLite would by itself.
CHECKPOINT_PAGES: Final = 4000

_CREATE = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE objects (
    kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema_version', 1), ('revision', 0);
"""

# From each older schema version to the next one: statements, run in one transaction with the new version.
MIGRATIONS: dict[int, str] = {}


class SqliteStore:
    """Keeps changes in a file."""

    def __init__(self, path: Path, *, synchronous: Literal["FULL", "NORMAL"] = "FULL") -> None:
        """Open or create the store.

        Raises StoreError if another process owns it, if it is no store of earmark, or of a newer version.
        """
        self._path = path
        self._listeners: list[Callable[[int], None]] = []
        self._pending: list[Change] = []
        self._durable = 0
        self._commit: asyncio.Task[None] | None = None
        self._committed: asyncio.Future[None] | None = None
        self._failure: StoreError | None = None
        self._on_failure: Callable[[StoreError], None] = lambda error: None
        self._lock = _own(path)
        try:
            self._database = _open(path, synchronous)
        except StoreError:
            os.close(self._lock)
            raise
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="apiserver-store")

    @property
    def durable_revision(self) -> int:
        """The newest durable revision."""
        return self._durable

    def load(self) -> tuple[int, Iterable[Record]]:
        """Return the last revision and all objects."""
        row = self._database.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()
        self._durable = int(row[0])
        rows = self._database.execute("SELECT kind, namespace, name, revision, body FROM objects")
        return self._durable, (Record(*row) for row in rows)

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Register a listener; it is called in the event loop."""
        self._listeners.append(listener)

    def on_failure(self, listener: Callable[[StoreError], None]) -> None:
        """Call `listener` if a commit fails.

        What is in memory is then newer than what is kept, so the process must end.
        """
        self._on_failure = listener

    def append(self, change: Change) -> None:
        """Take a change for the next commit. Outside an event loop it is committed at once."""
        if self._failure is not None:
            raise self._failure
        self._pending.append(change)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            batch, self._pending = self._pending, []
            self._write(batch)
            self._tell(batch[-1].revision)
            return
        if self._commit is None:
            self._commit = loop.create_task(self._run_commits(), name="apiserver commit")

    async def durable(self, revision: int) -> None:
        """Return once everything up to a revision is durable.

        Raises StoreError if the store has failed: nobody may be told that such a change was made.
        """
        while self._durable < revision:
            if self._failure is not None:
                raise self._failure
            if self._committed is None:
                self._committed = asyncio.get_running_loop().create_future()
            # Shielded, because all waiters share it and one of them may be cancelled.
            await asyncio.shield(self._committed)

    async def close(self) -> None:
        """Finish what is pending and give the store up."""
        if self._commit is not None:
            await self._commit
        self._thread.shutdown(wait=True)
        self._database.close()
        os.close(self._lock)

    async def _run_commits(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                batch, self._pending = self._pending, []
                try:
                    await loop.run_in_executor(self._thread, self._write, batch)
                except Exception as error:  # noqa: BLE001 - whatever it was, nothing later may count as kept without it
                    self._failure = StoreError(f"{self._path}: a commit failed: {error}")
                    self._wake()
                    self._on_failure(self._failure)
                    return
                self._tell(batch[-1].revision)
                self._wake()
        finally:
            self._commit = None

    def _tell(self, revision: int) -> None:
        self._durable = revision
        for listener in self._listeners:
            listener(revision)

    def _wake(self) -> None:
        committed, self._committed = self._committed, None
        if committed is not None and not committed.done():
            committed.set_result(None)

    def _write(self, batch: list[Change]) -> None:
        """Commit changes in one transaction; of several changes of one object only the last is written."""
        last: dict[tuple[str, str, str], Change] = {}
        for change in batch:
            last[(change.kind, change.namespace, change.name)] = change
        put = [
            (change.kind, change.namespace, change.name, change.revision, change.body)
            for change in last.values()
            if change.body is not None
        ]
        gone = [key for key, change in last.items() if change.body is None]
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            if put:
                database.executemany(
                    "INSERT INTO objects VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, namespace, name) "
                    "DO UPDATE SET revision = excluded.revision, body = excluded.body",
                    put,
                )
            if gone:
                database.executemany("DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", gone)
            database.execute("UPDATE meta SET value = ? WHERE key = 'revision'", (batch[-1].revision,))
            database.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                # The first error is the one that tells; after some of them SQLite has rolled back by itself.
                database.execute("ROLLBACK")
            raise


def _own(path: Path) -> int:
    """Lock the store for this process, and write down who owns it."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreError(f"{path}: another process owns this store (process id {owner})") from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _open(path: Path, synchronous: str) -> sqlite3.Connection:
    try:
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        os.chmod(path, 0o600)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {synchronous}")
        database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        database.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * 4096}")
        _migrate(database, path)
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be used as a store: {error}") from error
    return database


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        database.executescript(f"BEGIN IMMEDIATE;{_CREATE}COMMIT;")
        return
    if "meta" not in tables or "objects" not in tables:
        raise StoreError(f"{path}: this is another database, not a store of earmark")
    version = read_version(database)
    _check_version(version, path)
    while version < SCHEMA_VERSION:
        step = MIGRATIONS.get(version)
        if step is None:
            raise StoreError(f"{path}: there is no way from schema version {version} to {SCHEMA_VERSION}")
        version += 1
        database.executescript(
            f"BEGIN IMMEDIATE;{step};UPDATE meta SET value = {version} WHERE key = 'schema_version';COMMIT;"
        )


def _check_version(version: int, path: Path) -> None:
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path}: the store has schema version {version}, and this earmark knows {SCHEMA_VERSION}: use a newer one"
        )


def read_version(database: sqlite3.Connection) -> int:
    """Return the schema version of an open store."""
    row = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    return 0 if row is None else int(row[0])


def summary(path: Path) -> str:
    """Return what a sound store holds, for people: objects, revision, schema version.

    Raises StoreError if the store cannot be opened.
    """
    lock = _own(path)
    try:
        with contextlib.closing(_read_only(path)) as database:
            count = database.execute("SELECT count(*) FROM objects").fetchone()[0]
            return f"{count} objects, revision {_revision(database)}, schema version {read_version(database)}"
    except sqlite3.Error as error:
        raise StoreError(f"{path}: cannot be used as a store: {error}") from error
    finally:
        os.close(lock)


def check(path: Path) -> list[str]:
    """Look for damage in a store that nobody uses; return what is wrong, one line each. Nothing is changed.

    Raises StoreError if the store is in use, is none of earmark, or of a newer version.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such store")
    lock = _own(path)
    try:
        with contextlib.closing(_read_only(path)) as database:
            return _problems(database, path)
    except sqlite3.DatabaseError as error:
        return [f"SQLite: {error}"]
    finally:
        os.close(lock)


def _read_only(path: Path) -> sqlite3.Connection:
    # A log that a killed process has left behind is read with it.
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _revision(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT value FROM meta WHERE key = 'revision'").fetchone()[0])


def _problems(database: sqlite3.Connection, path: Path) -> list[str]:
    problems = [f"SQLite: {row[0]}" for row in database.execute("PRAGMA integrity_check") if row[0] != "ok"]
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"meta", "objects"} <= tables:
        raise StoreError(f"{path}: this is another database, not a store of earmark")
    _check_version(read_version(database), path)
    revision = _revision(database)
    for kind, namespace, name, version, body in database.execute(
        "SELECT kind, namespace, name, revision, body FROM objects"
    ):
        where = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        if kind not in BY_KIND:
            problems.append(f"{where}: this kind is not served")
        if version > revision:
            problems.append(f"{where}: its revision {version} is newer than the store's {revision}")
        try:
            meta = msgspec.json.decode(body)["metadata"]
            stored = (meta["name"], meta.get("namespace", ""), meta["resourceVersion"])
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            problems.append(f"{where}: its text is damaged: {error}")
            continue
        if stored != (name, namespace, str(version)):
            problems.append(f"{where}: its text belongs to another object or version")
    return problems
