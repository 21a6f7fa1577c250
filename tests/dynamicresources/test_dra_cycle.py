"""PreEnqueue, PreFilter, Reserve, Unreserve and Score."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.core import UnknownCycle
from earmark.dynamicresources.hints import Hint
from earmark.dynamicresources.nominations import Phase
from earmark.dynamicresources.reserving import read_text, write_text
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.statuses import Code, Status
from earmark.kube import objects
from support.dra_cluster import NOW, Cluster, allocated, exactly, ref


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0", "gpu-1"])
    return made


def text(status: Status) -> str:
    return ", ".join(status.reasons)


# --- PreFilter ---------------------------------------------------------------------------------------------------------


def test_a_pod_without_claims_is_skipped(cluster: Cluster) -> None:
    cluster.add_pod("p")
    cycle = cluster.pre_filter("p")
    assert cycle.status.code is Code.SKIP
    # Preemption may still name the cycle.
    assert cluster.core.cycle(cycle.id) is cycle


def test_an_entry_for_which_no_claim_is_needed_is_skipped(cluster: Cluster) -> None:
    entry = objects.PodResourceClaim(name="gpu", resource_claim_template_name="t")
    status = objects.PodStatus(resource_claim_statuses=(objects.PodResourceClaimStatus(name="gpu"),))
    meta = objects.ObjectMeta(name="p", namespace="default", uid="uid-p", resource_version="5")
    cluster._put_pod(objects.Pod(metadata=meta, spec=objects.PodSpec(resource_claims=(entry,)), status=status))
    assert cluster.pre_filter("p").status.code is Code.SKIP


@pytest.mark.parametrize(
    ("entry", "want"),
    [
        (objects.PodResourceClaim(name="gpu"), "none of the supported fields are set"),
        (objects.PodResourceClaim(name="gpu", resource_claim_name="c"), 'could not find ResourceClaim "default/c"'),
        (
            objects.PodResourceClaim(name="gpu", resource_claim_template_name="t"),
            'pod "default/p": ResourceClaim not created yet',
        ),
    ],
)
def test_a_claim_that_is_not_there_is_beyond_preemption(
    cluster: Cluster, entry: objects.PodResourceClaim, want: str
) -> None:
    meta = objects.ObjectMeta(name="p", namespace="default", uid="uid-p", resource_version="5")
    cluster._put_pod(objects.Pod(metadata=meta, spec=objects.PodSpec(resource_claims=(entry,))))
    status = cluster.pre_filter("p").status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert want in text(status)


def test_a_generated_claim_must_belong_to_the_pod(cluster: Cluster) -> None:
    cluster.add_claim("p-gpu")
    entry = objects.PodResourceClaim(name="gpu", resource_claim_template_name="t")
    generated = objects.PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu")
    meta = objects.ObjectMeta(name="p", namespace="default", uid="uid-p", resource_version="5")
    pod = objects.Pod(
        metadata=meta,
        spec=objects.PodSpec(resource_claims=(entry,)),
        status=objects.PodStatus(resource_claim_statuses=(generated,)),
    )
    cluster._put_pod(pod)
    assert text(cluster.pre_filter("p").status) == (
        "ResourceClaim default/p-gpu was not created for Pod default/p (Pod is not owner)"
    )


def test_a_claim_that_is_being_deleted_is_refused(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.change_claim("p-claim", deletion_timestamp=NOW)
    assert text(cluster.pre_filter("p").status) == 'resourceclaim "p-claim" is being deleted'


def test_a_class_that_does_not_exist_is_named(cluster: Cluster) -> None:
    request = objects.DeviceRequest(
        name="gpu", exactly=objects.ExactDeviceRequest(device_class_name="tpu", allocation_mode="ExactCount", count=1)
    )
    cluster.pending("p", request=request)
    status = cluster.pre_filter("p").status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert text(status) == "request gpu: device class tpu does not exist"


def test_a_claim_in_flight_for_another_pod_is_waited_for(cluster: Cluster) -> None:
    cluster.add_claim("team")
    for name in ("a", "b"):
        cluster.add_pod(name, ["team"])
    cycle = cluster.pre_filter("a")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    status = cluster.pre_filter("b").status
    assert text(status) == "resource claim default/team is in the process of being allocated"


def test_a_cycle_of_which_nobody_knows_is_an_error_of_its_own(cluster: Cluster) -> None:
    with pytest.raises(UnknownCycle, match="cycle-99"):
        cluster.core.cycle("cycle-99")


def test_a_new_attempt_ends_the_one_before(cluster: Cluster) -> None:
    cluster.pending("p")
    first = cluster.pre_filter("p")
    cluster.pre_filter("p")
    with pytest.raises(UnknownCycle):
        cluster.core.cycle(first.id)


# --- Reserve -----------------------------------------------------------------------------------------------------------


def test_reserve_takes_the_result_in_flight_and_touches_no_claim(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    claims = cluster.world.claims
    answer = cluster.core.reserve(cycle, "n1")
    assert answer.status.success
    assert cluster.world.claims is claims
    assert cluster.world.ledger.holds("uid-p-claim")
    cluster.pending("q", count=2)
    assert not cluster.filter(cluster.pre_filter("q"), "n1")[0].status.success


def test_reserve_without_a_result_is_an_error(cluster: Cluster) -> None:
    cluster.pending("p")
    answer = cluster.core.reserve(cluster.pre_filter("p"), "n1")
    assert (answer.status.code, text(answer.status)) == (Code.ERROR, "claim allocation not found for node")


@pytest.mark.kep("D34")
def test_reserve_looks_at_the_live_ledger(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    # Another scheduler was faster.
    cluster.running("other", ["gpu-0"])
    answer = cluster.core.reserve(cycle, "n1")
    assert answer.status.code is Code.UNSCHEDULABLE
    assert not cluster.world.ledger.holds("uid-p-claim")
    # gpu-1 is free: the pod must not sleep.
    verdict = cluster.core.end_cycle(ref("p"), cycle.id, rejected=True, bound_now=False, deleted=False)
    assert verdict is Hint.QUEUE


@pytest.mark.kep("D34")
def test_reserve_takes_the_result_though_something_else_has_changed(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.running("other", ["gpu-1"])
    assert cluster.core.reserve(cycle, "n1").status.success


@pytest.mark.parametrize("change", ["allocate", "delete"])
def test_reserve_refuses_when_the_claim_has_moved(cluster: Cluster, change: str) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    if change == "allocate":
        cluster.allocate("p-claim", ["gpu-1"])
    else:
        cluster.delete_claim("p-claim")
    assert cluster.core.reserve(cycle, "n1").status.code is Code.UNSCHEDULABLE


def test_unreserve_gives_everything_back_and_may_be_repeated(cluster: Cluster) -> None:
    cluster.pending("p")
    before = cluster.world.ledger
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    for _ in range(2):
        cluster.core.unreserve("uid-p")
        assert cluster.world.ledger == before
        assert cluster.world.in_flight == {}
        assert cluster.world.reservations == {}


@pytest.mark.kep("F58", "D34")
def test_what_is_written_outlives_unreserve(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.allocate("p-claim", ["gpu-0"], ["p"])
    cluster.core.unreserve("uid-p")
    assert cluster.world.ledger.holds("uid-p-claim")


@pytest.mark.kep("F58")
def test_a_claim_whose_write_is_uncertain_stays_in_flight(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    cluster.core.unreserve("uid-p", ["uid-p-claim"])
    assert cluster.world.ledger.holds("uid-p-claim")
    assert cluster.world.reservations == {}


@pytest.mark.kep("F58", "F12")
def test_an_older_object_never_replaces_a_newer_one(cluster: Cluster) -> None:
    cluster.pending("p")
    old = cluster.claims["p-claim"]
    cluster.allocate("p-claim", ["gpu-0"], ["p"])
    cluster._put_claim(old)
    assert cluster.world.ledger.holds("uid-p-claim")


@pytest.mark.kep("E55", "F8")
def test_a_nomination_is_assigned_when_its_pod_is_reserved(cluster: Cluster) -> None:
    cluster.pending("p")
    cluster.nominate("p", "n1")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    cluster.core.reserve(cycle, "n1")
    assert cluster.world.nominations.live["uid-p"].phase is Phase.ASSIGNED


def test_a_reservation_travels_as_text(cluster: Cluster) -> None:
    cluster.pending("p")
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    reservation = cluster.core.reserve(cycle, "n1").reservation
    assert reservation is not None
    read = read_text(write_text(reservation))
    assert read is not None
    assert (read.claims, read.allocates) == (("uid-p-claim",), ("uid-p-claim",))
    assert read_text("") is None


# --- Score -------------------------------------------------------------------------------------------------------------


def ranked(*classes: str) -> objects.DeviceRequest:
    return objects.DeviceRequest(
        name="gpu",
        first_available=tuple(
            objects.DeviceSubRequest(
                name=f"s{index}", device_class_name="gpu", allocation_mode="ExactCount", count=count
            )
            for index, count in enumerate(int(number) for number in classes)
        ),
    )


def test_nodes_with_higher_ranked_alternatives_are_better() -> None:
    cluster = Cluster()
    cluster.add_slice("n1", ["gpu-0", "gpu-1"])
    cluster.add_slice("n2", ["gpu-0"])
    cluster.pending("p", request=ranked("2", "1"))
    cycle = cluster.pre_filter("p")
    assert all(verdict.status.success for verdict in cluster.filter(cycle, "n1", "n2"))
    assert cluster.core.score(cycle, ["n1", "n2", "unknown"]) == [100, 87, 0]


def test_exact_requests_score_nothing(cluster: Cluster) -> None:
    cluster.pending("p", request=exactly())
    cycle = cluster.pre_filter("p")
    cluster.filter(cycle, "n1")
    assert cluster.core.score(cycle, ["n1"]) == [0]


def test_gates_have_upstreams_defaults() -> None:
    assert not Settings().preemption
    assert Settings().gate("DRAConsumableCapacity")
    assert Settings(feature_gates={"DRAPreemption": True}).preemption


@pytest.mark.kep("F39")
def test_admin_access_takes_nothing(cluster: Cluster) -> None:
    cluster.add_claim("admin")
    cluster.change_claim(
        "admin", status=objects.ResourceClaimStatus(allocation=allocated(["gpu-0", "gpu-1"], admin=True))
    )
    cluster.pending("p", count=2)
    assert cluster.filter(cluster.pre_filter("p"), "n1")[0].status.success


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nomination_persistence", "disk"),
        ("binding_timeout_seconds", 0.5),
        ("filter_timeout_seconds", -1.0),
        ("sandbox_timeout_seconds", 0.0),
        ("settlements_kept", 0),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"^{field}: want "):
        Settings(**{field: value})  # type: ignore[arg-type]
