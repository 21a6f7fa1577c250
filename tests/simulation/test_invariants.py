"""The invariants find what they are for, and nothing else."""

import pytest

from earmark.simulation.invariants import devices, evictions, nominations, pods, simulations
from earmark.simulation.invariants.nominations import ClaimNomination
from earmark.simulation.report import Eviction
from support.simulation_objects import claim, cluster, device_slice, pod

SHARED = {"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}


def share(amount: str, share_id: str) -> dict[str, object]:
    return {"device": "d", "shareID": share_id, "consumedCapacity": {"memory": amount}}


@pytest.mark.kep("D34", "R17")
def test_two_claims_with_one_exclusive_device_are_found() -> None:
    broken = list(
        devices.over_allocation(
            cluster(device_slice([{"name": "d"}]), claim("a", [{"device": "d"}]), claim("b", [{"device": "d"}]))
        )
    )
    assert [(item.invariant, item.subject) for item in broken] == [(devices.EXCLUSIVE, "gpu.example.com/n1/d")]
    assert "a, b" in broken[0].detail


@pytest.mark.kep("R65")
def test_admin_access_counts_for_nothing() -> None:
    seen = cluster(
        device_slice([{"name": "d"}]), claim("a", [{"device": "d"}]), claim("b", [{"device": "d", "adminAccess": True}])
    )
    assert list(devices.over_allocation(seen)) == []


@pytest.mark.kep("E23")
def test_capacity_beyond_what_is_offered_is_found() -> None:
    full = cluster(device_slice([SHARED]), claim("a", [share("40Gi", "1")]), claim("b", [share("40Gi", "2")]))
    assert list(devices.over_allocation(full)) == []
    full.put(claim("c", [share("1", "3")]))
    assert [item.invariant for item in devices.over_allocation(full)] == [devices.CAPACITY]


def test_one_share_of_two_claims_is_found() -> None:
    seen = cluster(device_slice([SHARED]), claim("a", [share("1Gi", "1")]), claim("b", [share("1Gi", "1")]))
    assert [item.invariant for item in devices.over_allocation(seen)] == [devices.SHARE]


@pytest.mark.kep("E21")
def test_counters_beyond_what_is_offered_are_found() -> None:
    def part(name: str, memory: str) -> dict[str, object]:
        return {"name": name, "consumesCounters": [{"counterSet": "g", "counters": {"memory": {"value": memory}}}]}

    seen = cluster(
        device_slice([part("whole", "40Gi"), part("half-0", "20Gi"), part("half-1", "20Gi")]),
        device_slice(name="c", sharedCounters=[{"name": "g", "counters": {"memory": {"value": "40Gi"}}}]),
        claim("a", [{"device": "half-0"}]),
        claim("b", [{"device": "half-1"}]),
    )
    assert list(devices.over_allocation(seen)) == []
    seen.put(claim("c", [{"device": "whole"}]))
    assert [item.subject for item in devices.over_allocation(seen)] == ["gpu.example.com/n1 g.memory"]


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    seen = cluster(
        device_slice([{"name": "d", "allowMultipleAllocations": True}], name="new", generation=2),
        device_slice([{"name": "d"}], name="old", generation=1),
        claim("a", [{"device": "d", "shareID": "1"}]),
        claim("b", [{"device": "d", "shareID": "2"}]),
    )
    assert list(devices.over_allocation(seen)) == []


def bound(name: str, **status: object) -> object:
    return pod(
        name,
        spec={"nodeName": "n1", "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]},
        status={"phase": "Running", **status},
    )


@pytest.mark.parametrize(
    ("held", "detail"),
    [
        (None, "does not exist"),
        (claim("c"), "is unallocated"),
        (claim("c", [{"device": "d"}], ["other"]), "is not reserved for it"),
    ],
)
def test_a_bound_pod_without_its_claim_is_found(held: object, detail: str) -> None:
    seen = cluster(*[value for value in (bound("p"), held) if value is not None])  # type: ignore[misc]
    (broken,) = pods.bound_without_claims(seen)
    assert detail in broken.detail


def test_a_bound_pod_with_its_claim_is_well() -> None:
    seen = cluster(bound("p"), claim("c", [{"device": "d"}], ["p"]))  # type: ignore[arg-type]
    assert list(pods.bound_without_claims(seen)) == []


def test_finished_pods_and_those_placed_by_hand_need_no_claim() -> None:
    finished = cluster(bound("p", phase="Succeeded"), claim("c"))  # type: ignore[arg-type]
    assert list(pods.bound_without_claims(finished)) == []
    placed = cluster(bound("p"), claim("c"))  # type: ignore[arg-type]
    assert list(pods.bound_without_claims(placed, {"uid-p"})) == []


@pytest.mark.kep("E42", "F48")
def test_a_claim_nomination_without_its_nominated_pod_is_found() -> None:
    held = ClaimNomination("p", "u", "n1")
    assert list(nominations.orphaned([held], {"u": "n1"}, {"u"})) == []
    assert len(list(nominations.orphaned([held], {"u": "n2"}, {"u"}))) == 1
    assert len(list(nominations.orphaned([held], {}, {"u"}))) == 1
    assert len(list(nominations.orphaned([held], {"u": "n1"}, set()))) == 1


def test_a_proposal_of_the_running_cycle_is_well() -> None:
    proposal = ClaimNomination("p", "u", "n1", proposed=True)
    assert list(nominations.orphaned([proposal], {}, {"u"}, {"u"})) == []
    assert len(list(nominations.orphaned([proposal], {}, {"u"}, set()))) == 1


def test_a_victim_as_important_as_its_preemptor_is_found() -> None:
    fair = evictions.Preemption("v", 1, "p", 2)
    unfair = evictions.Preemption("w", 2, "p", 2)
    assert [item.subject for item in evictions.too_important([fair, unfair])] == ["w p"]


@pytest.mark.kep("E74", "R34")
def test_a_second_deletion_by_preemption_is_found() -> None:
    once = [Eviction(1.0, "v", "u1", 0), Eviction(1.0, "w", "u2", 0)]
    assert list(evictions.preempted_twice(once)) == []
    assert [item.subject for item in evictions.preempted_twice([*once, Eviction(2.0, "v", "u1", 0)])] == ["u1"]


@pytest.mark.kep("E17")
def test_a_simulation_that_changes_the_plugin_is_found() -> None:
    before = simulations.Fingerprint(1, "a")
    assert list(simulations.disturbed("FilterForks", before, before)) == []
    assert list(simulations.disturbed("FilterForks", before, simulations.Fingerprint(2, "b"))) == []
    assert len(list(simulations.disturbed("FilterForks", before, simulations.Fingerprint(1, "b")))) == 1
