"""Who is woken by what, and that nothing is missed between two calls."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.hints import Hint
from earmark.dynamicresources.nominating import Removal
from earmark.kube import objects
from support.dra_cluster import Cluster, ref


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    made.running("v", ["gpu-0"])
    made.running("w", ["gpu-1"])
    return made


def rejected(cluster: Cluster, name: str) -> None:
    """An attempt of the pod that the plugin rejects."""
    cycle = cluster.pre_filter(name)
    cluster.filter(cycle, "n1")
    assert cluster.core.end_cycle(ref(name), cycle.id, rejected=True, bound_now=False, deleted=False) is Hint.SKIP


@pytest.mark.kep("E90", "D36", "F34")
def test_a_deallocation_wakes_a_pod_that_waits_for_devices(cluster: Cluster) -> None:
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.deallocate("v-claim")
    assert cluster.woken() == [("q", False)]


def test_the_state_is_up_to_date_when_pods_wake(cluster: Cluster) -> None:
    cluster.pending("q")
    rejected(cluster, "q")
    fits: list[bool] = []
    cluster.core.wake_ups.listen(
        lambda item: fits.append(cluster.filter(cluster.pre_filter("q"), "n1")[0].status.success)
    )
    cluster.deallocate("v-claim")
    assert fits == [True]


@pytest.mark.kep("F31", "E90")
def test_a_preemptor_is_woken_at_once_by_its_own_devices(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v", "w"])
    rejected(cluster, "p")
    assert cluster.held("p") == ("gpu-0",)
    cluster.deallocate("v-claim")
    assert cluster.woken() == [("p", True)]


@pytest.mark.kep("E91", "F31")
def test_a_preemptor_sleeps_on_while_other_victim_claims_are_left(cluster: Cluster) -> None:
    cluster.pending("p", count=2)
    cluster.nominate("p", "n1", ["v", "w"])
    rejected(cluster, "p")
    cluster.deallocate("v-claim")
    assert cluster.woken() == []
    cluster.deallocate("w-claim")
    assert cluster.woken() == [("p", True)]


@pytest.mark.kep("F31")
def test_an_unrelated_deallocation_wakes_a_preemptor_too(cluster: Cluster) -> None:
    cluster.add_slice("n2", ["gpu-0"])
    cluster.running("x", ["gpu-0"], node="n2")
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    rejected(cluster, "p")
    cluster.deallocate("x-claim")
    assert cluster.woken() == [("p", False)]


@pytest.mark.kep("F11", "E90")
def test_the_deletion_of_a_victim_claim_wakes_the_preemptor(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    rejected(cluster, "p")
    cluster.delete_claim("v-claim")
    assert cluster.woken() == [("p", True)]


@pytest.mark.kep("F13")
def test_a_nomination_without_anything_to_wait_for_activates_the_pod(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.deallocate("v-claim")
    cluster.nominate("p", "n1", ["v"])
    verdict = cluster.core.end_cycle(ref("p"), cycle.id, rejected=True, bound_now=False, deleted=False)
    assert verdict is Hint.ACTIVATE


@pytest.mark.kep("D36")
def test_what_happened_during_the_cycle_is_not_missed(cluster: Cluster) -> None:
    cluster.pending("q")
    cycle = cluster.pre_filter("q")
    cluster.filter(cycle, "n1")
    cluster.deallocate("v-claim")
    verdict = cluster.core.end_cycle(ref("q"), cycle.id, rejected=True, bound_now=False, deleted=False)
    assert verdict is Hint.QUEUE


def test_ending_an_unknown_cycle_queues_the_pod(cluster: Cluster) -> None:
    cluster.pending("q")
    verdict = cluster.core.end_cycle(ref("q"), "lost", rejected=True, bound_now=False, deleted=False)
    assert verdict is Hint.QUEUE


# --- the end of a hold -------------------------------------------------------------------------------------------------


@pytest.mark.kep("E92", "D14", "F32", "F33", "E104")
def test_a_hold_that_ends_after_t3_wakes_the_pods_it_was_against(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.pending("q", priority=100)
    cluster.pending("above", priority=101)
    for name in ("q", "above"):
        cluster.sleep(name)
    cluster.remove("p", Removal.CLEARED)
    assert cluster.woken() == [("q", False)]


@pytest.mark.kep("E93")
def test_a_hold_that_ends_before_t3_wakes_nobody(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.pending("q")
    cluster.sleep("q")
    cluster.remove("p", Removal.POD_DELETED)
    assert cluster.woken() == []
    cluster.deallocate("v-claim")
    assert cluster.woken() == [("q", False)]


@pytest.mark.kep("F33")
def test_a_held_device_that_is_free_counts_though_other_victim_claims_are_left(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v", "w"])
    cluster.deallocate("v-claim")
    cluster.pending("q")
    cluster.sleep("q")
    cluster.remove("p", Removal.CLEARED)
    assert cluster.woken() == [("q", False)]


@pytest.mark.kep("F32")
def test_a_pod_that_takes_what_was_held_for_it_wakes_nobody(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.pending("q")
    cluster.sleep("q")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    assert cluster.core.reserve(cycle, "n1").status.success
    cluster.core.end_cycle(ref("p"), cycle.id, rejected=False, bound_now=True, deleted=False)
    assert cluster.woken() == []


@pytest.mark.kep("D15", "F32", "F56", "F55")
def test_a_pod_that_is_placed_elsewhere_gives_its_hold_back(cluster: Cluster) -> None:
    cluster.add_slice("n2", ["gpu-0"])
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.deallocate("v-claim")
    cluster.pending("q")
    cluster.sleep("q")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n2")
    assert cluster.core.reserve(cycle, "n2").status.success
    assert cluster.woken() == [("q", False)]


@pytest.mark.kep("F8", "D18")
def test_an_assumed_pod_that_gives_up_wakes_those_who_wait_for_its_devices(cluster: Cluster) -> None:
    cluster.deallocate("v-claim")
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.core.unreserve("uid-p")
    assert ("q", False) in cluster.woken()


@pytest.mark.kep("F15", "E49")
def test_a_preemptor_whose_last_victim_claim_is_forgotten_is_woken(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1", ["v"])
    cluster.pending("p2")
    cluster.nominate("p2", "n1", ["w"], nominated=["p"])
    cluster.deallocate("v-claim")
    rejected(cluster, "p")
    cluster.remove("p2", Removal.EXECUTION_FAILED, ["w"])
    assert ("p", True) in cluster.woken()


# --- upstream's hints --------------------------------------------------------------------------------------------------


def test_a_pod_whose_claims_are_missing_sleeps_through_deallocations(cluster: Cluster) -> None:
    cluster.add_pod("q", ["missing"])
    assert not cluster.core.pre_enqueue(cluster.world.pods.get("uid-q"), ref("q")).success
    cluster.deallocate("v-claim")
    assert cluster.woken() == []
    cluster.add_claim("missing")
    assert cluster.woken() == [("q", False)]


def test_a_change_of_somebody_elses_claim_wakes_nobody(cluster: Cluster) -> None:
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.add_claim("other")
    cluster.change_claim("other", finalizers=("x",))
    assert cluster.woken() == []


def test_only_a_change_of_status_of_its_own_claim_wakes_a_pod(cluster: Cluster) -> None:
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.change_claim("q-claim", finalizers=("x",))
    assert cluster.woken() == []
    cluster.allocate("q-claim", ["gpu-0"])
    assert cluster.woken() == [("q", False)]


@pytest.mark.kep("D1")
def test_the_deletion_of_a_claim_that_was_not_allocated_wakes_nobody(cluster: Cluster) -> None:
    cluster.add_claim("idle")
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.delete_claim("idle")
    assert cluster.woken() == []


def test_new_devices_and_classes_wake_everybody(cluster: Cluster) -> None:
    cluster.pending("q")
    rejected(cluster, "q")
    cluster.add_slice("n9", ["gpu-0"])
    assert cluster.woken() == [("q", False)]
    cluster.sleep("q")
    cluster.add_class("other")
    assert cluster.woken() == [("q", False)]


def test_a_pod_is_woken_when_its_claims_have_been_made(cluster: Cluster) -> None:
    cluster.add_pod("q")
    template = objects.PodResourceClaim(name="gpu", resource_claim_template_name="one")
    old = cluster.pods["q"]
    spec = objects.PodSpec(resource_claims=(template,))
    meta = objects.ObjectMeta(name="q", namespace="default", uid="uid-q", resource_version="900")
    cluster._put_pod(objects.Pod(metadata=meta, spec=spec))
    facts = cluster.world.pods.get("uid-q")
    status = cluster.core.pre_enqueue(facts, ref("q"))
    assert status.reasons == ('pod "default/q": ResourceClaim not created yet',)
    owner = objects.OwnerReference(kind="Pod", name="q", uid="uid-q", controller=True)
    cluster.add_claim("q-gpu")
    cluster.change_claim("q-gpu", owner_references=(owner,))
    assert cluster.woken() == []
    generated = objects.PodStatus(
        resource_claim_statuses=(objects.PodResourceClaimStatus(name="gpu", resource_claim_name="q-gpu"),)
    )
    meta = objects.ObjectMeta(name="q", namespace="default", uid="uid-q", resource_version="901")
    cluster._put_pod(objects.Pod(metadata=meta, spec=spec, status=generated))
    assert cluster.woken() == [("q", False)]
    assert old.metadata.uid == "uid-q"


# --- the stream --------------------------------------------------------------------------------------------------------


def test_wake_ups_are_replayed_from_the_number_that_was_heard_last(cluster: Cluster) -> None:
    log = cluster.core.wake_ups
    for name in ("a", "b", "c"):
        log.wake([ref(name)], "Test", "")
    assert [item.pods[0].name for item in log.connect(1, [])] == ["b", "c"]
    assert log.connect(3, []) == ()


@pytest.mark.parametrize("heard", [0, 1, 2, 3])
def test_wherever_the_stream_broke_each_sleeper_is_told_or_sleeps(cluster: Cluster, heard: int) -> None:
    log = cluster.core.wake_ups
    names = ("a", "b", "c")
    for name in names:
        log.sleep(ref(name))
    for name in names:
        log.wake([ref(name)], "Test", "")
    log.sleep(ref("d"))
    # The framework holds as sleepers those whose wake-up it did not hear, and d.
    holds = [ref(name) for name in (*names[heard:], "d")]
    told = [pod.name for item in log.connect(heard, holds) for pod in item.pods]
    assert sorted(told) == sorted(names[heard:])
    assert [pod.name for pod in log.sleepers] == ["d"]


def test_a_new_plugin_wakes_all_that_the_framework_holds(cluster: Cluster) -> None:
    log = cluster.core.wake_ups
    items = log.connect(57, [ref("a"), ref("b")])
    assert [[pod.name for pod in item.pods] for item in items] == [["a", "b"]]
