"""Filter: statuses with the gate on and off, holds, both passes, stored results."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.filtering import NodeCheck
from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.statuses import Code
from earmark.kube import objects
from support.dra_cluster import NOW, Cluster, allocated, exactly


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0"])
    return made


def two_gpus() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    return made


@pytest.mark.kep("F1", "D13")
def test_a_lack_of_devices_is_something_preemption_can_cure(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    status = cluster.filter(cluster.pre_filter("p"), "n1")[0].status
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("cannot allocate all claims",))


@pytest.mark.kep("E2", "D13")
def test_without_the_gate_it_is_not() -> None:
    cluster = Cluster(gate=False)
    cluster.add_slice("n1", ["gpu-0"])
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    status = cluster.filter(cluster.pre_filter("p"), "n1")[0].status
    assert (status.code, status.reasons) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ("cannot allocate all claims",),
    )


@pytest.mark.kep("F1", "F23")
def test_a_claim_that_is_allocated_elsewhere_is_beyond_preemption(cluster: Cluster) -> None:
    cluster.add_node("n2")
    cluster.add_claim("mine")
    selector = objects.NodeSelector(
        node_selector_terms=(
            objects.NodeSelectorTerm(
                match_fields=(objects.NodeSelectorRequirement(key="metadata.name", operator="In", values=("n1",)),)
            ),
        )
    )
    allocation = objects.AllocationResult(devices=allocated(["gpu-0"]).devices, node_selector=selector)
    cluster.change_claim("mine", status=objects.ResourceClaimStatus(allocation=allocation))
    cluster.add_pod("p", ["mine"])
    first, second = cluster.filter(cluster.pre_filter("p"), "n1", "n2")
    assert first.status.success
    assert second.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert second.status.reasons == ("resourceclaim not available on the node",)


@pytest.mark.kep("E31", "F45")
def test_a_member_of_a_pod_group_is_not_helped_by_preemption(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.add_claim("c")
    cluster.add_pod("member", ["c"], priority=100, scheduling_group={"podGroupName": "g"})
    cycle = cluster.pre_filter("member")
    assert cluster.filter(cycle, "n1")[0].status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert not cluster.dry_run(cycle, "n1", ["v"]).status.success


def test_a_node_that_is_not_known_is_no_error(cluster: Cluster) -> None:
    cluster.pending("p")
    status = cluster.filter(cluster.pre_filter("p"), "nowhere")[0].status
    assert status.code is Code.UNSCHEDULABLE


@pytest.mark.kep("E14", "E18")
def test_a_dry_run_fits_with_the_victim_removed(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    assert cluster.dry_run(cycle, "n1").status.code is Code.UNSCHEDULABLE
    assert cluster.dry_run(cycle, "n1", ["v"]).status.success


# --- holding capacity --------------------------------------------------------------------------------------------------


@pytest.mark.kep("D2", "E58", "E62", "E69", "E102")
def test_a_freed_device_is_held_against_a_pod_of_equal_priority(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    verdict = cluster.filter(cycle, "n1", nominated=["p"])[0]
    assert verdict.status.code is Code.UNSCHEDULABLE
    assert verdict.with_nominated


@pytest.mark.kep("D4", "E70", "E103")
def test_a_pod_to_which_the_hold_does_not_apply_may_take_the_device(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.pending("q", priority=1000)
    # The framework does not list p for a pod of higher priority.
    assert cluster.filter(cluster.pre_filter("q"), "n1")[0].status.success


@pytest.mark.kep("E71")
def test_before_t3_nobody_gets_the_device_by_normal_filtering(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.delete_pod("v")
    cluster.pending("q", priority=1000)
    assert not cluster.filter(cluster.pre_filter("q"), "n1")[0].status.success


@pytest.mark.kep("F30")
def test_a_nominated_pod_without_a_claim_nomination_changes_nothing(cluster: Cluster) -> None:
    cluster.pending("external")
    cluster.pending("q")
    verdict = cluster.filter(cluster.pre_filter("q"), "n1", nominated=["external", "unknown"])[0]
    assert verdict.status.success
    assert not verdict.with_nominated


@pytest.mark.kep("D7", "E67", "E68")
def test_a_surplus_device_of_a_victim_claim_is_not_free_before_t3() -> None:
    cluster = two_gpus()
    cluster.running("v", ["gpu-0", "gpu-1"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-0",)
    cluster.delete_pod("v")
    cluster.pending("q")
    assert not cluster.filter(cluster.pre_filter("q"), "n1", nominated=["p"])[0].status.success
    cluster.deallocate("v-claim")
    cycle = cluster.pre_filter("q")
    assert cluster.filter(cycle, "n1", nominated=["p"])[0].status.success
    assert devices(cycle, "n1") == ["gpu-1"]


def devices(cycle: object, node: str) -> list[str]:
    results = cycle.results[node].results  # type: ignore[attr-defined]
    return [item.device for result in results.values() for item in result.devices.results]


@pytest.mark.kep("E72", "E73", "E74", "E75")
def test_worked_case_1_two_preemptors_share_a_terminating_victim() -> None:
    cluster = two_gpus()
    cluster.running("v", ["gpu-0", "gpu-1"])
    cluster.pending("p1")
    cluster.nominate("p1", "n1", ["v"])
    assert cluster.held("p1") == ("gpu-0",)
    assert cluster.victim_claims("n1") == ["v-claim"]
    cluster.terminate("v")
    cluster.pending("p2")
    cycle = cluster.pre_filter("p2")
    assert cluster.dry_run(cycle, "n1", ["v"], nominated=["p1"]).status.success
    cluster.nominate("p2", "n1", ["v"], nominated=["p1"])
    assert cluster.held("p2") == ("gpu-1",)
    assert cluster.victim_claims("n1") == ["v-claim"]
    cluster.delete_pod("v")
    cluster.deallocate("v-claim")
    for name, other, device in (("p2", "p1", "gpu-1"), ("p1", "p2", "gpu-0")):
        cycle = cluster.pre_filter(name)
        assert cluster.filter(cycle, "n1", nominated=[other])[0].status.success
        assert devices(cycle, "n1") == [device]


@pytest.mark.kep("E76", "F21")
def test_worked_case_1_a_pod_that_comes_when_the_victim_is_gone_waits() -> None:
    cluster = two_gpus()
    cluster.running("v", ["gpu-0", "gpu-1"])
    cluster.pending("p1")
    cluster.nominate("p1", "n1", ["v"])
    cluster.delete_pod("v")
    cluster.pending("p2")
    cycle = cluster.pre_filter("p2")
    assert cluster.filter(cycle, "n1", nominated=["p1"])[0].status.reasons == ("cannot allocate all claims",)
    status = cluster.dry_run(cycle, "n1", nominated=["p1"]).status
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE, ("waiting for devices being reclaimed",))


def shared_device(*, capacity: str = "80Gi") -> Cluster:
    cluster = Cluster()
    device = objects.Device(
        name="gpu-0", allow_multiple_allocations=True, capacity={"memory": objects.DeviceCapacity(value=capacity)}
    )
    cluster.add_slice("n1", [device])
    return cluster


def part(amount: str) -> objects.DeviceRequest:
    return exactly(capacity=objects.CapacityRequirements(requests={"memory": amount}))


def share(cluster: Cluster, name: str, amount: str, *, priority: int = 0) -> None:
    cluster.add_claim(f"{name}-claim", request=part(amount))
    cluster.add_pod(name, [f"{name}-claim"], node="n1", priority=priority)
    cluster.allocate(f"{name}-claim", ["gpu-0"], [name], consumed={"memory": amount}, shares=[f"share-{name}"])


@pytest.mark.kep("D8", "E61", "E77", "E78", "E79", "E80", "E22", "E23")
def test_worked_case_2_capacity_is_not_counted_twice() -> None:
    cluster = shared_device()
    share(cluster, "v1", "40Gi")
    share(cluster, "v2", "40Gi")
    cluster.pending("p1", request=part("40Gi"))
    cluster.nominate("p1", "n1", ["v1"])
    cluster.delete_pod("v1")
    cluster.pending("p2", request=part("40Gi"))
    cycle = cluster.pre_filter("p2")
    assert cluster.dry_run(cycle, "n1", ["v2"], nominated=["p1"]).status.success
    assert not cluster.dry_run(cycle, "n1", [], nominated=["p1"]).status.success
    cluster.nominate("p2", "n1", ["v2"], nominated=["p1"])
    # A third one finds nothing: 40 of p1 and 40 of p2 are all there is.
    cluster.pending("p3", request=part("1Gi"))
    assert not cluster.dry_run(cluster.pre_filter("p3"), "n1", [], nominated=["p1", "p2"]).status.success


@pytest.mark.kep("D30", "E22")
def test_only_as_many_shares_are_freed_as_are_needed() -> None:
    cluster = shared_device(capacity="90Gi")
    for name in ("a", "b", "c"):
        share(cluster, name, "30Gi")
    cluster.pending("p", request=part("30Gi"))
    cycle = cluster.pre_filter("p")
    assert not cluster.dry_run(cycle, "n1").status.success
    assert cluster.dry_run(cycle, "n1", ["b"]).status.success


@pytest.mark.kep("D10", "F6")
def test_the_holds_of_two_nominated_pods_stand_side_by_side() -> None:
    cluster = two_gpus()
    cluster.running("v1", ["gpu-0"])
    cluster.running("v2", ["gpu-1"])
    cluster.pending("p1")
    cluster.pending("p2")
    cluster.nominate("p1", "n1", ["v1"])
    cluster.nominate("p2", "n1", ["v2"], nominated=["p1"])
    cluster.deallocate("v1-claim")
    cluster.pending("q")
    for order in (["p1", "p2"], ["p2", "p1"]):
        # v2-claim is subtracted for p2; that must not take p1's hold off again.
        assert not cluster.filter(cluster.pre_filter("q"), "n1", nominated=order)[0].status.success
    assert cluster.filter(cluster.pre_filter("q"), "n1", nominated=["p2"])[0].status.success


@pytest.mark.kep("F5", "D12", "E65", "E66")
def test_a_device_that_is_free_in_both_passes_is_found_though_the_first_one_is_not() -> None:
    cluster = Cluster()
    cluster.add_slice("n1", ["gpu-0", "gpu-1", "gpu-2"])
    cluster.running("v", ["gpu-0", "gpu-1"])
    cluster.running("w", ["gpu-2"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-0",)
    cluster.deallocate("w-claim")
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    # Pass 1 alone would take gpu-1, the surplus of v-claim, which pass 2 refuses.
    assert cluster.filter(cycle, "n1", nominated=["p"])[0].status.success
    assert devices(cycle, "n1") == ["gpu-2"]


@pytest.mark.kep("F4", "D11")
def test_a_later_filter_call_replaces_the_result_of_an_earlier_one(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1")
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    assert cluster.filter(cycle, "n1")[0].status.success
    assert not cluster.filter(cycle, "n1", nominated=["p"])[0].status.success
    assert cycle.results == {}


@pytest.mark.kep("D11")
def test_results_are_kept_when_nominated_pods_do_not_count(cluster: Cluster) -> None:
    cluster.pending("lower", priority=1)
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    assert cluster.filter(cycle, "n1", nominated=["lower"])[0].status.success
    assert cluster.core.reserve(cycle, "n1").status.success


@pytest.mark.kep("D29", "E20", "E21")
def test_two_victims_free_a_larger_partition() -> None:
    def partition(name: str, units: str) -> objects.Device:
        uses = objects.DeviceCounterConsumption(counter_set="set", counters={"units": objects.Counter(value=units)})
        return objects.Device(name=name, consumes_counters=(uses,))

    cluster = Cluster()
    cluster.add_slice(
        "n1", [partition("whole", "4"), partition("half-0", "2"), partition("half-1", "2")], counters={"units": "4"}
    )
    cluster.running("a", ["half-0"])
    cluster.running("b", ["half-1"])
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    assert not cluster.dry_run(cycle, "n1").status.success
    cluster.nominate("p", "n1", ["a", "b"])
    assert cluster.held("p") == ("whole",)
    assert sorted(cluster.victim_claims("n1")) == ["a-claim", "b-claim"]


# --- the nominated node ------------------------------------------------------------------------------------------------


@pytest.mark.kep("E55", "E57")
def test_stored_results_are_used_first_on_the_nominated_node() -> None:
    cluster = two_gpus()
    cluster.running("other", ["gpu-0"])
    cluster.running("v", ["gpu-1"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-1",)
    cluster.deallocate("v-claim")
    cluster.deallocate("other-claim")
    cycle = cluster.pre_filter("p")
    assert cluster.filter(cycle, "n1")[0].status.success
    # A search would begin with gpu-0.
    assert devices(cycle, "n1") == ["gpu-1"]


@pytest.mark.kep("E56", "F22")
def test_stored_results_that_are_not_feasible_give_way_to_a_search() -> None:
    cluster = two_gpus()
    cluster.running("other", ["gpu-0"])
    cluster.running("v", ["gpu-1"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("other-claim")
    cycle = cluster.pre_filter("p")
    assert cluster.filter(cycle, "n1")[0].status.success
    assert devices(cycle, "n1") == ["gpu-0"]


@pytest.mark.kep("F38")
def test_a_taint_that_came_in_the_window_makes_stored_results_infeasible() -> None:
    cluster = two_gpus()
    cluster.running("v", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    assert cluster.held("p") == ("gpu-0",)
    cluster.deallocate("v-claim")
    taint = objects.DeviceTaint(key="broken", effect="NoSchedule")
    cluster.add_slice("n1", [objects.Device(name="gpu-0", taints=(taint,)), "gpu-1"])
    cycle = cluster.pre_filter("p")
    assert cluster.filter(cycle, "n1")[0].status.success
    assert devices(cycle, "n1") == ["gpu-1"]


@pytest.mark.kep("F24")
def test_a_claim_that_was_made_anew_gets_a_search() -> None:
    cluster = two_gpus()
    cluster.running("other", ["gpu-0"])
    cluster.running("v", ["gpu-1"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.deallocate("other-claim")
    cluster.delete_claim("p-claim")
    cluster.add_claim("p-claim", uid="another")
    cycle = cluster.pre_filter("p")
    assert cluster.filter(cycle, "n1")[0].status.success
    assert devices(cycle, "n1") == ["gpu-0"]


@pytest.mark.kep("F25")
def test_a_hold_for_a_claim_that_somebody_else_allocated_does_not_block_it() -> None:
    cluster = two_gpus()
    cluster.add_claim("team")
    cluster.add_pod("p", ["team"], priority=100)
    cluster.nominate("p", "n1")
    cluster.add_pod("q", ["team"], priority=100)
    cycle = cluster.pre_filter("q")
    assert cluster.filter(cycle, "n1", nominated=["p"])[0].status.success
    assert devices(cycle, "n1") == ["gpu-0"]


@pytest.mark.kep("F8", "E63")
def test_a_hold_is_not_applied_once_the_pod_is_assumed(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1")
    cluster.remove("p", Removal.ASSUMED)
    cluster.pending("q")
    assert cluster.filter(cluster.pre_filter("q"), "n1", nominated=["p"])[0].status.success


def test_many_nodes_are_answered_in_their_order() -> None:
    cluster = Cluster()
    for number in range(6):
        cluster.add_slice(f"n{number}", ["gpu-0"])
        if number % 2:
            cluster.running(f"v{number}", ["gpu-0"], node=f"n{number}")
    cluster.pending("p")
    checks = [NodeCheck(f"n{number}") for number in range(6)]
    verdicts = cluster.core.filter(cluster.pre_filter("p"), checks, NOW)
    assert [verdict.status.success for verdict in verdicts] == [True, False] * 3
