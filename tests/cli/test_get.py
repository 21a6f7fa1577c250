"""How `earmark get` lays out a listing."""

from __future__ import annotations

import pytest

from earmark.cli.get import Listing, print_table
from earmark.cli.output import Terminal

LISTING = Listing(
    ("NAME", "DEVICES", "REASON"),
    [
        ("incident", ["gpu-a/gpu-0", "gpu-a/gpu-1"], "0/2 nodes are available: 2 cannot allocate all claims."),
        ("serving", [], ""),
    ],
)


def test_what_is_not_a_terminal_gets_one_line_a_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(LISTING, Terminal(), None)
    assert capsys.readouterr().out.splitlines() == [
        "NAME      DEVICES                   REASON",
        "incident  gpu-a/gpu-0, gpu-a/gpu-1  0/2 nodes are available: 2 cannot allocate all claims.",
        "serving",
    ]


def test_a_narrow_terminal_gets_the_last_columns_below_their_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(LISTING, Terminal(), 40)
    assert capsys.readouterr().out.splitlines() == [
        "NAME      DEVICES",
        "incident  gpu-a/gpu-0, gpu-a/gpu-1",
        "    REASON: 0/2 nodes are available: 2",
        "      cannot allocate all claims.",
        "serving",
    ]
