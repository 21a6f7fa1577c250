"""The two source roots, the marks on tests, the make targets: what nobody should have to remember."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from earmark.runtime.process import SERVICES

ROOTS = ("services/earmark", "clients/earmark")


def packages(repository: Path) -> list[Path]:
    return sorted(
        folder
        for root in ROOTS
        for folder in (repository / root).iterdir()
        if folder.is_dir() and folder.name != "__pycache__" and any(folder.glob("*.py"))
    )


def test_the_namespace_has_no_init_so_that_both_roots_are_seen(repository: Path) -> None:
    assert [root for root in ROOTS if (repository / root / "__init__.py").exists()] == []


def test_no_package_name_is_in_both_roots(repository: Path) -> None:
    names = [folder.name for folder in packages(repository)]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_package_says_what_lives_there_and_is_typed(repository: Path) -> None:
    for folder in packages(repository):
        init = folder / "__init__.py"
        assert init.exists(), f"{folder}: no __init__.py"
        assert ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))), f"{init}: no docstring"
        assert (folder / "py.typed").exists(), f"{folder}: no py.typed"


def test_every_service_of_the_supervisor_can_be_run(repository: Path) -> None:
    assert [name for name in SERVICES if not (repository / "services/earmark" / name / "__main__.py").exists()] == []


def _kep_ids(repository: Path) -> list[tuple[str, str]]:
    """The file and requirement of every mark with a literal; computed ones are checked where they are made from."""
    return [
        (str(file.relative_to(repository)), str(argument.value))
        for file in sorted((repository / "tests").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.kep")
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]


def test_every_kep_mark_is_well_formed(repository: Path) -> None:
    assert [(file, name) for file, name in _kep_ids(repository) if not re.fullmatch(r"[EDFR][0-9]{1,3}", name)] == []


def test_every_kep_mark_names_a_requirement_that_exists(repository: Path, shared: Path) -> None:
    known = set(re.findall(r"\bR[0-9]{1,3}\b", (shared / "reports.md").read_text(encoding="utf-8")))
    section = ""
    for line in (shared / "reference/kep-requirements.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"##+ ([DEF])", line):
            section = heading[1]
        elif number := re.match(r"([0-9]+)\. ", line):
            known.add(f"{section}{number[1]}")
    assert [(file, name) for file, name in _kep_ids(repository) if name not in known] == []


def test_no_test_folder_is_a_package(repository: Path) -> None:
    assert list((repository / "tests").rglob("__init__.py")) == []


def test_every_make_target_is_explained(repository: Path) -> None:
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    targets = [target for target in phony[1].split() if re.fullmatch(r"[a-z-]+", target)]
    shown = subprocess.run(["make", "-s", "help"], cwd=repository, capture_output=True, text=True, check=True).stdout
    assert [target for target in targets if not re.search(rf"^  {target} ", shown, re.MULTILINE)] == []


def test_the_readme_names_the_two_commands(repository: Path) -> None:
    readme = (repository / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_every_link_of_the_documents_leads_somewhere(repository: Path) -> None:
    broken = []
    for document in [repository / "README.md", *sorted((repository / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if "://" not in target and not (document.parent / target).exists():
                broken.append(f"{document.name}: {target}")
    assert broken == []


def test_the_generated_code_and_the_installed_libraries_agree_on_their_versions(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = {
        requirement.partition(">=")[2]
        for requirement in [*project["dependencies"], *project["optional-dependencies"]["dev"]]
        if requirement.startswith("grpcio")
    }
    assert len(bounds) == 1


@pytest.mark.parametrize("word", ["/work/", "/root/"])
def test_no_path_of_a_machine_is_in_the_sources(repository: Path, word: str) -> None:
    found = [
        str(file.relative_to(repository))
        for folder in ("services", "clients", "tests", "docs", "deploy", "examples", "protos")
        for file in sorted((repository / folder).rglob("*"))
        if file.suffix in {".py", ".md", ".toml", ".yaml", ".proto", ".sh"}
        and file != Path(__file__).resolve()
        and word in file.read_text(encoding="utf-8", errors="replace")
    ]
    assert found == []
