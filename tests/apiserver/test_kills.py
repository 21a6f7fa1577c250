"""kill -9 under write load through HTTPS: what clients were told is there, and nothing else. `make soak-store`: 100."""

from __future__ import annotations

from pathlib import Path

from support.apiserver_kills import KillTest, Known, differences


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
