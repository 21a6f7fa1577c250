"""docs/cli.md is the program's help."""

from __future__ import annotations

from pathlib import Path

from earmark.cli.help_document import document


def test_the_document_is_what_the_program_says(repository: Path) -> None:
    assert (repository / "docs/cli.md").read_text(encoding="utf-8") == document(), (
        "make it anew: python -m earmark.cli.help_document > docs/cli.md"
    )
