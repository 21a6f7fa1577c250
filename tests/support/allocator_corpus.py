"""Recorded problems with the upstream allocator's answers: the project's own, and those beside it where they exist."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parent.parent
OWN = sorted((_TESTS / "data" / "allocator").glob("*.jsonl.gz"))
SHARED = _TESTS.parent.parent / "shared" / "conformance" / "allocator"


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield {"input", "output"} of a recording."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in data.splitlines():
        yield json.loads(line)


def own_inputs() -> list[dict[str, Any]]:
    """All inputs of the project's own recordings."""
    return [record["input"] for path in OWN for record in records(path)]
