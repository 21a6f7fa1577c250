"""Writers that remember what they were told, and the comparison with what the API has after a kill.

Each writer has names of its own, so what an object must be is known exactly: what its last acknowledged write made it,
or what the one write in flight would have made it. Anything else is a lost, a half or an invented write.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from earmark.apiserver import sqlite
from support.apiserver_process import Address, Connection, EmbeddedApi

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
PATCH = "application/merge-patch+json"
WRITERS = 4
NAMES = 25

State = dict[str, Any] | None


@dataclass
class Known:
    """What a writer knows of one object: its content, None if it is not there."""

    state: State = None
    version: int = 0
    # What the write in flight makes of it; only while one is.
    in_flight: list[State] = field(default_factory=list)


def content(lease: dict[str, Any]) -> dict[str, Any]:
    """Return what writers write of a lease."""
    meta = lease["metadata"]
    return {"uid": meta["uid"], "step": meta["labels"]["step"], "holder": lease["spec"]["holderIdentity"]}


class Writer:
    """Creates, changes and deletes leases until the connection breaks."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self._number = number
        self._rng = rng
        self._step = 0
        self.known: dict[str, Known] = {}
        self.acknowledged = 0
        self.failure = ""

    def run(self, address: Address) -> None:
        """Write until the server is gone."""
        connection = Connection(address)
        try:
            while not self.failure:
                self._write(connection)
        except (OSError, http.client.HTTPException):
            # Killed: what is in flight stays noted.
            pass
        finally:
            connection.close()

    def _write(self, connection: Connection) -> None:
        name = f"w{self._number}-{self._rng.randrange(NAMES)}"
        known = self.known.setdefault(name, Known())
        self._step += 1
        # Both places say the same, in a text long enough to span pages.
        step = str(self._step)
        holder = f"{step}-" * (1 + self._rng.randrange(400))
        body = {"metadata": {"name": name, "labels": {"step": step}}, "spec": {"holderIdentity": holder}}
        wanted: State = {"step": step, "holder": holder}
        if known.state is None:
            method, path, media = "POST", LEASES, "application/json"
        elif self._rng.random() < 0.2:
            method, path, media, wanted = "DELETE", f"{LEASES}/{name}", "application/json", None
        else:
            method, path, media = "PATCH", f"{LEASES}/{name}", PATCH
        known.in_flight = [wanted]
        status, answer = connection.ask(method, path, b"" if wanted is None else json.dumps(body).encode(), media)
        if status not in (200, 201):
            self.failure = f"{method} {path}: {status} {answer[:300]!r}"
            return
        self.acknowledged += 1
        if wanted is None:
            known.state = None
        else:
            lease = json.loads(answer)
            known.state, known.version = content(lease), int(lease["metadata"]["resourceVersion"])
        known.in_flight = []


class Watcher:
    """Remembers the newest version that it was shown."""

    def __init__(self) -> None:
        self.newest = 0

    def run(self, address: Address) -> None:
        """Watch until the server is gone."""
        try:
            for event in Connection(address).watch(f"{LEASES}?watch=true&allowWatchBookmarks=true"):
                self.newest = max(self.newest, int(event["object"]["metadata"]["resourceVersion"]))
        except (OSError, ValueError, http.client.HTTPException):
            # Killed, perhaps in the middle of a line.
            pass


class KillTest:
    """Rounds of writing, killing, starting again and comparing."""

    def __init__(self, state: Path, seed: int) -> None:
        self._rng = random.Random(seed)
        self._api = EmbeddedApi(state)
        self._writers = [Writer(number, random.Random(f"{seed}-{number}")) for number in range(WRITERS)]
        self._address = self._api.start()

    @property
    def acknowledged(self) -> int:
        """How many writes were acknowledged so far."""
        return sum(writer.acknowledged for writer in self._writers)

    def round(self) -> list[str]:
        """Do one round; return what is wrong afterwards, one line each."""
        watcher = Watcher()
        threads = [threading.Thread(target=one.run, args=(self._address,)) for one in (*self._writers, watcher)]
        before, latest = self.acknowledged, time.monotonic() + 20
        for thread in threads:
            thread.start()
        # A busy machine may take its time for the first write; a round without one shows nothing.
        while self.acknowledged == before and time.monotonic() < latest:
            time.sleep(0.01)
        time.sleep(0.1 + self._rng.random() * 0.5)
        self._api.kill()
        for thread in threads:
            thread.join()
        problems = [writer.failure for writer in self._writers if writer.failure]
        problems += sqlite.check(self._api.state / "apiserver" / "store.db")
        self._address = self._api.start()
        return problems + self._compare(watcher)

    def _compare(self, watcher: Watcher) -> list[str]:
        listed = json.loads(Connection(self._address).ask("GET", LEASES)[1])
        found = {lease["metadata"]["name"]: lease for lease in listed["items"]}
        revision = int(listed["metadata"]["resourceVersion"])
        problems = []
        if watcher.newest > revision:
            problems.append(f"a watch was shown version {watcher.newest}, and the store is at {revision}")
        for writer in self._writers:
            for name, known in writer.known.items():
                lease = found.pop(name, None)
                problems += differences(name, known, lease)
                # The next round goes on from what there is.
                known.state, known.in_flight = (None if lease is None else content(lease)), []
                known.version = 0 if lease is None else int(lease["metadata"]["resourceVersion"])
        return problems + [f"{name}: nobody has made it" for name in found]

    def close(self) -> None:
        """End the API."""
        if self._api.process is not None:
            self._api.kill()


def differences(name: str, known: Known, lease: dict[str, Any] | None) -> list[str]:
    """Return what is wrong with an object, given what its writer knows."""
    actual = None if lease is None else content(lease)
    if actual == known.state:
        version = 0 if lease is None else int(lease["metadata"]["resourceVersion"])
        if lease is not None and version != known.version and not known.in_flight:
            return [f"{name}: version {version}, and its writer was told {known.version}"]
        return []
    for wanted in known.in_flight:
        if wanted is None and actual is None:
            return []
        if wanted is not None and actual is not None and {**wanted, "uid": actual["uid"]} == actual:
            return []
    return [f"{name}: is {_short(actual)}, was told {_short(known.state)}, in flight {_short(known.in_flight)}"]


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 120 else f"{text[:120]}..."
