"""The ledger: charging and releasing are exact opposites, per claim, and forks cost nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult
from support.allocator_world import DRIVER, allocation_of, result_of

POOL = (DRIVER, "s")


def share(device: str, share_id: str, **amounts: str) -> AllocationResult:
    return allocation_of(result_of(device, share_id=share_id, consumed_capacity=amounts or None))


@pytest.mark.kep("E16")
def test_release_undoes_charge_bit_for_bit() -> None:
    before = Ledger().charge("a", allocation_of("d0")).charge("b", share("d1", "s1", memory="2Gi", slots="0"))
    after = before.charge("c", share("d1", "s2", memory="1Gi")).release("c")
    assert after == before
    assert after.pool(POOL).key == before.pool(POOL).key


@pytest.mark.kep("E16")
def test_charge_undoes_release_bit_for_bit() -> None:
    before = Ledger().charge("a", allocation_of("d0", "d1")).charge("b", allocation_of("d2"))
    assert before.release("a").charge("a", allocation_of("d0", "d1")) == before


def test_charging_a_claim_twice_counts_it_once() -> None:
    once = Ledger().charge("a", share("d0", "s1", memory="40Gi"))
    assert once.charge("a", share("d0", "s1", memory="40Gi")) is once
    assert once.release("a") == Ledger()


def test_releasing_a_claim_twice_releases_it_once() -> None:
    ledger = Ledger().charge("a", share("d0", "s1", memory="1Gi")).charge("b", share("d0", "s2", memory="1Gi"))
    gone = ledger.release("a")
    assert gone.release("a") is gone
    assert gone.device(DRIVER, "s", "d0").consumed == {"memory": (2**30 * 10**9, 1)}


def test_another_allocation_of_a_claim_replaces_its_own() -> None:
    ledger = Ledger().charge("a", allocation_of("d0")).charge("a", allocation_of("d1"))
    assert ledger == Ledger().charge("a", allocation_of("d1"))


@pytest.mark.kep("F39")
def test_admin_access_is_never_counted() -> None:
    admin = allocation_of(result_of("d0", admin_access=True))
    ledger = Ledger().charge("a", admin)
    assert ledger.holds("a")
    assert not ledger.pool(POOL).devices
    assert ledger.release("a") == Ledger()


def test_a_device_that_two_claims_list_is_free_when_both_are_gone() -> None:
    ledger = Ledger().charge("a", allocation_of("d0")).charge("b", allocation_of("d0"))
    assert ledger.release("a").device(DRIVER, "s", "d0").exclusive == 1
    assert not ledger.release("a").release("b").pool(POOL).devices


def test_a_share_without_the_gate_is_a_whole_device() -> None:
    ledger = Ledger(consumable_capacity=False).charge("a", share("d0", "s1", memory="1Gi"))
    assert ledger.device(DRIVER, "s", "d0").exclusive == 1


def test_a_fork_leaves_its_origin_alone() -> None:
    origin = Ledger().charge("a", allocation_of("d0"))
    origin.release("a").charge("b", allocation_of("d1"))
    assert origin.allocation_of("a") == allocation_of("d0")
    assert not origin.holds("b")


def test_an_untouched_pool_keeps_its_record() -> None:
    ledger = Ledger().charge("a", allocation_of(result_of("d0", "p"))).charge("b", allocation_of("d0"))
    assert ledger.release("b").pool((DRIVER, "p")) is ledger.pool((DRIVER, "p"))


def test_who_holds_a_device_is_not_part_of_the_pools_key() -> None:
    one, other = Ledger().charge("a", allocation_of("d0")), Ledger().charge("b", allocation_of("d0"))
    assert one.pool(POOL).key == other.pool(POOL).key


def test_the_oracles_form_of_the_state_can_be_read() -> None:
    device = (DRIVER, "s", "d0")
    ledger = Ledger.from_allocated_state([(DRIVER, "s", "d1")], [(device, "s1")], [(device, {"memory": "1Gi"})])
    use = ledger.device(*device)
    assert (use.exclusive, use.shares, use.aggregated) == (0, {"s1": 1}, 1)
    assert ledger.device(DRIVER, "s", "d1").exclusive == 1


CHARGES = st.dictionaries(
    st.sampled_from([f"c{number}" for number in range(40)]),
    st.lists(st.tuples(st.sampled_from("ps"), st.sampled_from(["d0", "d1", "d2"]), st.booleans()), max_size=3),
    max_size=30,
)


@pytest.mark.kep("E16")
@given(CHARGES, st.lists(st.sampled_from([f"c{number}" for number in range(40)]), max_size=60), st.randoms())
def test_only_what_is_charged_counts_not_how_it_came_about(
    charges: dict[str, list[tuple[str, str, bool]]], noise: list[str], chance: object
) -> None:
    allocations = {
        uid: allocation_of(*[
            result_of(device, pool, share_id=f"{uid}-{n}" if shared else None,
                      consumed_capacity={"memory": "1Gi"} if shared else None)
            for n, (pool, device, shared) in enumerate(rows)
        ])
        for uid, rows in charges.items()
    }  # fmt: skip
    straight = Ledger()
    for uid, allocation in allocations.items():
        straight = straight.charge(uid, allocation)
    winding = straight.release_all(noise)
    for uid in noise:
        if uid in allocations:
            winding = winding.charge(uid, allocations[uid]).release(uid).charge(uid, allocations[uid])
        else:
            winding = winding.charge(uid, allocation_of("d9")).release(uid)
    assert winding == straight
    assert {pool: straight.pool(pool).key for pool in (POOL, (DRIVER, "p"))} == {
        pool: winding.pool(pool).key for pool in (POOL, (DRIVER, "p"))
    }
    assert dict(winding.claims()) == allocations
