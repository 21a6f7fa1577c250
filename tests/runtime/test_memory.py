"""When a service's process looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from earmark.runtime import memory


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_the_collector_looks_seldom() -> None:
    before = gc.get_threshold()[0]
    memory.begin()
    assert gc.get_threshold()[0] > 10 * before


def test_what_is_there_when_the_service_is_ready_is_not_looked_at_again() -> None:
    kept = [{"number": number} for number in range(1000)]
    frozen = gc.get_freeze_count()
    memory.settle()
    assert gc.get_freeze_count() - frozen > len(kept)
    assert not any(one is kept for one in gc.get_objects())
