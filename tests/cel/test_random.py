"""Random selectors: they always end in an answer; where Go is at hand, in the one of the real engine."""

from __future__ import annotations

import json
import os
import random
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cel_devices import HINT, outcome, prepared
from support.cel_random import DEVICE, Generator

_DEVICE = prepared(DEVICE)


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_every_selector_ends_in_an_answer_and_the_same_one_again(seed: int) -> None:
    selector = Generator(random.Random(seed)).selector()
    found, cost = outcome(selector, _DEVICE)
    assert found in (True, False) or "compile" in found or "runtime" in found
    assert outcome(selector, _DEVICE) == (found, cost)


@pytest.mark.parametrize("seed", [int(one) for one in os.environ.get("EARMARK_CEL_SEEDS", "1").split(",")])
@pytest.mark.timeout(1800)
def test_random_selectors_agree_with_the_real_engine(seed: int) -> None:
    oracle = os.environ.get("EARMARK_CEL_ORACLE")
    if not oracle:
        pytest.skip("EARMARK_CEL_ORACLE names no built oracle")
    rng = random.Random(seed)
    selectors = [Generator(rng).selector() for _ in range(int(os.environ.get("EARMARK_CEL_COUNT", "20000")))]
    selectors = [one for one in selectors if len(one) < 2000]
    different = []
    for selector, answer in zip(selectors, _ask(oracle, selectors), strict=True):
        found, cost = outcome(selector, _DEVICE)
        if _same(found, cost, answer):
            continue
        # Go goes through maps in random order: the answer must be one of those that it gives.
        if not any(_same(found, cost, again) for again in _ask(oracle, [selector] * 30)):
            different.append((selector, answer, found, cost))
    shown = "\n".join(f"{one[0]}\n  wanted {one[1]}\n  found {one[2]} cost {one[3]}" for one in different[:20])
    assert not different, f"{len(different)} of {len(selectors)} differ:\n{shown}"


def _ask(oracle: str, selectors: list[str]) -> list[dict[str, Any]]:
    lines = "".join(json.dumps({"expression": one, "device": DEVICE}) + "\n" for one in selectors)
    answers = subprocess.run([oracle], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(answer) for answer in answers]


def _same(found: Any, cost: int | None, answer: dict[str, Any]) -> bool:
    expected = answer["expect"]
    if "compile_error" in expected:
        return isinstance(found, dict) and found.get("compile") == expected["compile_error"].split("\n")[0]
    if expected.get("runtime_error", "").startswith("panic: "):
        # Upstream crashes while it plans a constant.
        return isinstance(found, dict) and "compile" in found
    if "runtime_error" in expected:
        wanted: Any = {"runtime": expected["runtime_error"].removesuffix(HINT)}
    else:
        wanted = expected["result"]
    return bool(found == wanted) and cost == answer.get("cost")
