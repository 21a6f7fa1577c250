"""What the KEP says of the product as a whole: the gate's life, the load on the API, what can be observed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from earmark.kube.resources import BY_KIND
from earmark.simulation import play
from earmark.simulation.expectation import Expectation
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario, TimelineEntry
from earmark.simulation.steps.expect import Expect
from support.kep_runs import Ledger, Switch, with_turns
from support.simulation_player import OWN, complaint, scenario

ANNOTATION = "earmark.dev/nomination"


def window() -> Scenario:
    """Return the settling window (decided at 20 s, victim gone at 28 s, claim free at 38 s) without expectations."""
    found = scenario(OWN / "window.yaml", "window")
    kept = [entry for entry in found.timeline if not isinstance(entry.step, Expect)]
    return replace(found, timeline=(*kept, TimelineEntry(None, Expect(Expectation()))))


def switched(on: bool, turns: list[tuple[float, bool]]) -> tuple[Outcome, Ledger]:
    """Play the window with the gate changed meanwhile."""
    switch, ledger = Switch(on), Ledger()
    outcome = play(
        with_turns(window(), switch, turns), hooks=replace(ledger.hooks(), builders=switch.builders)
    )  # fmt: skip
    assert outcome.ok, complaint(outcome)
    return outcome, ledger


@pytest.mark.kep("E4", "E7", "E109")
def test_switched_off_in_the_window_nothing_is_held_and_nothing_is_left() -> None:
    outcome, ledger = switched(True, [(24.0, False)])
    assert outcome.evicted == ("tenant",)
    assert outcome.pods["guest"].node == "east"
    assert outcome.pods["guest"].nominated_node is None
    assert ANNOTATION not in ledger.stored("Pod", "guest")["metadata"].get("annotations", {})


@pytest.mark.kep("E6")
def test_switched_off_before_nobody_is_evicted() -> None:
    outcome, _ = switched(True, [(10.0, False)])
    assert outcome.evicted == ()
    assert outcome.pods["guest"].node is None


@pytest.mark.kep("E3", "E5")
@pytest.mark.parametrize("turns", [[(30.0, True)], [(5.0, True), (10.0, False), (30.0, True)]])
def test_switched_on_later_it_works_like_on_from_the_start(turns: list[tuple[float, bool]]) -> None:
    outcome, _ = switched(False, turns)
    assert [(eviction.pod, eviction.at >= 30) for eviction in outcome.evictions] == [("tenant", True)]
    assert outcome.pods["guest"].node == "east"


@pytest.mark.kep("E11")
def test_the_plugin_writes_nothing_but_the_claims_of_pods_that_it_binds() -> None:
    ledger = Ledger()
    play(window(), hooks=ledger.hooks())
    # The event at the end of a window is one of the deviations.
    plugin = [
        (at, verb, kind, sub)
        for at, client, verb, kind, _, sub in ledger.wrote
        if client == "dynamicresources" and kind != "Event"
    ]
    claim = [("patch", "ResourceClaim", ""), ("patch", "ResourceClaim", "status")]
    # Of the tenant when it is bound, of the guest when the device is free; nothing in the window.
    assert [(verb, kind, sub) for at, verb, kind, sub in plugin if at < 20] == claim
    assert [(verb, kind, sub) for at, verb, kind, sub in plugin if 20 <= at < 38] == []
    assert [(verb, kind, sub) for at, verb, kind, sub in plugin if at >= 38] == claim


@pytest.mark.kep("E11", "E110", "E111")
def test_in_the_window_victims_are_marked_and_deleted_and_that_is_all() -> None:
    ledger = Ledger()
    play(window(), hooks=ledger.hooks())
    writes = [
        (client, verb, kind, name if kind == "Pod" else "", sub)
        for at, client, verb, kind, name, sub in ledger.wrote
        if 20 <= at < 38 and client not in ("nodes", "claimcontroller")
    ]
    preempting = [item for item in writes if item[0] == "preemption"]
    assert preempting == [
        ("preemption", "patch", "Pod", "tenant", "status"),
        ("preemption", "delete", "Pod", "tenant", ""),
        ("preemption", "create", "Event", "", ""),
    ]
    others = {item for item in writes if item[0] != "preemption"}
    assert others <= {("framework", "patch", "Pod", "guest", "status"), ("framework", "create", "Event", "", "")}


@pytest.mark.kep("E10")
def test_the_api_holds_nothing_that_kubernetes_does_not_have() -> None:
    groups = {resource.api_version.rpartition("/")[0] for resource in BY_KIND.values()}
    assert all(not group or group in {"apps", "policy"} or group.endswith(".k8s.io") for group in groups)
    ledger = Ledger()
    play(window(), hooks=ledger.hooks())
    assert {kind for _, _, verb, kind, _, _ in ledger.wrote if verb == "create"} <= {
        "Event",
        "ResourceClaim",
        "Pod",
        "Lease",
    }


@pytest.mark.kep("E96", "E97")
def test_durations_and_counts_are_the_schedulers_own_without_a_label_for_devices() -> None:
    ledger = Ledger(all_durations=True)
    play(window(), hooks=ledger.hooks())
    seen = {
        (sample.labels["plugin"], sample.labels["extension_point"])
        for sample in ledger.samples("framework", "scheduler_plugin_execution_duration_seconds_count")
        if sample.value
    }
    assert {("DynamicResources", "Filter"), ("DefaultPreemption", "PostFilter")} <= seen
    for name in ("scheduler_preemption_victims_count", "scheduler_preemption_attempts_total"):
        (sample,) = ledger.samples("preemption", name)
        assert sample.value >= 1
        assert not sample.labels
