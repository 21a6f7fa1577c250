"""Logs: one line or one JSON object a record, with what the record is about."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from earmark.runtime import logs, semconv
from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds
from earmark.runtime.telemetry import Tracing


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leave the root logger as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_a_line_names_time_level_service_logger_and_fields() -> None:
    stream = io.StringIO()
    logs.configure("framework", "text", "info", stream)
    logging.getLogger("earmark.queue").info("popped", extra={"pod": "default/a", "node": "n1"})
    logging.getLogger("earmark.queue").debug("not shown")
    time, _, rest = stream.getvalue().partition(" ")
    assert time.endswith("Z")
    assert rest == "INFO framework earmark.queue: popped pod=default/a node=n1\n"


def test_json_has_the_fields_and_the_exception() -> None:
    stream = io.StringIO()
    logs.configure("framework", "json", "debug", stream)
    try:
        raise KeyError("x")
    except KeyError:
        logging.getLogger("earmark.queue").exception("failed", extra={"pod": "default/a"})
    record = json.loads(stream.getvalue())
    assert (record["level"], record["service"], record["message"], record["pod"]) == (
        "ERROR",
        "framework",
        "failed",
        "default/a",
    )
    assert record["exception"].endswith("KeyError: 'x'")


@pytest.mark.virtual
async def test_a_record_carries_the_trace_that_it_belongs_to(clock: LoopClock) -> None:
    stream = io.StringIO()
    logs.configure("framework", "json", "info", stream)
    tracing = Tracing("framework", clock, SeededIds(1))
    with tracing.span(semconv.SCHEDULING_ATTEMPT):
        identity = tracing.current()
        logging.getLogger("earmark").info("inside")
    logging.getLogger("earmark").info("outside")
    inside, outside = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert identity is not None
    assert inside["trace_id"] == f"{identity.trace_id:032x}"
    assert "trace_id" not in outside
