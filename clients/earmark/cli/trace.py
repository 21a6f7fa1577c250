"""`earmark trace POD`: a settling window's trace as a tree, from Jaeger, or from what SettlementService remembers.

Jaeger is asked by its query API (GET /api/traces/ID): the trace's id is derived from the window, nothing is searched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp

    from earmark.runtime.process import RuntimeSettings
    from earmark.v1 import settlement_pb2

# What a line tells of a span, in this order; times, ids and what all spans of a window share are left out.
_TOLD = (
    "k8s.pod.name", "k8s.node.name", "earmark.claim", "earmark.candidates", "earmark.rounds", "earmark.victims",
    "earmark.devices", "earmark.attempt", "earmark.outcome", "earmark.reason",
)  # fmt: skip

_TIMEOUT_SECONDS = 10.0
_LONGEST_ANSWER = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Span:
    """One span; times in UTC, `end` is None while it goes on."""

    id: str
    parent: str
    name: str
    service: str
    start: datetime
    end: datetime | None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""


def trace(
    pod: Annotated[str, typer.Argument(metavar="POD", help="Preemptor or victim: NAME or NAMESPACE/NAME.")],
    jaeger: Annotated[
        str,
        typer.Option(
            "--jaeger",
            envvar="EARMARK_JAEGER_URL",
            help="Jaeger's query API: http://127.0.0.1:16686 for `make jaeger`.",
        ),
    ] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the pod (default: all).")] = "",
    every: Annotated[bool, typer.Option("--all", help="Every window of the pod, not only the newest.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a span and line.")] = False,
    config: Annotated[
        Path | None, typer.Option("--config", envvar="EARMARK_CONFIG", help="TOML file with the settings.")
    ] = None,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Folder of sockets and kubeconfig.")] = None,
) -> None:
    """Print the trace of a pod's settling window as a tree, from Jaeger or from the plugin's own record."""
    from earmark.cli.running import run
    from earmark.cli.settings import runtime_settings
    from earmark.cli.windows import Wanted

    wanted = Wanted(pod=pod, namespace=namespace)
    run(_show(runtime_settings(config, state_dir), wanted, jaeger, every, as_json))


async def _show(runtime: RuntimeSettings, wanted: Any, jaeger: str, every: bool, as_json: bool) -> None:
    from earmark.cli.errors import CommandError
    from earmark.cli.output import Terminal
    from earmark.client import EarmarkClient

    async with EarmarkClient(runtime) as client:
        windows = [window for window in await client.settlements() if wanted.admits(window)]
    if not windows:
        raise CommandError(f"pod {wanted.pod}: no settling window is known of it")
    terminal = Terminal()
    for window in windows if every else windows[-1:]:
        spans = await _from_jaeger(jaeger, window.trace_id) if jaeger else from_record(window)
        if not spans:
            raise CommandError(f"{jaeger}: has no trace {window.trace_id}; do the services export to it?")
        if as_json:
            for span in spans:
                print(json.dumps(as_data(span, window.trace_id)), flush=True)
            continue
        source = jaeger if jaeger else "the plugin's record; --jaeger URL has attempts, dry run and execution too"
        terminal.print_indented(f"trace {window.trace_id} ({source})")
        for line in lines(spans, datetime.now(UTC)):
            terminal.print_indented(line)


async def _from_jaeger(url: str, trace_id: str) -> list[Span]:
    import aiohttp

    from earmark.cli.errors import BadInput, CommandError

    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    target = f"{url.rstrip('/')}/api/traces/{trace_id}"
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(target) as response:
            if response.status == 404:
                return []
            if response.status != 200:
                raise CommandError(f"{target}: HTTP status {response.status}")
            body = await response.content.read(_LONGEST_ANSWER)
    except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
        raise BadInput(f"--jaeger {url}: not an address: http://HOST:PORT") from error
    except (aiohttp.ClientError, TimeoutError) as error:
        raise CommandError(f"{url}: Jaeger does not answer: {error or 'timeout'}") from error
    try:
        return from_jaeger(json.loads(body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"{target}: not an answer of Jaeger's query API") from error


def from_jaeger(answer: Mapping[str, Any]) -> list[Span]:
    """Read the answer to GET /api/traces/ID. Raises KeyError, TypeError, ValueError for another shape."""
    found: dict[str, Span] = {}
    for trace_ in answer["data"] or ():
        processes = trace_["processes"]
        for item in trace_["spans"]:
            tags = {tag["key"]: _tag(tag) for tag in item.get("tags") or ()}
            start = int(item["startTime"])
            parents = [ref["spanID"] for ref in item.get("references") or () if ref["refType"] == "CHILD_OF"]
            error = str(tags.get("otel.status_description") or "failed") if _failed(tags) else ""
            # A span that a restarted service has told again is told once.
            found[item["spanID"]] = Span(
                item["spanID"], parents[0] if parents else "", item["operationName"],
                processes[item["processID"]]["serviceName"].removeprefix("earmark-"),
                _moment(start), _moment(start + int(item["duration"])), tags, error,
            )  # fmt: skip
    return sorted(found.values(), key=lambda span: (span.start, span.end or span.start))


def _failed(tags: Mapping[str, Any]) -> bool:
    return tags.get("otel.status_code") == "ERROR" or tags.get("error") is True


def _tag(tag: Mapping[str, Any]) -> Any:
    value = tag["value"]
    # Jaeger's query API gives lists as JSON in a string.
    if tag.get("type") == "string" and isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).replace(microsecond=microseconds % 1_000_000)


def from_record(window: settlement_pb2.Settlement) -> list[Span]:
    """Make the spans that a window's record tells of: root, victims, claims, and the hold."""
    from earmark.cli.moments import moment

    def at(stamp: Timestamp, known: bool) -> datetime | None:
        return moment(stamp) if known else None

    t0, t4 = moment(window.t0), at(window.t4, window.HasField("t4"))
    t1, t3 = at(window.t1, window.HasField("t1")), at(window.t3, window.HasField("t3"))
    about = {"k8s.pod.name": window.preemptor.name, "k8s.node.name": window.node_name}
    outcome = {"earmark.outcome": window.outcome or "open"}
    failed = window.outcome if window.outcome not in ("", "scheduled") else ""
    spans = []
    for victim in window.victims:
        gone = at(victim.gone, victim.HasField("gone"))
        attributes = {"k8s.pod.name": victim.pod.name}
        spans.append(Span(victim.pod.uid, "root", "victim.terminating", "dynamicresources", t0, gone, attributes))
    for claim in window.claims:
        freed = at(claim.deallocated, claim.HasField("deallocated"))
        start = t0 if t1 is None else min(t1, freed or t1)
        attributes = {"earmark.claim": f"{claim.namespace}/{claim.name}"}
        spans.append(Span(claim.uid, "root", "claim.deallocating", "dynamicresources", start, freed, attributes))
    if t1 is not None and t3 is not None and (t4 is not None or not window.outcome):
        held = {"earmark.devices": list(window.devices)}
        spans.append(Span("held", "root", "capacity.held", "dynamicresources", max(t1, t3), t4, held))
    if window.outcome:
        # Of a window that was given up only the phases tell how long it was.
        ends = [span.end for span in spans if span.end is not None]
        end: datetime | None = t4 or max([t0, *ends])
        spans = [
            span if span.end is not None else replace(span, end=end, error="not awaited any more") for span in spans
        ]
    else:
        end = None
    return [Span("root", "", "settling", "dynamicresources", t0, end, {**about, **outcome}, failed), *spans]


