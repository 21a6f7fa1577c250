"""Claim nominations and victim claims: how they begin, what keeps them, how they end."""

from __future__ import annotations

import msgspec
import pytest

from earmark.dynamicresources import record
from earmark.dynamicresources.happened import HoldReleased, NominationEnded, NominationRecorded, VictimClaimsForgotten
from earmark.dynamicresources.nominating import Known, Removal
from earmark.dynamicresources.nominations import Phase
from earmark.dynamicresources.statuses import Code
from earmark.kube import objects
from support.dra_cluster import NOW, Cluster, allocated, ref

STILL = "not eligible due to resource claims on the nominated node still being deallocated."


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    return made


def full(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.running("w", ["gpu-1"])
    cluster.pending("p")


# --- AddNominatedPod ---------------------------------------------------------------------------------------------------


@pytest.mark.kep("E36", "E37", "E38", "E40", "E72")
def test_a_nomination_names_the_devices_and_the_victim_claims(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    assert cluster.held("p") == ("gpu-1",)
    assert cluster.victim_claims("n1") == ["w-claim"]
    nomination = cluster.world.nominations.live["uid-p"]
    assert (nomination.node, nomination.phase) == ("n1", Phase.CONFIRMED)


@pytest.mark.kep("E17", "E110", "E111")
def test_a_nomination_changes_no_claim(cluster: Cluster) -> None:
    full(cluster)
    ledger, claims = cluster.world.ledger, cluster.world.claims
    cluster.nominate("p", "n1", ["w"])
    assert cluster.world.ledger is ledger
    assert cluster.world.claims is claims


@pytest.mark.kep("F7")
def test_without_devices_to_name_the_preemption_fails_before_anybody_is_deleted(cluster: Cluster) -> None:
    full(cluster)
    answer = cluster.propose("p", "n1", [])
    assert answer.status.code is Code.UNSCHEDULABLE
    assert cluster.held("p") is None
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("E39")
def test_results_avoid_what_is_held_for_others(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["v", "w"])
    cluster.pending("p2")
    cluster.nominate("p2", "n1", ["v", "w"], nominated=["p"])
    assert (cluster.held("p"), cluster.held("p2")) == (("gpu-0",), ("gpu-1",))


@pytest.mark.kep("F13")
def test_claims_that_are_free_already_are_not_recorded(cluster: Cluster) -> None:
    full(cluster)
    cluster.deallocate("w-claim")
    cluster.nominate("p", "n1", ["w"])
    assert cluster.victim_claims("n1") == []
    recorded = [event for event in cluster.happened if isinstance(event, NominationRecorded)]
    assert recorded[-1].settled


@pytest.mark.kep("F26", "F23")
def test_a_preemptor_without_claims_has_victim_claims_but_no_results(cluster: Cluster) -> None:
    full(cluster)
    cluster.add_pod("cpu", priority=100)
    cluster.nominate("cpu", "n1", ["v"])
    assert cluster.held("cpu") == ()
    assert cluster.victim_claims("n1") == ["v-claim"]
    assert cluster.core.eligible_to_preempt("uid-cpu", "n1") == (True, "")


@pytest.mark.kep("E8")
def test_a_preemption_without_devices_leaves_no_nomination(cluster: Cluster) -> None:
    cluster.add_pod("victim", node="n1")
    cluster.add_pod("cpu", priority=100)
    cluster.nominate("cpu", "n1", ["victim"])
    assert cluster.held("cpu") is None


@pytest.mark.kep("F45")
def test_a_member_of_a_pod_group_gets_no_nomination(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.add_claim("c")
    cluster.add_pod("member", ["c"], priority=100, scheduling_group={"podGroupName": "g"})
    cluster.nominate("member", "n1", ["v"])
    assert cluster.held("member") is None
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("E2", "E6")
def test_without_the_gate_nothing_is_recorded() -> None:
    cluster = Cluster(gate=False)
    cluster.add_slice("n1", ["gpu-0"])
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    assert cluster.propose("p", "n1", ["v"]).status.success
    assert cluster.held("p") is None


@pytest.mark.kep("D21")
def test_a_victim_in_pre_bind_has_its_in_flight_claim_awaited(cluster: Cluster) -> None:
    cluster.running("w", ["gpu-1"])
    cluster.pending("v", priority=0)
    cycle = cluster.pre_filter("v")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-0",)
    assert cluster.victim_claims("n1") == ["v-claim"]
    cluster.core.unreserve("uid-v")
    assert cluster.victim_claims("n1") == []


# --- proposals ---------------------------------------------------------------------------------------------------------


def test_a_proposal_holds_at_once(cluster: Cluster) -> None:
    full(cluster)
    cluster.propose("p", "n1", ["w"])
    cluster.deallocate("w-claim")
    cluster.pending("q")
    assert not cluster.filter(cluster.pre_filter("q"), "n1", nominated=["p"])[0].status.success


@pytest.mark.kep("E42")
def test_a_proposal_that_is_not_confirmed_ends_with_the_cycle(cluster: Cluster) -> None:
    full(cluster)
    cycle = cluster.pre_filter("p")
    cluster.propose("p", "n1", ["w"])
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=True, bound_now=False, deleted=False)
    assert cluster.held("p") is None
    assert cluster.victim_claims("n1") == []


def test_a_proposal_that_is_dropped_leaves_the_nomination_that_stands(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cycle = cluster.pre_filter("p")
    cluster.propose("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-0",)
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=True, bound_now=False, deleted=False)
    assert cluster.held("p") == ("gpu-1",)
    assert cluster.victim_claims("n1") == ["w-claim"]


def test_confirming_twice_or_late_changes_nothing(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    world = cluster.world
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation)
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation - 1)
    cluster.core.confirm_nominated_pod("uid-nobody", 5)
    assert cluster.world is world


@pytest.mark.kep("F14")
def test_a_generation_that_was_removed_cannot_be_confirmed(cluster: Cluster) -> None:
    full(cluster)
    cluster.propose("p", "n1", ["w"])
    cluster.remove("p", Removal.EXECUTION_FAILED, ["w"])
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation)
    assert cluster.held("p") is None


