"""A log file that begins anew when it is full, with its predecessor beside it: services run for months."""

from __future__ import annotations

from pathlib import Path

MOST_BYTES = 32 * 2**20


class LogFile:
    """Appends lines to a file. A context manager: leaving closes it."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Open `path`. Before it would pass `most_bytes` it becomes PATH.1, in place of an older one."""
        self._path = path
        self._most_bytes = most_bytes
        self._file = path.open("ab")

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def write(self, line: bytes) -> None:
        """Add a line, at once to be read by whoever follows the file."""
        if self._file.tell() and self._file.tell() + len(line) > self._most_bytes:
            self._file.close()
            self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            self._file = self._path.open("ab")
        self._file.write(line)
        self._file.flush()
