"""Counting answers yes or no as the search does, for every state that a dry run can come to."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from earmark.dynamicresources.allocator import Allocator, NodeFacts
from earmark.dynamicresources.allocator.quick import affordable
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import ResourceClaim
from support.allocator_world import (
    N1,
    allocation_of,
    claim_of,
    device,
    exactly,
    inventory_of,
    result_of,
    slice_of,
)  # fmt: skip

DEVICES = 7


def never() -> bool:
    return False


def inventory(chance: random.Random) -> Inventory:
    """Two pools on n1, one with counters."""
    zones = ["x", "y", "z"][: chance.randint(1, 3)]

    def attributes() -> dict[str, Any]:
        found: dict[str, Any] = {"model": {"string": chance.choice("aab")}, "zone": {"string": chance.choice(zones)}}
        if chance.random() < 0.2:
            del found["zone"]
        return found

    def counters() -> list[dict[str, Any]]:
        amounts = {name: {"value": str(chance.randint(0, 4))} for name in ("m", "n")}
        return [{"counterSet": "cs", "counters": amounts}]

    published = {name: {"value": str(chance.randint(4, 12))} for name in ("m", "n")}
    counted = [device(f"c{k}", attributes=attributes(), consumesCounters=counters()) for k in range(DEVICES)]
    plain = [device(f"p{k}", attributes=attributes()) for k in range(chance.randint(0, 3))]
    sets = [{"name": "cs", "counters": published}]
    return inventory_of(
        slice_of("s1", counted, pool="counted", count=2, nodeName="n1"),
        slice_of("s2", pool="counted", count=2, nodeName="n1", sharedCounters=sets),
        slice_of("s3", plain, pool="plain", nodeName="n1"),
    )


def wanted(chance: random.Random) -> list[ResourceClaim]:
    def selectors() -> list[dict[str, Any]]:
        if chance.random() < 0.5:
            return []
        return [{"cel": {"expression": f'device.attributes["gpu.example.com"].model == "{chance.choice("ab")}"'}}]

    claims = []
    for name in "de"[: chance.randint(1, 2)]:
        requests = [exactly(f"r{k}", count=chance.randint(1, 2), selectors=selectors())
                    for k in range(chance.randint(1, 3))]  # fmt: skip
        constraints = []
        if chance.random() < 0.6:
            constraints.append(
                {"matchAttribute": "gpu.example.com/zone", "requests": ["r0"] if chance.random() < 0.3 else []}
            )
        if chance.random() < 0.3:
            constraints.append({"matchAttribute": "gpu.example.com/model"})
        claims.append(claim_of(*requests, constraints=constraints, name=name))
    return claims


@pytest.mark.parametrize("seed", range(40))
def test_it_agrees_with_the_search(seed: int) -> None:
    chance = random.Random(seed)
    offered, claims = inventory(chance), wanted(chance)
    problem = Allocator(offered).prepare(claims)
    ledger = Ledger()
    names = [("counted", f"c{k}") for k in range(DEVICES)] + [("plain", "p0"), ("gone", "g0")]
    before = [ledger]
    for _ in range(25):
        # Charges and releases one after another, from now and from earlier, as forks of a dry run do.
        ledger = chance.choice(before[-3:])
        for pool, name in chance.sample(names, chance.randint(1, 3)):
            ledger = ledger.release(name) if ledger.holds(name) else ledger.charge(
                name, allocation_of(result_of(name, pool)))  # fmt: skip
        before.append(ledger)
        ledgers = [ledger] if chance.random() < 0.7 else [ledger, chance.choice(before)]
        quick = problem.fits_many([(N1, ledgers)], expired=never)
        # A ledger made anew and an allocator made anew remember nothing.
        fresh = []
        for old in ledgers:
            made = Ledger()
            for uid, allocation in old.claims():
                made = made.charge(uid, allocation)
            fresh.append(made)
        search = Allocator(offered).prepare(claims).allocate_many([(N1, fresh)], expired=never)[0]
        assert search.error is None
        assert quick == [search.fits]


@pytest.mark.parametrize("seed", range(60))
def test_subsets_are_affordable_exactly_if_one_is(seed: int) -> None:
    chance = random.Random(seed)
    dims, count = chance.randint(1, 3), chance.randint(1, 4)
    rows = [tuple(chance.randint(0, 9) for _ in range(dims)) for _ in range(chance.randint(count, 8))]
    limits = [chance.randint(0, 7 * count) for _ in range(dims)]
    expected = any(
        all(sum(column) <= limit for column, limit in zip(zip(*chosen, strict=True), limits, strict=True))
        for chosen in itertools.combinations(rows, count)
    )
    assert affordable(rows, limits, count) is expected


def test_a_view_that_the_nodes_features_decide_is_not_kept() -> None:
    """skipNodeOperations: the same slices, another node object, another answer."""
    offered = inventory_of(slice_of("s1", ["gpu-0"], nodeName="n1", skipNodeOperations=["PrepareResources"]))
    allocator = Allocator(offered, frozenset({"OptionalNodeOperations"}))
    problem = allocator.prepare([claim_of()])
    can = NodeFacts("n1", declared_features=("DRAOptionalNodeOperations",))
    assert problem.fits_many([(N1, [Ledger()]), (can, [Ledger()])], expired=never) == [False, True]
    again = allocator.prepare([claim_of(name="other")])
    assert again.fits_many([(can, [Ledger()]), (N1, [Ledger()])], expired=never) == [True, False]
