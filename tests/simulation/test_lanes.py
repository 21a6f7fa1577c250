"""The picture of a run: lanes, moments, legend."""

from __future__ import annotations

from earmark.simulation import play
from earmark.simulation.lanes import Stage, lanes, picture
from earmark.simulation.report import LogEntry, SettlementRecord
from support.simulation_player import OWN, scenario

LOG = (
    LogEntry(0, "scenario", "created", {"object": "Pod/v"}),
    LogEntry(0, "dynamicresources", "allocated", {"claim": "v-dev", "devices": ["n/d0"]}),
    LogEntry(0, "dynamicresources", "reserved", {"claim": "v-dev", "pod": "v"}),
    LogEntry(0, "framework", "bound", {"pod": "v", "node": "n"}),
    LogEntry(10, "scenario", "created", {"object": "Pod/p"}),
    LogEntry(10, "framework", "nominated", {"pod": "p", "node": "n"}),
    LogEntry(10, "preemption", "terminating", {"pod": "v", "grace": 5}),
    LogEntry(15, "nodes", "deleted", {"object": "Pod/v"}),
    LogEntry(30, "claimcontroller", "deallocated", {"claim": "v-dev", "devices": ["n/d0"]}),
    LogEntry(30, "dynamicresources", "allocated", {"claim": "p-dev", "devices": ["n/d0"]}),
    LogEntry(30, "dynamicresources", "reserved", {"claim": "p-dev", "pod": "p"}),
    LogEntry(30, "framework", "bound", {"pod": "p", "node": "n"}),
)
WINDOW = SettlementRecord("p", "n", ("v",), ("v-dev",), 10, 15, 30, 30)


def test_a_lane_has_the_stages_of_its_pod() -> None:
    victim, preemptor = lanes(LOG)
    assert [victim.stage(at) for at in (5, 12, 20, 31)] == [
        Stage.RUNNING,
        Stage.TERMINATING,
        Stage.LINGERING,
        Stage.GONE,
    ]
    assert [preemptor.stage(at) for at in (5, 12, 31)] == [Stage.GONE, Stage.NOMINATED, Stage.RUNNING]
    assert (victim.devices, preemptor.devices) == (("n/d0",), ("n/d0",))


def test_a_pod_that_is_deleted_without_a_claim_leaves_nothing() -> None:
    log = (*LOG[:1], LogEntry(3, "scenario", "deleted", {"object": "Pod/v"}))
    assert lanes(log)[0].stage(4) is Stage.GONE


def test_the_moments_stand_where_the_lanes_change() -> None:
    marks, victim, preemptor, legend = (line.plain for line in picture(LOG, [WINDOW], width=60))
    assert marks.index("t0 10s") == victim.index("▒") == preemptor.index("┄")
    assert marks.index("t1 15s") == victim.index("░")
    assert abs(marks.index("t3 30s") - preemptor.index("█")) <= 1
    assert marks.endswith("t3 30s t4 30s")
    assert "is gone, its claim is still allocated" in legend
    assert "waits" not in legend


def test_without_a_window_there_is_no_picture() -> None:
    assert list(picture(LOG, [])) == []


def test_of_many_pods_only_those_are_shown_that_something_happens_to() -> None:
    idle = tuple(
        entry
        for number in range(40)
        for entry in (
            LogEntry(0, "scenario", "created", {"object": f"Pod/idle-{number}"}),
            LogEntry(0, "framework", "bound", {"pod": f"idle-{number}", "node": "n"}),
        )
    )
    assert len(list(picture((*idle, *LOG), [WINDOW]))) == 4


def test_moments_are_in_their_order_though_t3_comes_before_t1() -> None:
    outcome = play(scenario(OWN / "d-holding.yaml", "a-lesser-rival-does-not-get-it"), seed=1)
    marks = next(iter(picture(outcome.log, outcome.settlements))).plain
    assert marks.index("t0") < marks.index("t3") < marks.index("t1")
