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
import yaml

import earmark.client
from earmark.client import blocking
from earmark.client.portal import Portal
from support.client_stack import client_of, example_stack_elsewhere
from support.contract_rpcs import RPCS
from support.contract_stack import Stack

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


async def applied(stack: Stack, pod: dict[str, Any]) -> None:
    await stack.world.apply(pod)

    async def has_claim() -> bool:
        return await stack.world.claim_of(pod["metadata"]["name"]) is not None

    await stack.until(has_claim)


def test_the_readmes_python_runs(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", (repository / "README.md").read_text(encoding="utf-8"), re.M | re.S)
    files = ("cluster", "running.yaml")
    with example_stack_elsewhere(repository / "examples/gpu-cluster", *files) as elsewhere:
        text = (repository / "examples/gpu-cluster/urgent.yaml").read_text(encoding="utf-8")
        # Nobody is preempted for it: the pod is another scheduler's.
        incident = yaml.safe_load(text)
        incident["spec"]["schedulerName"] = "nobody"
        asyncio.run_coroutine_threadsafe(applied(elsewhere.stack, incident), elsewhere.loop).result(10)
        monkeypatch.setattr(
            blocking, "connect", lambda: blocking.BlockingClient(client_of(elsewhere.stack), Portal(elsewhere.loop))
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == [
        "gpu-a: fits",
        "not eligible due to resource claims on the nominated node still being deallocated.",
    ]
