"""Scenario files as stories of the KEP: what the comments above each scenario say.

    # kep: D2 E69                        what the scenario proves
    # evicted without the gate: porter   whom preemption evicts with DRAPreemption off; nobody where it is not said

The format of scenario files is for other implementations too, so that what only this project needs is a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"^metadata:\s*\{name:\s*([\w.-]+)\}|^\s+name:\s*([\w.-]+)\s*$", re.MULTILINE)
_KEP = re.compile(r"^# kep:(.*)$", re.MULTILINE)
_OFF = re.compile(r"^# evicted without the gate:(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Story:
    """What the project says about one scenario."""

    file: Path
    name: str
    proves: tuple[str, ...] = ()
    evicted_without_gate: tuple[str, ...] = ()


def stories(path: Path) -> tuple[Story, ...]:
    """Return the stories of a scenario file, in order."""
    documents = re.split(r"^---\s*$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return tuple(_story(path, text) for text in documents if _NAME.search(text))


def _story(path: Path, text: str) -> Story:
    found = _NAME.search(text)
    assert found is not None
    return Story(path, found[1] or found[2], _words(_KEP, text), _words(_OFF, text))


def _words(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return tuple(word for line in pattern.findall(text) for word in re.split(r"[\s,]+", line.strip()) if word)
