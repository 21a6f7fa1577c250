"""A log that does not grow for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from earmark.runtime.logfile import LogFile


def test_a_full_file_begins_anew_and_one_older_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with LogFile(path, most_bytes=10) as log:
        for line in (b"one\n", b"two\n", b"three\n", b"four\n", b"five\n"):
            log.write(line)
    assert path.read_bytes() == b"four\nfive\n"
    assert (tmp_path / "a.log.1").read_bytes() == b"three\n"


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    for line in (b"one\n", b"two\n", b"three\n"):
        with LogFile(path, most_bytes=10) as log:
            log.write(line)
    assert (path.read_bytes(), (tmp_path / "a.log.1").read_bytes()) == (b"three\n", b"one\ntwo\n")


def test_a_line_that_is_longer_than_a_file_is_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with LogFile(path, most_bytes=10) as log:
        log.write(b"x" * 20)
    assert path.read_bytes() == b"x" * 20
    assert not (tmp_path / "a.log.1").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_line_that_cannot_be_written_is_lost_and_the_next_one_is_tried(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.symlink_to("/dev/full")
    with LogFile(path) as log:
        log.write(b"one\n")
        path.unlink()
        log.write(b"two\n")
    assert log.lost == 1
    assert path.read_bytes() == b"two\n"
