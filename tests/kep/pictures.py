"""Puts what the product prints into documents: after each `<!-- picture: FILE SCENARIO -->`, in a fenced block.

`python tests/kep/pictures.py` writes docs/settling-window.md anew; a test compares.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from earmark.simulation import play
from earmark.simulation.compare import MODES, measured
from earmark.simulation.compare.run import print_table
from earmark.simulation.lanes import picture
from earmark.simulation.loader import load_scenarios
from earmark.simulation.scenario import Scenario

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "docs" / "settling-window.md",)

_MARK = re.compile(r"^<!-- (picture|compare): (\S+) (\S+) -->\n+(?:```text\n.*?^```\n+)?", re.MULTILINE | re.DOTALL)


def filled(text: str) -> str:
    """Return a document with every picture made anew."""
    return _MARK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    kind, file, name = found.groups()
    scenario = next(item for item in load_scenarios(ROOT / file) if item.name == name)
    printed = _compared(scenario) if kind == "compare" else _drawn(scenario)
    return f"<!-- {kind}: {file} {name} -->\n\n```text\n{printed}\n```\n\n"


def _drawn(scenario: Scenario) -> str:
    outcome = play(scenario, seed=1)
    return "\n".join(line.plain.rstrip() for line in picture(outcome.log, outcome.settlements))


def _compared(scenario: Scenario) -> str:
    console = Console(file=io.StringIO(), width=118, highlight=False)
    print_table([(scenario, mode, [measured(scenario, mode)]) for mode in MODES], console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines() if line.strip())


def main() -> int:
    """Write the documents."""
    for path in DOCUMENTS:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
