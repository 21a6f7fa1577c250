"""Every recorded problem gets upstream's answer: the same results, the same kind of error."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from earmark.dynamicresources.allocator.jsonlines import allocate_line
from earmark.dynamicresources.allocator.judge import CelJudge
from support.allocator_corpus import OWN, SHARED, records


def _has_text(expected: dict[str, Any]) -> bool:
    """Texts of CEL errors are cel-go's own and a panic's is Go's; all others are the same to the letter."""
    return "CEL" not in expected.get("error", "CEL") and expected["error_kind"] != "panic"


def differences(path: Path) -> list[str]:
    """Return what differs, one line a problem. Problems that upstream did not finish have no answer to compare."""
    judge = CelJudge()
    found = []
    for record in records(path):
        expected = record["output"]
        if expected.get("error_kind") == "timeout":
            continue
        answer = allocate_line(record["input"], judge=judge)
        if answer["results"] != expected["results"] or answer.get("error_kind") != expected.get("error_kind"):
            found.append(f"{record['input']['id']}: {answer} instead of {expected}")
        elif _has_text(expected) and answer["error"] != expected["error"]:
            found.append(f"{record['input']['id']}: {answer['error']} instead of {expected['error']}")
    return found


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_our_recordings(path: Path) -> None:
    assert differences(path) == []


@pytest.mark.parametrize("name", ["table", "random", "stress", "probes", "pathological"])
def test_shared_recordings(name: str) -> None:
    path = SHARED / f"{name}.jsonl"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the project")
    assert differences(path) == []


def test_what_upstream_never_finishes_does_not_fit() -> None:
    if not SHARED.exists():
        pytest.skip("the shared recordings are not beside the project")
    lines = {record["input"]["id"]: record["input"] for record in records(SHARED / "pathological.jsonl")}
    answer = allocate_line(lines["match-late-32"])
    assert answer == {"id": "match-late-32", "results": None}


def test_hard_problems_are_no_searches() -> None:
    inputs = [record["input"] for path in OWN if path.name.startswith("hard") for record in records(path)]
    judge = CelJudge()
    slow: dict[str, Any] = {}
    for line in inputs:
        begun = time.process_time()
        allocate_line(line, judge=judge)
        taken = time.process_time() - begun
        # Far above what they take, far below what an exponential search would.
        if taken > 1:
            slow[line["id"]] = taken
    assert inputs
    assert slow == {}
