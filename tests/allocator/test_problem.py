"""Two ledgers, stored results, and what the answers say."""

from __future__ import annotations

import msgspec
import pytest

from earmark.dynamicresources.allocator import AllocationError, Allocator, UnsupportedFeatures
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult
from support.allocator_world import (
    N1,
    N2,
    allocate,
    allocation_of,
    claim_of,
    class_of,
    device,
    exactly,
    inventory_of,
    names,
    result_of,
    slice_of,
)  # fmt: skip

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "80Gi"}}}


def counted(name: str, amount: str) -> dict[str, object]:
    return device(name, consumesCounters=[{"counterSet": "cs", "counters": {"m": {"value": amount}}}])


def partitions(*devices: dict[str, object], available: str) -> list[object]:
    sets = [{"name": "cs", "counters": {"m": {"value": available}}}]
    return [slice_of("s", devices, pool="s", count=2), slice_of("t", pool="s", count=2, sharedCounters=sets)]


def share(device_name: str, amount: str) -> AllocationResult:
    return allocation_of(
        result_of(device_name, share_id=f"{device_name}-{amount}", consumed_capacity={"memory": amount})
    )


# --- several ledgers (F5) --------------------------------------------------------------------------------------------


@pytest.mark.kep("F5")
def test_a_device_must_be_free_in_every_ledger() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1", "d2"]))
    one, other = Ledger().charge("a", allocation_of("d0")), Ledger().charge("b", allocation_of("d1"))
    assert names(allocate(inventory, claim_of(), one, other)) == ["d2"]
    assert names(allocate(inventory, claim_of(exactly(count=2)), one, other)) is None


@pytest.mark.kep("F5")
def test_counters_are_checked_in_each_ledger_and_never_merged() -> None:
    inventory = inventory_of(*partitions(counted("a", "4"), counted("b", "4"), counted("c", "4"), available="8"))
    one, other = Ledger().charge("x", allocation_of("a")), Ledger().charge("y", allocation_of("b"))
    # Merged, a and b would leave nothing.
    assert names(allocate(inventory, claim_of(), one, other)) == ["c"]
    assert names(allocate(inventory, claim_of(), one.charge("z", allocation_of("b")), Ledger())) is None


@pytest.mark.kep("F5")
def test_capacity_is_checked_in_each_ledger_and_never_merged() -> None:
    inventory = inventory_of(slice_of("s", [device("d0", **SHARED)]))
    wanted = claim_of(exactly(capacity={"requests": {"memory": "40Gi"}}))
    one, other = Ledger().charge("x", share("d0", "40Gi")), Ledger().charge("y", share("d0", "40Gi"))
    assert names(allocate(inventory, wanted, one, other)) == ["d0"]
    assert names(allocate(inventory, wanted, one.charge("z", share("d0", "8Gi")), other)) is None


@pytest.mark.kep("F5")
def test_a_shareable_device_is_charged_only_where_no_share_is_held() -> None:
    member = {**counted("d0", "4"), **SHARED}
    inventory = inventory_of(*partitions(member, available="4"))
    wanted = claim_of(exactly(capacity={"requests": {"memory": "1Gi"}}))
    held = Ledger().charge("x", share("d0", "1Gi"))
    assert names(allocate(inventory, wanted, held, Ledger())) == ["d0"]


def test_a_ledger_that_says_the_same_changes_nothing() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]))
    ledger = Ledger().charge("a", allocation_of("d0"))
    assert allocate(inventory, claim_of(), ledger, ledger) == allocate(inventory, claim_of(), ledger)


# --- stored results (E55, F22, F36, F38) -----------------------------------------------------------------------------


@pytest.mark.kep("E55")
def test_stored_results_that_hold_are_returned_unchanged() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]))
    stored = [allocation_of("d1")]
    assert allocate(inventory, claim_of(), only=stored) == tuple(stored)


