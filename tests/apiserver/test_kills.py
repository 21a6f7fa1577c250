"""kill -9 under write load through HTTPS: what clients were told is there, and nothing else. `make soak-store`: 100."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.apiserver_kills import KillTest, Known, differences
from support.apiserver_process import Connection, embedded


def test_kill_9_loses_nothing_that_a_client_was_told(tmp_path: Path) -> None:
    test = KillTest(tmp_path, seed=7)
    try:
        for _ in range(4):
            before = test.acknowledged
            assert test.round() == []
            assert test.acknowledged > before
    finally:
        test.close()


def lease(step: str, version: int = 5) -> dict[str, object]:
    return {"metadata": {"uid": "u", "labels": {"step": step}, "resourceVersion": str(version)},
            "spec": {"holderIdentity": step}}  # fmt: skip


def test_the_comparison_sees_lost_half_and_invented_writes() -> None:
    told = {"uid": "u", "step": "1", "holder": "1"}
    assert differences("a", Known(told, 5), lease("1")) == []
    assert differences("a", Known(told, 5), lease("1", 4)) != []
    assert differences("a", Known(told, 5), None) != []
    assert differences("a", Known(None), lease("1")) != []
    assert differences("a", Known(told, 5, [None]), None) == []
    assert differences("a", Known(told, 5, [{"step": "2", "holder": "2"}]), lease("2", 6)) == []
    half = lease("2", 6)
    half["spec"] = {"holderIdentity": "1"}
    assert differences("a", Known(told, 5, [{"step": "2", "holder": "2"}]), half) != []


def test_a_second_process_on_the_same_store_ends_with_a_clear_line(tmp_path: Path) -> None:
    with embedded(tmp_path) as (first, address):
        assert first.process is not None
        # Another address of its own, so that the store is what they have in common.
        run_dir = tmp_path / "second.sock"
        environment = {**os.environ, "EARMARK_RUNTIME_STATE_DIR": str(tmp_path),
                       "EARMARK_RUNTIME_ADDRESSES": f'{{apiserver = "unix:{run_dir}"}}'}  # fmt: skip
        second = subprocess.run(
            [sys.executable, "-m", "earmark.apiserver"], env=environment, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        store = tmp_path / "apiserver" / "store.db"
        owner = f"another process owns this store (process id {first.process.pid})"
        assert (second.returncode, second.stderr) == (2, f"earmark.apiserver: {store}: {owner}\n")
        # The first one is as it was.
        assert Connection(address).ask("GET", "/readyz")[0] == 200


def test_a_restart_keeps_address_token_and_objects(tmp_path: Path) -> None:
    with embedded(tmp_path) as (api, address):
        body = b'{"metadata":{"name":"kept"}}'
        version = json.loads(Connection(address).ask("POST", "/api/v1/namespaces", body)[1])["metadata"][
            "resourceVersion"
        ]
        assert api.stop() == 0
        assert api.start() == address
        kept = json.loads(Connection(address).ask("GET", "/api/v1/namespaces/kept")[1])
        assert kept["metadata"]["resourceVersion"] == version
        # What happened before the restart is forgotten: such a watch has to list again.
        watch = Connection(address).ask("GET", f"/api/v1/namespaces?watch=1&resourceVersion={int(version) - 1}")
        assert (watch[0], json.loads(watch[1])["reason"]) == (410, "Expired")
        assert os.stat(api.kubeconfig).st_mode & 0o777 == 0o600
