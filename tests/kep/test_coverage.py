"""Every requirement has a test or an open issue, and every mark names a requirement."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_FILE = Path(__file__).with_name("coverage.py")


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("earmark_kep_coverage", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_requirement_has_a_test_or_an_open_issue(coverage: ModuleType) -> None:
    assert coverage.problems(coverage.requirements(), coverage.by_id(coverage.proofs())) == []


def test_the_list_is_complete(coverage: ModuleType) -> None:
    ids = [item.id for item in coverage.requirements()]
    assert ids == [f"D{number}" for number in range(1, 37)] + [f"E{number}" for number in range(1, 113)]


def test_marks_of_functions_classes_parameters_and_modules_are_found(coverage: ModuleType, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    (tests / "scenarios").mkdir(parents=True)
    (tests / "bench").mkdir()
    (tests / "test_a.py").write_text(
        "import pytest\n"
        'pytestmark = [pytest.mark.kep("E1")]\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.kep("E2"))])\n'
        "def test_one(x): ...\n"
        '@pytest.mark.kep("E3", "D4")\n'
        "class TestTwo:\n"
        "    async def test_three(self): ...\n"
    )
    (tests / "scenarios" / "s.yaml").write_text(
        "# kep: D1 E9\nmetadata: {name: first}\n---\nmetadata: {name: second}\n"
    )
    (tests / "bench" / "bench_a.py").write_text('"""How long it takes (E107)."""\n')
    found = {proof.where: proof.ids for proof in coverage.proofs(tests)}
    assert found == {
        "tests/test_a.py::test_one": ("E1", "E2"),
        "tests/test_a.py::TestTwo::test_three": ("E1", "E3", "D4"),
        "tests/scenarios/s.yaml: first": ("D1", "E9"),
        "tests/bench/bench_a.py": ("E107",),
    }


def test_what_is_missing_and_what_is_unknown_are_problems(coverage: ModuleType) -> None:
    listed = [coverage.Requirement("E1", "one"), coverage.Requirement("E2", "two", later=9)]
    assert coverage.problems(listed, {"E3": ["here"], "F7": ["there"]}) == [
        "E1 has no test: one",
        "E3 is not listed (here)",
    ]
