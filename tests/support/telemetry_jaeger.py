"""A small fake of Jaeger's query API, with answers of the shape that Jaeger 2 gives, and the real one where it is."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from aiohttp import web
from opentelemetry.sdk.trace import ReadableSpan


def answer(spans: list[ReadableSpan]) -> dict[str, Any]:
    """What GET /api/traces/ID says of these spans, all of one trace."""
    services = sorted({str(span.resource.attributes["service.name"]) for span in spans})
    processes = {f"p{number}": {"serviceName": name, "tags": []} for number, name in enumerate(services, 1)}
    number_of = {process["serviceName"]: key for key, process in processes.items()}
    items = []
    for span in spans:
        trace = f"{span.context.trace_id:032x}"
        parent = span.parent
        references = [] if parent is None else [("CHILD_OF", trace, f"{parent.span_id:016x}")]
        references += [
            ("FOLLOWS_FROM", f"{link.context.trace_id:032x}", f"{link.context.span_id:016x}") for link in span.links
        ]
        start, end = span.start_time or 0, span.end_time or 0
        items.append(
            {
                "traceID": trace,
                "spanID": f"{span.context.span_id:016x}",
                "operationName": span.name,
                "references": [{"refType": kind, "traceID": t, "spanID": s} for kind, t, s in references],
                "startTime": start // 1000,
                "duration": (end - start) // 1000,
                "tags": [_tag(key, value) for key, value in (span.attributes or {}).items()]
                + ([_tag("otel.status_code", "ERROR"), _tag("error", True)] if not span.status.is_ok else []),
                "logs": [],
                "processID": number_of[str(span.resource.attributes["service.name"])],
                "warnings": None,
            }
        )
    trace_id = items[0]["traceID"]
    data = {"traceID": trace_id, "spans": items, "processes": processes, "warnings": None}
    return {"data": [data], "total": 0, "limit": 0, "offset": 0, "errors": None}


def _tag(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": key, "type": "bool", "value": value}
    if isinstance(value, int):
        return {"key": key, "type": "int64", "value": value}
    text = value if isinstance(value, str) else json.dumps(list(value), separators=(",", ":"))
    return {"key": key, "type": "string", "value": text}


@contextlib.asynccontextmanager
async def fake(answers: dict[str, dict[str, Any]]) -> AsyncIterator[str]:
    """Answer for these trace ids on loopback; yield the address."""

    async def get(request: web.Request) -> web.Response:
        found = answers.get(request.match_info["id"])
        if found is None:
            refusal = {"data": None, "total": 0, "errors": [{"code": 404, "msg": "trace not found"}]}
            return web.json_response(refusal, status=404)
        return web.json_response(found)

    app = web.Application()
    app.router.add_get("/api/traces/{id}", get)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def binary() -> Path | None:
    """A Jaeger that was built or installed; `make jaeger` looks in the same places."""
    named = os.environ.get("EARMARK_JAEGER") or shutil.which("jaeger")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "earmark/bin/jaeger"
    return Path(named) if named else cache if cache.is_file() else None


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


CONFIG = """\
service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {{receivers: [otlp], processors: [], exporters: [jaeger_storage_exporter]}}
  telemetry: {{metrics: {{level: none}}}}
extensions:
  jaeger_storage: {{backends: {{memory: {{memory: {{max_traces: 10000}}}}}}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: "127.0.0.1:{http}"}}
    grpc: {{endpoint: "127.0.0.1:{grpc}"}}
receivers:
  otlp: {{protocols: {{grpc: {{endpoint: "127.0.0.1:{otlp}"}}}}}}
exporters:
  jaeger_storage_exporter: {{trace_storage: memory}}
"""


@contextlib.contextmanager
def real(program: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Run Jaeger on loopback; yield the addresses of OTLP and of the query API."""
    http, grpc, otlp = free_port(), free_port(), free_port()
    config = folder / "jaeger.yaml"
    config.write_text(CONFIG.format(http=http, grpc=grpc, otlp=otlp), encoding="utf-8")
    query = f"http://127.0.0.1:{http}"
    with (folder / "jaeger.log").open("wb") as log:
        process = subprocess.Popen([program, "--config", config], stdout=log, stderr=subprocess.STDOUT)
        try:
            deadline = time.monotonic() + 30
            while True:
                assert process.poll() is None, (folder / "jaeger.log").read_text(encoding="utf-8")[-2000:]
                try:
                    urllib.request.urlopen(f"{query}/api/services", timeout=1).close()
                    break
                except (urllib.error.URLError, OSError):
                    assert time.monotonic() < deadline, "Jaeger does not answer"
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{otlp}", query
        finally:
            process.terminate()
            process.wait(10)