@pytest.mark.kep("F22")
def test_one_device_in_use_makes_all_stored_results_infeasible() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1", "d2"]))
    claims = [claim_of(name="a"), claim_of(name="b")]
    stored = [allocation_of("d0"), allocation_of("d1")]
    ledger = Ledger().charge("x", allocation_of("d1"))
    assert allocate(inventory, claims, only=stored) == tuple(stored)
    assert allocate(inventory, claims, ledger, only=stored) is None
    assert allocate(inventory, claims, Ledger(), ledger, only=stored) is None


@pytest.mark.kep("F37")
def test_a_stored_device_that_is_gone_is_infeasible() -> None:
    assert allocate(inventory_of(slice_of("s", ["d1"])), claim_of(), only=[allocation_of("d0")]) is None


@pytest.mark.kep("F38")
def test_a_stored_device_with_an_untolerated_taint_is_infeasible() -> None:
    inventory = inventory_of(slice_of("s", [device("d0", taints=[TAINT]), "d1"]))
    stored = [allocation_of("d0")]
    assert allocate(inventory, claim_of(), only=stored) is None
    tolerating = claim_of(exactly(tolerations=[{"operator": "Exists"}]))
    assert allocate(inventory, tolerating, only=stored) == tuple(stored)


def test_stored_results_must_pass_selectors_and_constraints() -> None:
    members = [device(f"d{n}", attributes={"numa": {"int": n}}) for n in range(2)]
    inventory = inventory_of(slice_of("s", members))
    stored = [allocation_of("d0", "d1")]
    matched = claim_of(exactly(count=2), constraints=[{"matchAttribute": "gpu.example.com/numa"}])
    selecting = claim_of(
        exactly(count=2, selectors=[{"cel": {"expression": 'device.attributes["gpu.example.com"].numa == 0'}}])
    )
    assert allocate(inventory, claim_of(exactly(count=2)), only=stored) == tuple(stored)
    assert allocate(inventory, matched, only=stored) is None
    assert allocate(inventory, selecting, only=stored) is None


def test_stored_counters_must_still_be_there() -> None:
    inventory = inventory_of(*partitions(counted("a", "4"), counted("b", "4"), available="4"))
    assert allocate(inventory, claim_of(), only=[allocation_of("a")]) is not None
    ledger = Ledger().charge("x", allocation_of("b"))
    assert allocate(inventory, claim_of(), ledger, only=[allocation_of("a")]) is None


@pytest.mark.kep("F36")
def test_a_stored_share_keeps_its_id_unless_it_is_in_use() -> None:
    inventory = inventory_of(slice_of("s", [device("d0", **SHARED)]))
    wanted = claim_of(exactly(capacity={"requests": {"memory": "8Gi"}}))
    stored = [share("d0", "8Gi")]
    assert allocate(inventory, wanted, only=stored) == tuple(stored)
    used = Ledger().charge("x", share("d0", "8Gi"))
    renewed = allocate(inventory, wanted, used, only=stored)
    assert renewed is not None
    assert renewed[0].devices.results[0].share_id == "share-1"
    assert msgspec.structs.replace(renewed[0].devices.results[0], share_id="d0-8Gi") == stored[0].devices.results[0]


def test_a_stored_share_must_still_fit() -> None:
    inventory = inventory_of(slice_of("s", [device("d0", **SHARED)]))
    wanted = claim_of(exactly(capacity={"requests": {"memory": "8Gi"}}))
    ledger = Ledger().charge("x", share("d0", "73Gi"))
    assert allocate(inventory, wanted, ledger, only=[share("d0", "8Gi")]) is None


def test_a_stored_subrequest_is_kept_though_a_better_one_is_free() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]))
    sub = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
    wanted = claim_of(
        {"name": "r", "firstAvailable": [{"name": "two", "count": 2, **sub}, {"name": "one", "count": 1, **sub}]}
    )
    stored = [allocation_of(result_of("d1", request="r/one"))]
    assert names(allocate(inventory, wanted)) == ["d0", "d1"]
    assert allocate(inventory, wanted, only=stored) == tuple(stored)


