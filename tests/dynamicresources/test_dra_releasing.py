"""Which claims come free when pods are removed, and that forks leave no trace."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.core import Core
from earmark.dynamicresources.forks import passes
from earmark.dynamicresources.releasable import released
from earmark.dynamicresources.statuses import Code
from earmark.kube import objects
from support.dra_cluster import Cluster, allocated, ref


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    return made


def free(cluster: Cluster, node: str, *removed: str, own: frozenset[str] = frozenset()) -> list[str]:
    return [uid.removeprefix("uid-") for uid in released(cluster.world, node, [f"uid-{name}" for name in removed], own)]


@pytest.mark.kep("E14")
def test_removing_a_pod_releases_its_claim(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"])
    assert free(cluster, "n1", "v") == ["v-claim"]


@pytest.mark.kep("D5", "E33")
def test_a_shared_claim_with_a_survivor_stays(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.add_pod("b", ["a-claim"], node="n1")
    cluster.reserve_for("a-claim", ["a", "b"])
    assert free(cluster, "n1", "a") == []
    assert free(cluster, "n1", "a", "b") == ["a-claim"]


@pytest.mark.kep("D6", "F19")
def test_a_shared_claim_is_taken_back_with_any_of_its_pods(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.add_pod("b", ["a-claim"], node="n1")
    cluster.reserve_for("a-claim", ["a", "b"])
    cluster.pending("q", count=2)
    cycle = cluster.pre_filter("q")
    core = cluster.core
    core.remove_pod(cycle, "n1", "uid-a")
    core.remove_pod(cycle, "n1", "uid-b")
    assert cluster.dry_run(cycle, "n1").status.success
    core.add_pod(cycle, "n1", "uid-a")
    assert not cluster.dry_run(cycle, "n1").status.success
    core.remove_pod(cycle, "n1", "uid-a")
    assert cluster.dry_run(cycle, "n1").status.success


@pytest.mark.kep("F17", "E38")
def test_a_terminating_consumer_counts_as_going_away(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.add_pod("b", ["a-claim"], node="n1", priority=1000)
    cluster.reserve_for("a-claim", ["a", "b"])
    cluster.terminate("b")
    assert free(cluster, "n1", "a") == ["a-claim"]
    # Without a removed pod nothing is released: the claim is still allocated.
    assert free(cluster, "n1") == []


def test_a_consumer_that_was_never_seen_keeps_the_claim(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.reserve_for("a-claim", ["a", "not-seen-yet"])
    assert free(cluster, "n1", "a") == []


def test_a_consumer_that_was_seen_to_go_does_not_keep_the_claim(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.add_pod("b", ["a-claim"], node="n1")
    cluster.reserve_for("a-claim", ["a", "b"])
    cluster.delete_pod("b")
    assert free(cluster, "n1", "a") == ["a-claim"]
    cluster.reserve_for("a-claim", ["a"])
    assert "uid-b" not in cluster.world.deleted_pods


@pytest.mark.kep("F16", "E30")
@pytest.mark.parametrize(
    "entry",
    [
        objects.ResourceClaimConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="g", uid="g"),
        objects.ResourceClaimConsumerReference(api_group="example.com", resource="things", name="t", uid="t"),
    ],
)
def test_a_consumer_that_is_no_pod_keeps_the_claim(
    cluster: Cluster, entry: objects.ResourceClaimConsumerReference
) -> None:
    cluster.running("a", ["gpu-0"])
    mine = objects.ResourceClaimConsumerReference(resource="pods", name="a", uid="uid-a")
    status = objects.ResourceClaimStatus(allocation=allocated(["gpu-0"]), reserved_for=(mine, entry))
    cluster.change_claim("a-claim", status=status)
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("D27", "E30", "F45")
def test_a_member_of_a_pod_group_is_left_alone(cluster: Cluster) -> None:
    cluster.add_claim("c")
    cluster.add_pod("member", ["c"], node="n1", scheduling_group={"podGroupName": "g"})
    cluster.allocate("c", ["gpu-0"], ["member"])
    assert free(cluster, "n1", "member") == []


@pytest.mark.kep("D28", "E32")
def test_a_claim_of_an_extended_resource_is_left_alone(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.change_claim("a-claim", annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("E26", "E27", "D26")
def test_a_claim_with_a_network_attached_device_is_not_released() -> None:
    cluster = Cluster()
    cluster.add_slice("n1", ["gpu-0"])
    cluster.add_slice(None, ["net-0"], pool="net")
    cluster.running("a", ["gpu-0"])
    local, remote = allocated(["gpu-0"]), allocated(["net-0"], pool="net")
    both = objects.AllocationResult(
        devices=objects.DeviceAllocationResult(results=(*local.devices.results, *remote.devices.results))
    )
    cluster.change_claim(
        "a-claim",
        status=objects.ResourceClaimStatus(allocation=both, reserved_for=cluster.claims["a-claim"].status.reserved_for),
    )
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("E28")
def test_a_device_that_names_its_node_itself_is_released() -> None:
    cluster = Cluster()
    cluster.add_node("n1")
    cluster.add_slice(
        None, [objects.Device(name="gpu-0", node_name="n1")], pool="n1", all_nodes=None, per_device_node_selection=True
    )
    cluster.running("a", ["gpu-0"])
    assert free(cluster, "n1", "a") == ["a-claim"]


@pytest.mark.kep("E29", "F18")
def test_devices_of_another_node_are_never_released_here(cluster: Cluster) -> None:
    cluster.add_slice("n2", ["gpu-0"])
    cluster.running("a", ["gpu-0"], node="n2")
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("F37")
def test_a_device_whose_slice_is_gone_is_not_released(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.remove_slice("n1")
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("F39")
def test_admin_access_is_never_released(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"], admin=True)
    assert free(cluster, "n1", "a") == []


@pytest.mark.kep("F52")
def test_an_unknown_claim_or_pod_is_nothing_to_release(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.delete_claim("a-claim")
    assert free(cluster, "n1", "a", "nobody") == []


@pytest.mark.kep("F53")
def test_a_claim_that_the_preemptor_uses_itself_is_not_released(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    assert free(cluster, "n1", "a", own=frozenset({"uid-a-claim"})) == []


@pytest.mark.kep("E24", "D21")
def test_an_in_flight_allocation_of_a_pod_in_pre_bind_is_released(cluster: Cluster) -> None:
    cluster.pending("v", priority=0)
    cycle = cluster.pre_filter("v")
    assert cluster.filter(cycle, "n1")[0].status.success
    assert cluster.core.reserve(cycle, "n1").status.success
    assert free(cluster, "n1", "v") == ["v-claim"]
    assert free(cluster, "n2", "v") == []


@pytest.mark.kep("F16", "F10")
def test_a_pod_that_is_about_to_share_a_claim_keeps_it(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.add_pod("b", ["a-claim"])
    cycle = cluster.pre_filter("b")
    cluster.filter(cycle, "n1")
    assert cluster.core.reserve(cycle, "n1").status.success
    assert free(cluster, "n1", "a") == []
    # b could be preempted in memory, and then nobody would clear an allocation that b has not made (F10).
    assert free(cluster, "n1", "a", "b") == []


@pytest.mark.kep("E15", "E16", "E17", "E19", "D20")
def test_forks_leave_the_state_as_it_was(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.running("b", ["gpu-1"])
    cluster.pending("q")
    before, ledger = cluster.world, cluster.world.ledger
    cycle = cluster.pre_filter("q")
    fork = passes(cluster.world, "n1", removed=["uid-a", "uid-b"])
    assert fork.without != ledger
    # Taking both back gives the very ledger.
    assert passes(cluster.world, "n1", removed=[]).without is ledger
    for removed in (["a"], ["a", "b"], ["b"], []):
        cluster.dry_run(cycle, "n1", removed)
    assert cluster.world is before
    assert cycle.results == {}


@pytest.mark.kep("D9", "E16")
def test_removing_or_adding_a_pod_twice_is_as_once() -> None:
    cluster = Cluster()
    cluster.add_slice("n1", ["gpu-0", "gpu-1"])
    cluster.running("a", ["gpu-0"])
    cluster.running("b", ["gpu-1"])
    cluster.pending("q", count=2)
    cycle = cluster.pre_filter("q")
    Core.remove_pod(cycle, "n1", "uid-a")
    Core.remove_pod(cycle, "n1", "uid-a")
    assert not cluster.dry_run(cycle, "n1").status.success
    Core.remove_pod(cycle, "n1", "uid-b")
    assert cluster.dry_run(cycle, "n1").status.success
    Core.add_pod(cycle, "n1", "uid-b")
    assert cluster.dry_run(cycle, "n1").status.code is Code.UNSCHEDULABLE


@pytest.mark.kep("E13", "D20")
def test_forks_of_two_nodes_do_not_touch_each_other(cluster: Cluster) -> None:
    cluster.add_slice("n2", ["gpu-0"])
    cluster.running("a", ["gpu-0"], node="n2")
    cluster.running("b", ["gpu-0"])
    cluster.running("c", ["gpu-1"])
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    Core.remove_pod(cycle, "n2", "uid-a")
    assert cluster.dry_run(cycle, "n2").status.success
    assert not cluster.dry_run(cycle, "n1").status.success


@pytest.mark.kep("E12")
def test_a_cycle_sees_the_state_as_it_was_when_it_began(cluster: Cluster) -> None:
    cluster.running("a", ["gpu-0"])
    cluster.running("b", ["gpu-1"])
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    cluster.deallocate("a-claim")
    assert not cluster.filter(cycle, "n1")[0].status.success
    assert cluster.filter(cluster.pre_filter("q"), "n1")[0].status.success


def test_refs_are_ordered_by_name() -> None:
    assert sorted([ref("b"), ref("a")]) == [ref("a"), ref("b")]
