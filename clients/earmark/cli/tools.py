"""`earmark allocate` and `earmark cel`: the allocator and the expression language, outside a cluster."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

from earmark.cli.errors import FAILED, BadInput
from earmark.dynamicresources.allocator.jsonlines import FIXED_SHARE_ID, allocate_line
from earmark.dynamicresources.allocator.judge import CelJudge
from earmark.dynamicresources.celcheck import answer, explain, readable
from earmark.dynamicresources.devicecel import SelectorCompileError
from earmark.kube.manifests import ManifestError, load_manifests
from earmark.kube.objects import ResourceSlice


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield "FILE:LINE" and the line, of a file or of stdin ("-"); empty lines are left out."""
    if str(file) == "-":
        source, lines = "stdin", iter(sys.stdin)
    else:
        try:
            source, lines = str(file), iter(file.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{file}: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield f"{source}:{number}", line


def allocate(file: Path, fixed_share_ids: bool) -> int:
    """Answer allocation problems, one JSON object a line; return 0. Raises BadInput for a line that is not JSON."""
    judge = CelJudge()
    share_id = (lambda: FIXED_SHARE_ID) if fixed_share_ids else (lambda: str(uuid.uuid4()))
    for where, line in _lines(file):
        try:
            problem = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{where}: not valid JSON: {error}") from error
        if not isinstance(problem, dict):
            raise BadInput(f"{where}: want a JSON object, found a {type(problem).__name__}")
        print(json.dumps(allocate_line(problem, share_id=share_id, judge=judge)), flush=True)
    return 0


def answer_lines() -> int:
    """Answer {"expression", "device"} objects of stdin, one a line; return 0."""
    for _, line in _lines(Path("-")):
        print(answer(line), flush=True)
    return 0


def explain_selector(expression: str, files: list[Path]) -> int:
    """Print which devices of ResourceSlice manifests match, and for the others why not.

    Returns 0 if a device matches, else 1. Raises BadInput for an expression or a manifest that cannot be used.
    """
    matches = 0
    try:
        for found in explain(expression, _slices(files)):
            name = f"{found.driver}/{found.pool}/{found.device}"
            matches += found.matches
            print(f"{name}: {'matches' if found.matches else 'does not match'}")
            if not found.matches:
                for line in readable(found.part, 1):
                    print(line)
    except SelectorCompileError as error:
        raise BadInput(f"the expression does not compile: {error}") from error
    return 0 if matches else FAILED


def _slices(files: list[Path]) -> Iterator[ResourceSlice]:
    for file in files:
        try:
            text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
            manifests = load_manifests(text, str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{file}: {error}") from error
        except ManifestError as error:
            raise BadInput(str(error)) from error
        for manifest in manifests:
            if manifest.kind != "ResourceSlice":
                continue
            try:
                yield msgspec.convert(manifest.data, ResourceSlice)
            except msgspec.ValidationError as error:
                raise BadInput(f"{manifest.source}:{manifest.line}: {error}") from error
