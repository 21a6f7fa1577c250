"""Which test proves which requirement: `make kep` prints it and writes docs/kep-coverage.md.

Tests say it with `@pytest.mark.kep("E81")`, scenario files with a comment `# kep: E81`, benchmarks in their docstring.
Tests are read, not run or imported. Exit status 1 if a requirement has neither a test nor a `later:` that names an open
issue, if a mark names what does not exist, or (--check) if the document is not up to date.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
REQUIREMENTS = Path(__file__).with_name("requirements.yaml")
DOCUMENT = ROOT / "docs" / "kep-coverage.md"

# F: this project's decisions, R: public reports. They may be named without being listed.
_UNLISTED = re.compile(r"^[FR]\d+$")
_HEADINGS = {"D": "Situations", "E": "Requirements"}

if str(TESTS) not in sys.path:
    sys.path.insert(0, str(TESTS))

from support.kep_stories import stories  # noqa: E402


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sentence of the KEP; `later` is the open issue that proves it."""

    id: str
    title: str
    later: int | None = None


@dataclass(frozen=True, slots=True)
class Proof:
    """A test, scenario or benchmark, with the ids that it names."""

    where: str
    ids: tuple[str, ...]


def requirements(path: Path = REQUIREMENTS) -> tuple[Requirement, ...]:
    """Return the list, in its order."""
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        Requirement(key, value["title"], value["later"]) if isinstance(value, dict) else Requirement(key, value)
        for key, value in entries.items()
    )


def proofs(tests: Path = TESTS) -> tuple[Proof, ...]:
    """Return everything below `tests` that names requirements, by path."""
    found: list[Proof] = []
    for path in sorted(tests.rglob("test_*.py")):
        name = path.relative_to(tests.parent).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        whole = tuple(_marks_of_module(tree))
        found += [Proof(f"{name}::{test}", ids) for test, ids in _tests(tree.body, "", whole) if ids]
    for path in sorted((tests / "scenarios").glob("*.yaml")):
        name = path.relative_to(tests.parent).as_posix()
        found += [Proof(f"{name}: {story.name}", story.proves) for story in stories(path) if story.proves]
    for path in sorted((tests / "bench").glob("*.py")):
        about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"), str(path))) or ""
        ids = tuple(dict.fromkeys(re.findall(r"\b[DEF]\d+\b", about)))
        if ids:
            found.append(Proof(path.relative_to(tests.parent).as_posix(), ids))
    return tuple(found)


def _tests(body: Sequence[ast.stmt], prefix: str, inherited: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            own = (*inherited, *_marks(node.decorator_list))
            yield from _tests(node.body, f"{prefix}{node.name}::", own)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            yield f"{prefix}{node.name}", tuple(dict.fromkeys((*inherited, *_marks(node.decorator_list))))


def _marks_of_module(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            yield from _marks([node.value])


def _marks(expressions: Sequence[ast.expr]) -> Iterator[str]:
    """Yield the ids of every `pytest.mark.kep(...)` in the expressions, those of parameters among them."""
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.kep":
                yield from (str(arg.value) for arg in node.args if isinstance(arg, ast.Constant))


def by_id(found: Sequence[Proof]) -> Mapping[str, list[str]]:
    """Return where each id is proved."""
    table: dict[str, list[str]] = {}
    for proof in found:
        for name in proof.ids:
            table.setdefault(name, []).append(proof.where)
    return table


def problems(listed: Sequence[Requirement], table: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what is wrong: requirements without a test, marks of what is not listed."""
    known = {item.id for item in listed}
    missing = [f"{item.id} has no test: {item.title}" for item in listed if item.id not in table and item.later is None]
    unknown = [
        f"{name} is not listed ({places[0]})"
        for name, places in sorted(table.items())
        if name not in known and not _UNLISTED.match(name)
    ]
    return missing + unknown


def document(listed: Sequence[Requirement], table: Mapping[str, Sequence[str]]) -> str:
    """Return docs/kep-coverage.md."""
    lines = [
        "# Which test proves which sentence of the KEP",
        "",
        "Made by `make kep`. Requirements (E) and situations (D) of KEP-5690 in this project's words, and the tests and",
        "scenario files that prove them. F numbers at the end are this project's own decisions ([deviations](deviations.md)).",
    ]
    for letter, heading in _HEADINGS.items():
        lines += ["", f"## {heading}", "", "| id | what must hold | proved by |", "| --- | --- | --- |"]
        lines += [
            f"| {item.id} | {item.title} | {_places(table.get(item.id, ()), item.later)} |"
            for item in listed
            if item.id.startswith(letter)
        ]
    others = sorted((name for name in table if _UNLISTED.match(name)), key=lambda name: (name[0], int(name[1:])))
    lines += ["", "## Decisions", "", "| id | proved by |", "| --- | --- |"]
    lines += [f"| {name} | {_places(table[name], None)} |" for name in others]
    return "\n".join(lines) + "\n"


def _places(places: Sequence[str], later: int | None) -> str:
    if not places:
        return f"later: issue {later}"
    return "<br>".join(f"`{place.removeprefix('tests/')}`" for place in places)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, write the document, and say what is missing."""
    parser = argparse.ArgumentParser(description="Which test proves which requirement of the KEP.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the document is not up to date")
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong and the sum")
    options = parser.parse_args(argv)
    listed, table = requirements(), by_id(proofs())
    text = document(listed, table)
    wrong = problems(listed, table)
    if options.check:
        if not DOCUMENT.exists() or DOCUMENT.read_text(encoding="utf-8") != text:
            wrong.append(f"{DOCUMENT.relative_to(ROOT)} is not up to date: make kep")
    else:
        DOCUMENT.write_text(text, encoding="utf-8")
    if not options.quiet:
        for item in listed:
            print(f"{item.id:5} {item.title}")
            places = table.get(item.id, ())
            for place in places:
                print(f"        {place}")
            if not places:
                print(f"        later: issue {item.later}" if item.later else "        NO TEST")
    covered = sum(item.id in table for item in listed)
    waiting = sum(item.id not in table and item.later is not None for item in listed)
    print(f"{covered} of {len(listed)} covered, {waiting} later, {len(wrong)} problems")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
