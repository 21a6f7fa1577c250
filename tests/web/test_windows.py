"""Settling windows as the page keeps them: the open ones, and the newest that have ended."""

from __future__ import annotations

from earmark.web.windows import ENDED_KEPT, SHOWN, Windows, window
from support.web_objects import at, settlement, window_of


def test_a_window_has_its_moments_in_seconds_and_its_phase() -> None:
    data = window_of("urgent", "a/gpu-0", "train", claim="work", phase="deallocating").data()
    assert (data["preemptor"], data["node"], data["victims"]) == ("default/urgent", "a", ["default/train"])
    assert (data["t0"], data["t1"], data["t3"], data["t4"]) == (at(0).timestamp(), at(1).timestamp(), None, None)
    assert (data["phase"], data["awaited"]) == ("deallocating", ["default/work"])


def test_a_claim_that_is_deallocated_is_not_awaited() -> None:
    assert window_of("urgent", "a/gpu-0", "train", claim="work", phase="held").awaited == ()


def test_a_window_has_one_row_in_its_newest_state() -> None:
    windows = Windows()
    for phase in ("terminating", "held"):
        windows.put(window_of("urgent", "a/gpu-0", "train", phase=phase))
    assert [item.phase for item in windows.open()] == ["held"]


def test_ended_windows_are_kept_up_to_a_number_and_open_ones_all() -> None:
    windows = Windows()
    for number in range(200):
        for phase in ("terminating", "ended"):
            message = settlement("urgent", "a/gpu-0", "train", phase=phase, generation=number, t0=at(number))
            windows.put(window(message))
    for number in range(SHOWN + 5):
        windows.put(window(settlement("other", "a/gpu-0", "train", generation=number)))
    assert len(windows.known()) == ENDED_KEPT + SHOWN + 5
    data = windows.data()
    assert len(data["rows"]) == SHOWN  # type: ignore[arg-type]
    assert data["more"] == ENDED_KEPT + 5


def test_open_windows_are_shown_before_ended_ones_and_new_before_old() -> None:
    windows = Windows()
    for name, seconds, phase in (("old", 0, "terminating"), ("new", 9, "terminating"), ("done", 20, "ended")):
        windows.put(window(settlement(name, "a/gpu-0", "train", phase=phase, t0=at(seconds))))
    rows = windows.data()["rows"]
    assert [row["preemptor"] for row in rows] == ["default/new", "default/old", "default/done"]  # type: ignore[attr-defined]
