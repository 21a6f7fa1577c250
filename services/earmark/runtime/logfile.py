"""A log file that begins anew when it is full, with its predecessor beside it: services run for months.

A line that cannot be written, for example because the disk is full, is lost; whoever writes goes on.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import BinaryIO

MOST_BYTES = 32 * 2**20


class LogFile:
    """Appends lines to a file. A context manager: leaving closes it."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Open `path`. Before it would pass `most_bytes` it becomes PATH.1, in place of an older one."""
        self._path = path
        self._most_bytes = most_bytes
        self._file: BinaryIO | None = None
        # Lines that could not be written.
        self.lost = 0

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def write(self, line: bytes) -> None:
        """Add a line, at once to be read by whoever follows the file."""
        try:
            self._write(line)
        except OSError:
            self.lost += 1
            self._close()

    def _write(self, line: bytes) -> None:
        if self._file is None:
            # Without a buffer nothing is left to be written, and to fail, when it is closed.
            self._file = self._path.open("ab", buffering=0)
        if self._file.tell() and self._file.tell() + len(line) > self._most_bytes:
            self._close()
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._file = self._path.open("ab", buffering=0)
        self._file.write(line)

    def _close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
