"""The KEP's way against simpler ones: a regression test of its choice, over the shared scenarios and the project's own."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from earmark.simulation.compare import MODES, Figures, Mode, compare, measured
from earmark.simulation.loader import load_scenarios
from earmark.simulation.scenario import Scenario
from support.simulation_player import OWN, SHARED, scenario

NOMINATION, NO_NOMINATION, VICTIMS_CLAIMS, DEALLOCATING = MODES


def shared() -> list[object]:
    if not SHARED.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(reason="../shared/scenarios is not there"))]
    found = [item for path in sorted(SHARED.glob("*.yaml")) for item in load_scenarios(path)]
    return [pytest.param(item, id=item.name) for item in found if item.feature_gates.get("DRAPreemption")]


def in_mode(mode: Mode, file: str, name: str) -> Figures:
    return measured(scenario(OWN / file, name), mode)


@pytest.mark.kep("E101", "E102")
@pytest.mark.parametrize("played", shared())
def test_the_nomination_steals_nothing_and_nobody_evicts_fewer(played: Scenario) -> None:
    nomination = measured(played, NOMINATION)
    assert nomination.second_evictions == 0
    assert nomination.stolen == 0
    for mode in MODES[1:]:
        assert measured(played, mode).evictions >= nomination.evictions, mode.name


@pytest.mark.kep("D1", "E81")
def test_without_a_nomination_the_preemptor_evicts_again_in_the_window() -> None:
    story = ("d-waiting.yaml", "no-second-victim-before-the-first-is-free")
    assert in_mode(NOMINATION, *story).second_evictions == 0
    assert in_mode(NO_NOMINATION, *story).second_evictions == 1


@pytest.mark.kep("D3")
@pytest.mark.parametrize("mode", [NO_NOMINATION, DEALLOCATING], ids=lambda mode: mode.name)
def test_without_a_hold_a_lesser_pod_steals(mode: Mode) -> None:
    story = ("d-holding.yaml", "a-lesser-rival-does-not-get-it")
    assert in_mode(NOMINATION, *story).stolen == 0
    assert in_mode(mode, *story).stolen == 1


@pytest.mark.kep("D7", "E68")
def test_holding_the_victims_claims_keeps_the_surplus_idle() -> None:
    story = ("d-holding.yaml", "the-surplus-is-nobodys-until-it-is-free")
    less, more = in_mode(NOMINATION, *story), in_mode(VICTIMS_CLAIMS, *story)
    assert (less.stolen, more.stolen) == (0, 0)
    assert more.idle_device_seconds > less.idle_device_seconds + 60


@pytest.mark.kep("E110")
def test_deallocating_by_itself_is_faster_and_that_is_all() -> None:
    story = ("d-waiting.yaml", "no-second-victim-before-the-first-is-free")
    waiting, deallocating = in_mode(NOMINATION, *story), in_mode(DEALLOCATING, *story)
    assert waiting.times_to_schedule == (65.0,)
    assert deallocating.times_to_schedule == (5.0,)


def test_a_preemptor_that_takes_what_its_own_victims_went_for_is_no_thief() -> None:
    assert in_mode(NOMINATION, "worked-cases.yaml", "forty-and-forty-of-eighty").stolen == 0


def test_the_same_seed_gives_the_same_figures() -> None:
    story = scenario(OWN / "worked-cases.yaml", "two-devices-one-victim-two-preemptors")
    assert measured(story, NO_NOMINATION, seed=3) == measured(story, NO_NOMINATION, seed=3)


def test_csv_has_a_line_for_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare([OWN / "worked-cases.yaml"], seeds=2, csv=True) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 3 * len(MODES) * 2
    assert {row["seed"] for row in rows} == {"1", "2"}
    assert {row["evictions"] for row in rows if row["mode"] == "nomination"} == {"1", "2"}


def test_the_table_names_every_mode_and_leaves_out_what_has_the_gate_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert compare([OWN / "refusals.yaml"], seeds=1, csv=False) == 0
    printed = capsys.readouterr().out
    assert all(mode.name in printed for mode in MODES)
    assert "switched-off" not in printed
    assert "1 scenario(s) with the gate off left out" in printed


def test_a_file_that_cannot_be_used_is_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("kind: Scenario\n")
    assert compare([bad], seeds=1, csv=False) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
