"""The ids of a settling window's trace."""

from __future__ import annotations

from earmark.runtime.settling_trace import settling_trace


def test_a_window_has_the_same_trace_everywhere() -> None:
    assert settling_trace("uid", 7) == settling_trace("uid", 7)
    assert settling_trace("uid", 7) != settling_trace("uid", 8)
    trace, span = settling_trace("uid", 7)
    assert 0 < trace < 1 << 128
    assert 0 < span < 1 << 64
    # Services of different versions add to one trace: it must never change.
    assert f"{trace:032x}/{span:016x}" == "8b1ae37798d6cdfa541b92d17dce75a5/369ff893b1a5a947"
