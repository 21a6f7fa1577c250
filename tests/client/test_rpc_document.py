"""docs/rpc.md: its Python runs, and prints what stands there; its grpcurl lines name what the contract has."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

import earmark.client
from earmark.client import blocking
from earmark.client.portal import Portal
from support.client_stack import client_of, example_stack_elsewhere
from support.contract_rpcs import RPCS

BLOCK = re.compile(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^\$ call (\w+) (\w+/\w+) ", re.MULTILINE)


@pytest.fixture
def document(repository: Path) -> str:
    return (repository / "docs/rpc.md").read_text(encoding="utf-8")


def test_the_python_prints_what_the_document_says(
    document: str, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = BLOCK.findall(document)
    assert len(blocks) == document.count("```python")
    monkeypatch.chdir(repository)
    with example_stack_elsewhere(repository / "examples/gpu-cluster", "cluster", "running.yaml") as elsewhere:

        def connect_blocking() -> blocking.BlockingClient:
            return blocking.BlockingClient(client_of(elsewhere.stack), Portal(elsewhere.loop))

        def run(work: Coroutine[Any, Any, None]) -> None:
            asyncio.run_coroutine_threadsafe(work, elsewhere.loop).result(30)

        monkeypatch.setattr(blocking, "connect", connect_blocking)
        monkeypatch.setattr(earmark.client, "connect", lambda: client_of(elsewhere.stack))
        monkeypatch.setattr(asyncio, "run", run)
        names: dict[str, Any] = {}
        for code, text in blocks:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "docs/rpc.md", "exec"), names)
            assert printed.getvalue() == text


def test_the_grpcurl_calls_are_those_of_the_contract(document: str) -> None:
    calls = CALL.findall(document)
    for process, name in calls:
        assert RPCS[name].process == process, name
    # What the README promises to anybody.
    shown = {name.rpartition("/")[2] for _, name in calls}
    assert shown >= {"AddPod", "RemovePod", "AddNominatedPod", "PodEligibleToPreempt"}
