"""The demo: all services as processes, over sockets and HTTPS, and what its spans tell."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from earmark.runtime import semconv
from support.runtime_otlp import ReceivedSpan, receiver


async def run_demo(repository: Path, **variables: str) -> tuple[int | None, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "earmark.cli.main",
        "demo",
        "--json",
        "--config",
        str(repository / "deploy/config/local.toml"),
        env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert out, err.decode()
    report: dict[str, Any] = json.loads(out)
    return process.returncode, report


@pytest.fixture(scope="module")
def outcome(repository: Path) -> tuple[int | None, dict[str, Any], list[ReceivedSpan]]:
    """One run, looked at by all tests of this module."""

    async def run() -> tuple[int | None, dict[str, Any], list[ReceivedSpan]]:
        async with receiver() as received:
            status, report = await run_demo(repository, OTEL_EXPORTER_OTLP_ENDPOINT=received.endpoint)
            return status, report, list(received.spans)

    return asyncio.run(run())


Outcome = tuple[int | None, dict[str, Any], list[ReceivedSpan]]


@pytest.mark.kep("D1", "D3", "E69", "E102", "E106")
def test_the_preemptor_gets_exactly_what_was_held_for_it(outcome: Outcome) -> None:
    status, report, _ = outcome
    assert report["failures"] == []
    assert (status, report["ok"]) == (0, True)
    assert report["settling"]["held"] == report["settling"]["got"] != []
    assert report["settling"]["victims"] == ["training"]


def test_the_services_are_up_soon_and_small(outcome: Outcome) -> None:
    _, report, _ = outcome
    assert len(report["memory_mib"]) == 6
    assert {name: mib for name, mib in report["memory_mib"].items() if mib > 120} == {}


def spans(outcome: Outcome, name: str) -> list[ReceivedSpan]:
    return [span for span in outcome[2] if span.name == name]


def test_one_trace_tells_the_window_from_t0_to_t4(outcome: Outcome) -> None:
    (root,) = spans(outcome, semconv.SETTLING)
    phases = [
        spans(outcome, name)
        for name in (
            semconv.SETTLING_STARTED,
            semconv.VICTIM_TERMINATING,
            semconv.CLAIM_DEALLOCATING,
            semconv.CAPACITY_HELD,
        )
    ]
    assert [len(found) for found in phases] == [1, 1, 1, 1]
    (started,), (terminating,), (deallocating,), (held,) = phases
    assert {span.trace_id for span in (started, terminating, deallocating, held)} == {root.trace_id}
    assert root.start <= terminating.start <= terminating.end <= deallocating.end <= held.end <= root.end + 0.001
    assert deallocating.end <= held.start + 0.001
    # Three seconds of grace, less the part of a second that timestamps of objects are cut by.
    assert 2 <= terminating.end - terminating.start < 13


def test_every_name_that_was_exported_is_declared(outcome: Outcome) -> None:
    problems = [
        problem for span in outcome[2] for problem in semconv.undeclared(span.name, span.attributes, span.events)
    ]
    assert problems == []