# --- the end -----------------------------------------------------------------------------------------------------------


@pytest.mark.kep("E46", "D15")
def test_a_later_preemption_replaces_the_nomination(cluster: Cluster) -> None:
    cluster.add_slice("n2", ["gpu-0"])
    full(cluster)
    cluster.running("x", ["gpu-0"], node="n2")
    cluster.nominate("p", "n1", ["w"])
    cluster.deallocate("w-claim")
    cluster.nominate("p", "n2", ["x"])
    nomination = cluster.world.nominations.live["uid-p"]
    assert nomination.node == "n2"
    released = [event for event in cluster.happened if isinstance(event, HoldReleased)]
    assert [(event.nomination.node, event.free) for event in released] == [("n1", True)]


@pytest.mark.kep("E46")
def test_a_later_preemption_that_concerns_no_devices_replaces_it_too(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation + 1)
    assert cluster.held("p") is None


@pytest.mark.kep("E44", "E45", "E47", "D16", "E104")
@pytest.mark.parametrize("reason", [Removal.POD_DELETED, Removal.CLEARED])
def test_victim_claims_stay_when_the_nomination_goes(cluster: Cluster, reason: Removal) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.remove("p", reason)
    assert cluster.held("p") is None
    assert cluster.victim_claims("n1") == ["w-claim"]
    cluster.deallocate("w-claim")
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("E43")
def test_a_bound_pod_has_no_nomination(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.deallocate("w-claim")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    assert cluster.core.reserve(cycle, "n1").status.success
    assert cluster.world.nominations.live["uid-p"].phase is Phase.ASSIGNED
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=False, bound_now=True, deleted=False)
    assert cluster.held("p") is None
    ended = [event for event in cluster.happened if isinstance(event, NominationEnded)]
    assert [event.reason for event in ended] == ["scheduled"]


