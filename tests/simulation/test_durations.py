"""Durations of scenario files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earmark.simulation.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0), ("0s", 0.0), ("90s", 90.0), ("5m", 300.0), ("1h2m", 3720.0), ("1.5s", 1.5), ("150ms", 0.15),
        (".5s", 0.5), ("2.s", 2.0), ("1h0m0.25s", 3600.25), ("7us", 7e-6), ("7µs", 7e-6), ("3ns", 3e-9), ("2m1h", 3720.0),
    ],
)  # fmt: skip
def test_a_go_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "-5s", "+5s", "1 s", "1d", "5S", "1h2", "1e3s", "٣s", "."])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(min_value=0, max_value=10**16))
def test_a_written_duration_reads_back(nanoseconds: int) -> None:
    seconds = nanoseconds / 10**9
    assert round(parse_duration(format_duration(seconds)) * 10**9) == round(seconds * 10**9)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (90.5, "1m30.5s"), (3600, "1h"), (0.1 + 0.2, "0.3s"), (61, "1m1s")]
)
def test_a_duration_is_written_shortly(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