def test_stored_results_of_mode_all_must_be_all() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]))
    wanted = claim_of(exactly(count=-1))
    assert allocate(inventory, wanted, only=[allocation_of("d1", "d0")]) == (allocation_of("d1", "d0"),)
    assert allocate(inventory, wanted, only=[allocation_of("d0")]) is None


def test_too_few_or_unknown_stored_results_are_infeasible() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]))
    wanted = claim_of(exactly(count=2))
    for stored in ([allocation_of("d0")], [allocation_of("d0", "d1"), allocation_of()],
                   [allocation_of(result_of("d0", request="x"), "d0", "d1")]):  # fmt: skip
        assert allocate(inventory, wanted, only=stored) is None


# --- answers and errors ----------------------------------------------------------------------------------------------


def test_no_claims_are_no_results_and_no_requests_no_devices() -> None:
    inventory = inventory_of(slice_of("s", ["d0"]))
    assert allocate(inventory, []) == ()
    empty = claim_of(name="x")
    empty = msgspec.structs.replace(empty, spec=type(empty.spec)())
    assert allocate(inventory, empty) == (AllocationResult(),)


def test_an_admin_claim_gets_a_device_in_use() -> None:
    inventory = inventory_of(slice_of("s", ["d0"]))
    ledger = Ledger().charge("a", allocation_of("d0"))
    results = allocate(inventory, claim_of(exactly(adminAccess=True)), ledger)
    assert names(results) == ["d0"]
    assert names(allocate(inventory, claim_of(), ledger)) is None


def test_a_search_whose_time_is_over_is_an_error_and_not_a_no() -> None:
    # Twenty-four different amounts of which no twelve make up exactly half: only counting all of them tells.
    amounts = [str(1000 + 37 * n * n) for n in range(24)]
    members = [
        device(f"d{n}", consumesCounters=[
            {"counterSet": "cs", "counters": {"m": {"value": amount}, "w": {"value": str(40_000 - int(amount))}}}
        ])
        for n, amount in enumerate(amounts)
    ]  # fmt: skip
    total = sum(map(int, amounts))
    sets = [
        {"name": "cs", "counters": {"m": {"value": str(total // 2)}, "w": {"value": str(480_000 - total // 2 - 1)}}}
    ]
    slices = [slice_of("s", members, pool="s", count=2), slice_of("t", pool="s", count=2, sharedCounters=sets)]
    problem = Allocator(inventory_of(*slices)).prepare([claim_of(exactly(count=12))])
    with pytest.raises(AllocationError) as caught:
        problem.allocate(N1, [Ledger()], expired=lambda: True, share_id=str)
    assert caught.value.kind == "timeout"


def test_claim_errors_are_fatal_and_name_the_place() -> None:
    inventory = inventory_of(slice_of("s", ["d0"]), classes=[class_of("other")])
    with pytest.raises(AllocationError) as caught:
        allocate(inventory, claim_of())
    assert caught.value.kind == "fatal"
    assert caught.value.text.startswith("claim ns/c, request r: could not retrieve device class gpu")


def test_a_bad_quantity_is_a_fatal_error_with_its_place() -> None:
    broken = slice_of("s", [device("d0", capacity={"memory": {"value": "lots"}})])
    with pytest.raises(AllocationError, match="slice s, device d0: capacity") as caught:
        allocate(inventory_of(broken), claim_of())
    assert caught.value.kind == "fatal"
    with pytest.raises(AllocationError, match=r"claim ns/c, request r: capacity\.requests"):
        allocate(inventory_of(slice_of("s", ["d0"])), claim_of(exactly(capacity={"requests": {"memory": "much"}})))


def test_features_that_no_variant_has_are_refused() -> None:
    with pytest.raises(UnsupportedFeatures):
        Allocator(inventory_of(), frozenset({"Telepathy"}))
    with pytest.raises(UnsupportedFeatures):
        Allocator(inventory_of(), frozenset({"ConsumableCapacity"}), channel="stable")


def test_a_node_without_slices_has_nothing() -> None:
    assert allocate(inventory_of(slice_of("s", ["d0"])), claim_of(), node=N2) is None
