"""`earmark allocate` and `earmark cel`: the allocator and the expression language, outside a cluster."""

from __future__ import annotations

import json
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from earmark.cli.errors import BAD_INPUT, FAILED, BadInput, read_text
from earmark.dynamicresources.allocator.jsonlines import FIXED_SHARE_ID, allocate_line
from earmark.dynamicresources.allocator.judge import CelJudge
from earmark.dynamicresources.celcheck import Part, answer, explain, readable
from earmark.dynamicresources.devicecel import SelectorCompileError
from earmark.kube.manifests import ManifestError, load_manifests
from earmark.kube.objects import ResourceSlice

# Upstream's filterTimeout, for lines that say nothing else.
_TIMEOUT_SECONDS = 10.0


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield "FILE:LINE" and the line, of a file or of stdin ("-"); empty lines are left out."""
    if str(file) == "-":
        source, lines = "stdin", iter(sys.stdin)
    else:
        source, lines = str(file), iter(read_text(file).splitlines())
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"{source}:{number}", line


def allocate(file: Path, fixed_share_ids: bool) -> int:
    """Answer allocation problems, one JSON object a line.

    Each line that is one is answered, with an error of kind "input" if its fields are not those of a problem. Of every
    other line one message goes to standard error. Returns 0, or 2 if there was such a line. A search ends after the
    line's `timeout_ms`, by default 10 seconds (upstream's filterTimeout), as an error of kind "timeout".
    """
    judge = CelJudge()
    share_id = (lambda: FIXED_SHARE_ID) if fixed_share_ids else (lambda: str(uuid.uuid4()))
    status = 0
    for where, line in _lines(file):
        try:
            problem = json.loads(line)
        except ValueError as error:
            print(f"earmark: {where}: not valid JSON: {error}", file=sys.stderr)
            status = BAD_INPUT
            continue
        if not isinstance(problem, dict):
            print(f"earmark: {where}: want a JSON object, found a {type(problem).__name__}", file=sys.stderr)
            status = BAD_INPUT
            continue
        expired = _deadline(problem.get("timeout_ms"))
        print(json.dumps(allocate_line(problem, share_id=share_id, expired=expired, judge=judge)), flush=True)
    return status


def _deadline(timeout_ms: object) -> Callable[[], bool]:
    """Return whether the time for one line is over, from now on."""
    seconds = timeout_ms / 1000 if isinstance(timeout_ms, int | float) and timeout_ms > 0 else _TIMEOUT_SECONDS
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end


def answer_lines() -> int:
    """Answer {"expression", "device"} objects of stdin, one a line; return 0."""
    for _, line in _lines(Path("-")):
        print(answer(line), flush=True)
    return 0


def explain_selector(expression: str, files: list[Path]) -> int:
    """Print which devices of ResourceSlice manifests match, and for the others why not.

    Devices of a pool about which the same is to be said are named together. Returns 0 if a device matches, else 1.
    Raises BadInput for an expression or a manifest that cannot be used.
    """
    try:
        answers = list(explain(expression, _slices(files)))
    except SelectorCompileError as error:
        # The lines that begin with "|" draw the expression and a mark below it; in one line they say nothing.
        text = " ".join(line for line in str(error).splitlines() if not line.startswith(" |"))
        raise BadInput(f"the expression does not compile: {text.removeprefix('compilation failed: ')}") from error
    alike: dict[tuple[str, str, bool, Part], list[str]] = {}
    for found in answers:
        alike.setdefault((found.driver, found.pool, found.matches, found.part), []).append(found.device)
    for (driver, pool, matches, part), devices in alike.items():
        print(f"{driver}/{pool}/{devices[0]}: {'matches' if matches else 'does not match'}")
        if len(devices) > 1:
            others = f"so {'do' if matches else 'do not'}: {', '.join(devices[1:])}"
            print(textwrap.fill(others, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False))
        if not matches:
            for line in readable(part, 1):
                print(line)
    count = sum(found.matches for found in answers)
    print(f"{count} of {len(answers)} devices match")
    return 0 if count else FAILED


def _slices(files: list[Path]) -> Iterator[ResourceSlice]:
    for file in files:
        try:
            text = sys.stdin.read() if str(file) == "-" else read_text(file)
            manifests = load_manifests(text, str(file))
        except ManifestError as error:
            raise BadInput(str(error)) from error
        for manifest in manifests:
            if manifest.kind != "ResourceSlice":
                continue
            try:
                yield msgspec.convert(manifest.data, ResourceSlice)
            except msgspec.ValidationError as error:
                raise BadInput(f"{manifest.source}:{manifest.line}: {error}") from error
