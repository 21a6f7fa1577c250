"""Replaces functions and methods for as long as a fault is in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Patches:
    """What has been replaced, and how it was."""

    _undo: list[tuple[Any, str, Any]] = field(default_factory=list)

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Put `make(original)` in the place of an attribute of a module or class."""
        original = vars(owner)[name]
        self._undo.append((owner, name, original))
        setattr(owner, name, make(original))

    def restore(self) -> None:
        """Put everything back."""
        while self._undo:
            owner, name, original = self._undo.pop()
            setattr(owner, name, original)


@contextmanager
def in_place(apply: Callable[[Patches], None]) -> Iterator[None]:
    """Run the block with a fault in place."""
    patches = Patches()
    try:
        apply(patches)
        yield
    finally:
        patches.restore()