@pytest.mark.kep("F9", "D17")
def test_a_removal_of_an_older_generation_is_ignored(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.remove("p", Removal.CLEARED, generation=cluster.generation - 1)
    assert cluster.held("p") == ("gpu-1",)


@pytest.mark.kep("F8", "D18")
def test_a_nomination_ends_when_an_assumed_pod_gives_up(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.deallocate("w-claim")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.core.unreserve("uid-p")
    assert cluster.held("p") is None
    assert [event.free for event in cluster.happened if isinstance(event, HoldReleased)] == [True]


@pytest.mark.kep("D23", "E49", "F15")
def test_a_victim_that_could_not_be_deleted_is_not_waited_for(cluster: Cluster) -> None:
    full(cluster)
    cluster.pending("p2", count=2)
    cluster.nominate("p2", "n1", ["v", "w"])
    cluster.terminate("v")
    cluster.remove("p2", Removal.EXECUTION_FAILED, ["w"])
    assert cluster.held("p2") is None
    assert cluster.victim_claims("n1") == ["v-claim"]
    assert any(isinstance(event, VictimClaimsForgotten) for event in cluster.happened)
    # Again, after the answer was lost.
    cluster.remove("p2", Removal.EXECUTION_FAILED, ["w"])
    assert cluster.victim_claims("n1") == ["v-claim"]


@pytest.mark.kep("F15")
def test_a_victim_that_terminates_anyway_is_waited_for(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.terminate("w")
    cluster.remove("p", Removal.EXECUTION_FAILED, ["w"])
    assert cluster.victim_claims("n1") == ["w-claim"]


@pytest.mark.kep("E73", "F15")
def test_a_failure_does_not_take_away_what_another_preemptor_waits_for(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["v", "w"])
    cluster.pending("p2")
    cluster.nominate("p2", "n1", ["v", "w"], nominated=["p"])
    cluster.remove("p2", Removal.EXECUTION_FAILED, ["v", "w"])
    assert sorted(cluster.victim_claims("n1")) == ["v-claim", "w-claim"]


# --- latches -----------------------------------------------------------------------------------------------------------


@pytest.mark.kep("F11", "E64")
def test_a_victim_claim_settles_when_its_allocation_is_cleared(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["v", "w"])
    cluster.deallocate("v-claim")
    assert cluster.victim_claims("n1") == ["w-claim"]


@pytest.mark.kep("F11")
def test_a_victim_claim_settles_when_it_is_deleted(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.delete_claim("w-claim")
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("F11")
def test_a_victim_claim_settles_when_another_has_its_name(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.add_claim("w-claim", uid="another")
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("D33", "F11")
def test_a_settled_victim_claim_never_comes_back(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.deallocate("w-claim")
    cluster.add_pod("w2", ["w-claim"], node="n1")
    cluster.allocate("w-claim", ["gpu-1"], ["w2"])
    assert cluster.victim_claims("n1") == []
    assert cluster.core.eligible_to_preempt("uid-p", "n1") == (True, "")


@pytest.mark.kep("F12")
def test_another_allocation_without_a_visible_nil_settles(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.allocate("w-claim", ["gpu-0"], ["w"])
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("F12")
def test_the_same_devices_allocated_at_another_time_settle(cluster: Cluster) -> None:
    full(cluster)
    first = msgspec.structs.replace(allocated(["gpu-1"]), allocation_timestamp=NOW)
    cluster.change_claim(
        "w-claim", status=objects.ResourceClaimStatus(allocation=first, reserved_for=cluster._refs(["w"]))
    )
    cluster.nominate("p", "n1", ["w"])
    second = msgspec.structs.replace(first, allocation_timestamp=NOW.replace(hour=1))
    cluster.change_claim(
        "w-claim", status=objects.ResourceClaimStatus(allocation=second, reserved_for=cluster._refs(["w"]))
    )
    assert cluster.victim_claims("n1") == []


@pytest.mark.kep("F12", "D22")
def test_an_in_flight_victim_claim_that_gets_written_is_still_awaited(cluster: Cluster) -> None:
    cluster.running("w", ["gpu-1"])
    cluster.pending("v", priority=0)
    cycle = cluster.pre_filter("v")
    cluster.filter(cycle, "n1")
    reserved = cluster.core.reserve(cycle, "n1").reservation
    assert reserved is not None
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    written = msgspec.structs.replace(reserved.allocations["uid-v-claim"], allocation_timestamp=NOW)
    status = objects.ResourceClaimStatus(allocation=written, reserved_for=cluster._refs(["v"]))
    cluster.change_claim("v-claim", status=status)
    assert cluster.victim_claims("n1") == ["v-claim"]
    cluster.deallocate("v-claim")
    # Still in flight: somebody may be about to write it.
    assert cluster.victim_claims("n1") == ["v-claim"]
    cluster.core.unreserve("uid-v")
    assert cluster.victim_claims("n1") == []


def test_other_changes_of_a_victim_claim_do_not_settle_it(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.reserve_for("w-claim", [])
    cluster.change_claim("w-claim", finalizers=("x",))
    assert cluster.victim_claims("n1") == ["w-claim"]


def test_a_victim_claim_that_a_new_pod_uses_is_not_waited_for(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.add_pod("sharer", ["w-claim"], node="n1", priority=100)
    cluster.reserve_for("w-claim", ["w", "sharer"])
    assert cluster.victim_claims("n1") == []


# --- eligibility -------------------------------------------------------------------------------------------------------


@pytest.mark.kep("E81", "F49", "F2", "D1")
def test_a_preemptor_waits_for_the_victim_claims_of_its_node(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    assert cluster.core.eligible_to_preempt("uid-p", "n1") == (False, STILL)
    cluster.delete_pod("w")
    assert cluster.core.eligible_to_preempt("uid-p", "n1") == (False, STILL)
    assert cluster.core.eligible_to_preempt("uid-p", "n2") == (True, "")


@pytest.mark.kep("E83", "E84", "D24", "E48", "E50", "E51")
def test_it_may_preempt_again_when_all_are_deallocated(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["v", "w"])
    cluster.deallocate("w-claim")
    assert not cluster.core.eligible_to_preempt("uid-p", "n1")[0]
    cluster.deallocate("v-claim")
    assert cluster.core.eligible_to_preempt("uid-p", "n1")[0]


@pytest.mark.kep("E85", "F30")
def test_whoever_caused_it_the_node_counts(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.pending("external")
    assert not cluster.core.eligible_to_preempt("uid-external", "n1")[0]


@pytest.mark.kep("F26")
def test_the_literal_rule_for_pods_without_claims_can_be_had() -> None:
    cluster = Cluster(defer_pods_without_claims=True)
    cluster.add_slice("n1", ["gpu-0"])
    cluster.running("v", ["gpu-0"])
    cluster.add_pod("cpu", priority=100)
    cluster.nominate("cpu", "n1", ["v"])
    assert cluster.core.eligible_to_preempt("uid-cpu", "n1") == (False, STILL)


@pytest.mark.kep("F2")
def test_a_transient_rejection_does_not_end_the_deferral(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    cluster.delete_claim("p-claim")
    assert not cluster.core.eligible_to_preempt("uid-p", "n1")[0]


@pytest.mark.kep("F10")
def test_a_victim_does_not_go_on_with_the_claim_it_was_preempted_for(cluster: Cluster) -> None:
    full(cluster)
    cluster.nominate("p", "n1", ["w"])
    status = cluster.pre_filter("w").status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert "being deallocated" in status.reasons[0]


# --- handshake and record ----------------------------------------------------------------------------------------------


def entry(cluster: Cluster, name: str, text: str, node: str = "n1") -> Known:
    restored = record.read(text, ref(name), node, cluster.generation, 100, (ref("w"),))
    return Known(ref(name), node, cluster.generation, restored)


def nominated_with_record(cluster: Cluster) -> str:
    full(cluster)
    answer = cluster.nominate("p", "n1", ["w"])
    assert answer.nomination is not None
    return record.write(answer.nomination, answer.victim_claims)


@pytest.mark.kep("E53")
def test_the_handshake_drops_what_the_framework_does_not_have(cluster: Cluster) -> None:
    nominated_with_record(cluster)
    assert cluster.core.reconcile([]) == ()
    assert cluster.held("p") is None
    assert cluster.victim_claims("n1") == ["w-claim"]


def test_the_handshake_keeps_what_both_have(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    before = cluster.world.nominations.live["uid-p"]
    assert cluster.core.reconcile([entry(cluster, "p", text)]) == ("uid-p",)
    assert cluster.world.nominations.live["uid-p"] is before


def restarted(cluster: Cluster) -> Cluster:
    other = Cluster()
    other.add_slice("n1", ["gpu-0", "gpu-1"])
    for name in cluster.pods:
        other._put_pod(cluster.pods[name])
    for name in cluster.claims:
        other._put_claim(cluster.claims[name])
    other.revision, other.generation = cluster.revision, cluster.generation
    return other


@pytest.mark.kep("E52", "D25")
def test_a_restarted_plugin_restores_the_nomination_from_its_record(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    after = restarted(cluster)
    assert after.core.reconcile([entry(cluster, "p", text)]) == ("uid-p",)
    assert after.held("p") == ("gpu-1",)
    assert after.victim_claims("n1") == ["w-claim"]
    assert after.world.nominations.highest_generation == cluster.generation


def test_victim_claims_that_settled_while_the_plugin_was_away_are_not_restored(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    cluster.deallocate("w-claim")
    after = restarted(cluster)
    after.core.reconcile([entry(cluster, "p", text)])
    assert after.victim_claims("n1") == []


@pytest.mark.kep("F44", "E52")
@pytest.mark.parametrize("text", ["", "{}", "not json", '{"version":2,"node":"n1","generation":1}'])
def test_a_record_that_is_not_ours_is_ignored(cluster: Cluster, text: str) -> None:
    nominated_with_record(cluster)
    after = restarted(cluster)
    assert after.core.reconcile([entry(cluster, "p", text)]) == ()


def test_a_record_of_another_node_or_generation_is_ignored(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    assert record.read(text, ref("p"), "n2", cluster.generation, 0, ()) is None
    assert record.read(text, ref("p"), "n1", cluster.generation + 1, 0, ()) is None


def test_a_record_says_everything_again(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    read = record.read(text, ref("p"), "n1", cluster.generation, 100, (ref("w"),))
    assert read is not None
    nomination, victim_claims = read
    assert nomination == cluster.world.nominations.live["uid-p"]
    assert victim_claims == cluster.world.victim_claims.on("n1")


@pytest.mark.kep("E4", "E5")
def test_without_the_gate_the_handshake_holds_nothing(cluster: Cluster) -> None:
    text = nominated_with_record(cluster)
    off = Cluster(gate=False)
    assert off.core.reconcile([entry(cluster, "p", text)]) == ()
    assert off.held("p") is None
