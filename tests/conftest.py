"""Fixtures for all tests.

A test that is marked `@pytest.mark.virtual` runs in virtual time, its async fixtures too: `asyncio.sleep(3600)` returns
at once, and a wait for something that can never happen fails with VirtualDeadlockError. Other async tests run in a real
event loop (sockets, processes).

    @pytest.mark.virtual
    async def test_a_held_device_stays_held_for_an_hour(clock): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds
from earmark.runtime.virtual import VirtualLoop, virtual_clock


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "virtual: the test runs in virtual time (earmark.runtime.virtual)")


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, object]:
    if item.get_closest_marker("virtual") is not None:
        return {"virtual": VirtualLoop}
    return {"real": asyncio.new_event_loop}


@pytest.fixture
async def clock() -> LoopClock:
    """A clock of the test's event loop, from 2026-01-01 on."""
    return virtual_clock()


@pytest.fixture
def ids() -> SeededIds:
    """Seeded randomness."""
    return SeededIds(1)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the project."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared(repository: Path) -> Path:
    """The folder with reference material beside the project; tests that need it skip where it is missing."""
    folder = repository.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared is not there")
    return folder