def lines(spans: Sequence[Span], now: datetime) -> Iterator[str]:
    """Say each span below its parent, with its time since t0 and its length."""
    known = {span.id for span in spans}
    # Of a window that is open the root is not there yet: its children stand at the top.
    tops = [span for span in spans if span.parent not in known]
    t0 = next((span.start for span in tops if span.name in ("settling", "settling.started")), spans[0].start)
    yield from _below(tops, spans, 0, t0, now, {})


def _below(
    level: Iterable[Span], spans: Sequence[Span], depth: int, t0: datetime, now: datetime, above: Mapping[str, Any]
) -> Iterator[str]:
    for span in level:
        since = (span.start - t0).total_seconds()
        length = ((span.end or now) - span.start).total_seconds()
        name = f"{'  ' * depth}{span.name}"
        open_ = "" if span.end is not None else " ..."
        line = f"  {since:+9.3f}s {length:8.3f}s{open_:<4} {name:<30} {span.service:<16} {_told(span, above)}"
        yield line.rstrip()
        children = [item for item in spans if item.parent == span.id and item is not span]
        yield from _below(children, spans, depth + 1, t0, now, span.attributes)


def _told(span: Span, above: Mapping[str, Any]) -> str:
    # What the span above says already is not said again.
    parts = []
    for key in _TOLD:
        value = span.attributes.get(key)
        if value not in (None, "", [], above.get(key)):
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
            parts.append(f"{key.rpartition('.')[2] if key.startswith('earmark') else key.split('.')[1]}={text}")
    return " ".join([*parts, *([f"ERROR: {span.error}"] if span.error else [])])


def as_data(span: Span, trace_id: str) -> dict[str, object]:
    """Return a span as JSON data."""
    return {
        "traceId": trace_id,
        "spanId": span.id,
        "parentSpanId": span.parent or None,
        "name": span.name,
        "service": span.service,
        "start": span.start.isoformat(),
        "end": span.end.isoformat() if span.end is not None else None,
        "error": span.error or None,
        "attributes": dict(span.attributes),
    }
