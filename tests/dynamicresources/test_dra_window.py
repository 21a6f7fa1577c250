"""The settling window as pods and nodes come and go in it."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.forks import passes
from earmark.dynamicresources.nominating import Removal
from earmark.dynamicresources.state import node_deleted
from earmark.kube import objects
from support.dra_cluster import Cluster, allocated, exactly, ref


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    made.running("v", ["gpu-0"])
    made.running("w", ["gpu-1"])
    made.pending("p")
    return made


@pytest.mark.kep("E35", "D19")
def test_dry_runs_nominate_nobody(cluster: Cluster) -> None:
    cycle = cluster.pre_filter("p")
    for victim in ("v", "w"):
        assert cluster.dry_run(cycle, "n1", [victim]).status.success
    assert cluster.world.nominations.all() == ()
    cluster.nominate("p", "n1", ["w"])
    assert [item.node for item in cluster.world.nominations.all()] == ["n1"]


@pytest.mark.kep("E41")
def test_a_nomination_outlives_the_cycle(cluster: Cluster) -> None:
    cycle = cluster.pre_filter("p")
    cluster.nominate("p", "n1", ["w"])
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=True, bound_now=False, deleted=False)
    cluster.pre_filter("p")
    assert cluster.held("p") == ("gpu-1",)


@pytest.mark.kep("E59", "E65")
def test_without_nominated_pods_there_is_one_pass(cluster: Cluster) -> None:
    assert len(passes(cluster.world, "n1").ledgers) == 1
    cluster.nominate("p", "n1", ["w"])
    both = passes(cluster.world, "n1", nominated=["uid-p"])
    assert both.ledgers[1] is both.without
    assert both.without is cluster.world.ledger


@pytest.mark.kep("E60", "E64")
def test_a_victim_claim_is_subtracted_at_most_once(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    simply = passes(cluster.world, "n1", nominated=["uid-p"]).with_nominated
    # RemovePod has taken the claim off already: AddPod changes nothing more.
    removed = passes(cluster.world, "n1", removed=["uid-w"], nominated=["uid-p"])
    assert simply is not None
    assert not simply.holds("uid-w-claim")
    assert removed.with_nominated == simply
    cluster.deallocate("w-claim")
    after = passes(cluster.world, "n1", nominated=["uid-p"])
    assert after.with_nominated is not None
    assert after.with_nominated.release("uid-p-claim") == cluster.world.ledger


@pytest.mark.kep("E89")
def test_removing_a_nomination_twice_is_as_once(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.remove("p", Removal.CLEARED)
    before = cluster.world
    cluster.remove("p", Removal.CLEARED)
    assert cluster.world is before


@pytest.mark.kep("F20")
def test_the_claim_of_a_victim_that_terminates_already_is_awaited(cluster: Cluster) -> None:
    cluster.terminate("w")
    cluster.nominate("p", "n1", ["w"])
    assert cluster.victim_claims("n1") == ["w-claim"]
    assert not cluster.core.eligible_to_preempt("uid-p", "n1")[0]


@pytest.mark.kep("F28")
def test_for_a_pod_of_higher_priority_a_victim_claim_is_taken(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.delete_pod("w")
    cluster.pending("above", priority=1000)
    cycle = cluster.pre_filter("above")
    assert not cluster.filter(cycle, "n1")[0].status.success
    # It may evict the other one.
    assert cluster.dry_run(cycle, "n1", ["v"]).status.success


@pytest.mark.kep("F36")
def test_a_share_id_that_is_taken_meanwhile_is_made_anew() -> None:
    cluster = Cluster()
    device = objects.Device(
        name="gpu-0", allow_multiple_allocations=True, capacity={"memory": objects.DeviceCapacity(value="80Gi")}
    )
    cluster.add_slice("n1", [device])
    half = exactly(capacity=objects.CapacityRequirements(requests={"memory": "40Gi"}))
    cluster.pending("p", request=half)
    answer = cluster.nominate("p", "n1")
    assert answer.nomination is not None
    stored = answer.nomination.results[0].allocation.devices.results[0].share_id
    assert stored is not None
    cluster.add_claim("other", request=half)
    cluster.change_claim(
        "other",
        status=objects.ResourceClaimStatus(
            allocation=allocated(["gpu-0"], consumed={"memory": "40Gi"}, shares=[stored])
        ),
    )
    cycle = cluster.pre_filter("p")
    assert cluster.filter(cycle, "n1")[0].status.success
    used = cycle.results["n1"].results["uid-p-claim"].devices.results[0].share_id
    assert used is not None
    assert used != stored


@pytest.mark.kep("F43", "D3")
def test_a_victim_that_is_created_again_cannot_take_its_device_back(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.delete_pod("w")
    cluster.deallocate("w-claim")
    cluster.pending("again", priority=0)
    assert not cluster.filter(cluster.pre_filter("again"), "n1", nominated=["p"])[0].status.success


@pytest.mark.kep("F47")
def test_victim_claims_of_a_node_that_is_gone_end_with_their_claims(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.core.commit((node_deleted(cluster.world, "n1"), ()))
    assert cluster.victim_claims("n1") == ["w-claim"]
    cluster.delete_claim("w-claim")
    assert len(cluster.world.victim_claims) == 0


@pytest.mark.kep("F50")
def test_an_empty_reserved_for_alone_frees_nothing(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.reserve_for("w-claim", [])
    assert cluster.victim_claims("n1") == ["w-claim"]
    assert not cluster.filter(cluster.pre_filter("p"), "n1")[0].status.success


@pytest.mark.kep("F54")
def test_a_claim_that_comes_free_before_its_pod_is_gone_can_be_had(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.terminate("w")
    cluster.deallocate("w-claim")
    assert cluster.filter(cluster.pre_filter("p"), "n1")[0].status.success
    # Removing the pod releases nothing more, and is no error.
    cluster.pending("q")
    assert not cluster.dry_run(cluster.pre_filter("q"), "n1", ["w"], nominated=["p"]).status.success


@pytest.mark.kep("F48", "E53")
def test_nothing_is_left_when_everything_is_over(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["v", "w"])
    for name in ("v", "w"):
        cluster.delete_pod(name)
        cluster.delete_claim(f"{name}-claim")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.allocate("p-claim", ["gpu-0"], ["p"])
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=False, bound_now=True, deleted=False)
    world = cluster.world
    assert (world.nominations.all(), world.victim_claims.all()) == ((), ())
    assert (world.in_flight, world.reservations, len(world.deleted_pods)) == ({}, {}, 0)
    assert cluster.core.open_cycles() == ()


@pytest.mark.kep("E46", "D32")
def test_the_hold_of_a_nomination_that_was_cleared_for_a_higher_pod_is_gone(cluster: Cluster) -> None:
    cluster.nominate("p", "n1", ["w"])
    cluster.pending("above", priority=1000)
    cluster.nominate("above", "n1", ["w"])
    assert cluster.held("above") == ("gpu-1",)
    cluster.remove("p", Removal.CLEARED, generation=1)
    assert cluster.held("p") is None
    assert cluster.held("above") == ("gpu-1",)
    assert cluster.victim_claims("n1") == ["w-claim"]


def test_a_late_end_of_an_earlier_cycle_does_not_touch_the_present_proposal(cluster: Cluster) -> None:
    first = cluster.pre_filter("p")
    cluster.pre_filter("p")
    cluster.propose("p", "n1", ["w"])
    cluster.core.end_cycle(ref("p"), first.id, rejected=False, bound_now=False, deleted=False)
    assert cluster.held("p") == ("gpu-1",)


@pytest.mark.kep("F6")
def test_of_two_holds_on_one_device_the_higher_then_the_earlier_one_counts() -> None:
    cluster = Cluster()
    cluster.add_slice("n1", ["gpu-0"])
    for name, priority in (("low", 100), ("high", 200), ("late", 200)):
        cluster.pending(name, priority=priority)
        # Each is nominated as if the others were not there.
        cluster.nominate(name, "n1")
    names = ["uid-late", "uid-low", "uid-high"]
    both = passes(cluster.world, "n1", nominated=names)
    assert both.with_nominated is not None
    assert both.with_nominated.holds("uid-high-claim")
    assert [item.pod.name for item in both.ignored] == ["late", "low"]
    assert passes(cluster.world, "n1", nominated=names[::-1]).with_nominated == both.with_nominated


def test_only_the_generation_that_was_proposed_can_be_confirmed(cluster: Cluster) -> None:
    cluster.propose("p", "n1", ["w"])
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation - 1)
    assert cluster.world.nominations.live == {}
    cluster.core.confirm_nominated_pod("uid-p", cluster.generation)
    assert list(cluster.world.nominations.live) == ["uid-p"]
