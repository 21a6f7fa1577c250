"""Structured logs: lines for people or JSON, with the trace id and what the call's `extra` names (pod, node ...)."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from earmark.runtime.telemetry import current_trace_id

# Attributes that a record has of itself (and uvicorn's second copy of the text); everything else came by `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    # Who names a trace means that one: a settling window's is not the call's in which it opens.
    if "trace_id" not in fields and (trace_id := current_trace_id()):
        fields["trace_id"] = trace_id
    return fields


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TextFormatter(logging.Formatter):
    """`2026-01-01T00:00:00.000Z INFO framework earmark.framework.queue: popped pod=default/a`."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line; a traceback follows on lines of its own."""
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        text = f"{_time(record)} {record.levelname} {self._service} {record.name}: {record.getMessage()}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        value = {
            "time": _time(record),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            value["exception"] = self.formatException(record.exc_info)
        return json.dumps(value, default=str)


def configure(service: str, log_format: str, level: str, stream: TextIO | None = None) -> None:
    """Send all logs of this process to a stream (standard error), in a format ("text" or "json")."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(service) if log_format == "json" else TextFormatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Libraries speak up only when something is wrong: their requests are not our events.
    for name in ("aiohttp", "grpc", "uvicorn.access", "uvicorn.error", "asyncio", "opentelemetry"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
