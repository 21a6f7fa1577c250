"""The answer depends on names and on the order within a slice, not on the order in which objects come."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from earmark.dynamicresources.allocator.jsonlines import allocate_line
from earmark.dynamicresources.allocator.judge import CelJudge
from support.allocator_corpus import own_inputs


@pytest.mark.parametrize("seed", range(2))
def test_shuffled_objects_give_the_same_answer(seed: int) -> None:
    chance = random.Random(seed)
    judge = CelJudge()
    for line in own_inputs():
        shuffled: dict[str, Any] = json.loads(json.dumps(line))
        for part in ("slices", "classes", "allocated"):
            chance.shuffle(shuffled.get(part, []))
        assert allocate_line(shuffled, judge=judge) == allocate_line(line, judge=judge), line["id"]
