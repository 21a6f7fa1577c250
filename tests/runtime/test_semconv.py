"""What is declared as a name of spans is a name of spans."""

from __future__ import annotations

from pathlib import Path

import pytest

from earmark.runtime import semconv

SERVICES = Path(semconv.__file__).parent.parent
CONSTANTS = {value: name for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("name", [*semconv.SPANS, *semconv.ATTRIBUTES, *semconv.EVENTS])
def test_every_declared_name_is_used(name: str) -> None:
    texts = [path.read_text() for path in SERVICES.rglob("*.py") if path.name != "semconv.py"]
    wanted = f"semconv.{CONSTANTS[name]}" if name in CONSTANTS else f'"{name}"'
    assert any(wanted in text for text in texts)
