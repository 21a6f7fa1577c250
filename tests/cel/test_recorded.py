"""The recorded answers of the allocator's own CEL: outcome, texts and cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cel_devices import outcome, prepared

_DATA = Path(__file__).parent.parent / "data" / "cel"
_DEVICES = {name: prepared(one) for name, one in json.loads((_DATA / "devices.json").read_text()).items()}
_CASES = [json.loads(line) for line in (_DATA / "selectors.jsonl").read_text().splitlines()]
# Upstream's lexer reports how far it came; the place and the class agree.
_OTHER_TEXT = {'"\\q" == ""'}


@pytest.mark.parametrize("case", _CASES, ids=[f"{index}-{case['about']}" for index, case in enumerate(_CASES)])
def test_a_recorded_selector_gives_the_recorded_answer(case: dict[str, Any]) -> None:
    found, cost = outcome(case["selector"], _DEVICES[case["on"]])
    if case["selector"] in _OTHER_TEXT:
        assert "compile" in found
        return
    assert found == case["gives"]
    if "cost" in case:
        assert cost == case["cost"]
