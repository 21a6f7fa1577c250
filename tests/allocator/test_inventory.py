"""The inventory: where devices are, and that changes do not touch older revisions."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.inventory import Inventory
from earmark.kube import objects
from support.allocator_world import DRIVER, N1, allocate, claim_of, device, inventory_of, names, slice_of

SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


def rule(name: str, **selector: str) -> objects.DeviceTaintRule:
    return objects.DeviceTaintRule(
        metadata=objects.ObjectMeta(name=name),
        spec=objects.DeviceTaintRuleSpec(
            device_selector=objects.DeviceTaintSelector(**selector),
            taint=objects.DeviceTaint(key="k", effect="NoSchedule"),
        ),
    )


@pytest.mark.kep("E26", "E28")
def test_the_node_name_comes_from_the_slice_or_from_the_device() -> None:
    per_device = slice_of("t", [device("d1", nodeName="n7"), device("d2", allNodes=True)], perDeviceNodeSelection=True)
    inventory = inventory_of(slice_of("s", ["d0"]), per_device)
    assert inventory.node_of(DRIVER, "s", "d0") == "n1"
    assert inventory.node_of(DRIVER, "t", "d1") == "n7"


@pytest.mark.kep("E27")
def test_selectors_and_all_nodes_name_no_node() -> None:
    per_device = slice_of("t", [device("d2", allNodes=True)], perDeviceNodeSelection=True)
    inventory = inventory_of(
        slice_of("s", ["d0"], allNodes=True), slice_of("u", ["d0"], nodeSelector=SELECTOR), per_device
    )
    assert [inventory.node_of(DRIVER, pool, name) for pool, name in (("s", "d0"), ("u", "d0"), ("t", "d2"))] == [
        None
    ] * 3


@pytest.mark.kep("F37")
def test_a_device_that_is_gone_has_no_node() -> None:
    inventory = inventory_of(slice_of("s", ["d0"]))
    assert inventory.exists(DRIVER, "s", "d0")
    gone = inventory.without_slice("s")
    assert not gone.exists(DRIVER, "s", "d0")
    assert gone.node_of(DRIVER, "s", "d0") is None


def test_only_the_newest_generation_counts() -> None:
    inventory = inventory_of(slice_of("s-1", ["old"], pool="s"), slice_of("s-2", ["new"], pool="s", generation=2))
    assert inventory.exists(DRIVER, "s", "new")
    assert not inventory.exists(DRIVER, "s", "old")


def test_a_change_leaves_older_revisions_alone() -> None:
    old = inventory_of(slice_of("s", ["d0"]))
    new = old.with_slice(slice_of("s", ["d1"])).with_slice(slice_of("t", ["d2"], nodeName="n2"))
    assert names(allocate(old, claim_of())) == ["d0"]
    assert names(allocate(new, claim_of())) == ["d1"]
    assert [view.name for view in old.slices()] == ["s"]
    assert names(allocate(new.without_slice("s"), claim_of(), node=N1)) is None


def test_a_slice_that_moves_to_another_node_leaves_the_first() -> None:
    inventory = inventory_of(slice_of("s", ["d0"])).with_slice(slice_of("s", ["d0"], nodeName="n2"))
    assert inventory.local_slices("n1") == ()
    assert [view.name for view in inventory.local_slices("n2")] == ["s"]
    everywhere = inventory.with_slice(slice_of("s", ["d0"], allNodes=True))
    assert everywhere.local("n2") is None
    assert [view.name for view in everywhere.shared_slices()] == ["s"]


def test_taint_rules_come_and_go() -> None:
    inventory = inventory_of(slice_of("s", ["d0", "d1"]), slice_of("t", ["d2"], nodeName="n2"))
    tainted = inventory.with_rule(rule("x", device="d0"))
    assert names(allocate(tainted, claim_of())) == ["d1"]
    assert names(allocate(tainted.with_rule(rule("y")), claim_of())) is None
    assert names(allocate(tainted.without_rule("x"), claim_of())) == ["d0"]
    assert next(iter(tainted.slices())) is not None


def test_a_rule_without_a_selector_matches_nothing() -> None:
    nothing = objects.DeviceTaintRule(
        metadata=objects.ObjectMeta(name="x"),
        spec=objects.DeviceTaintRuleSpec(taint=objects.DeviceTaint(key="k", effect="NoSchedule")),
    )
    assert names(allocate(inventory_of(slice_of("s", ["d0"])).with_rule(nothing), claim_of())) == ["d0"]


def test_rules_apply_to_slices_that_come_later() -> None:
    inventory = inventory_of().with_rule(rule("x", driver=DRIVER)).with_slice(slice_of("s", ["d0"]))
    assert names(allocate(inventory, claim_of())) is None


def test_made_at_once_or_one_by_one_it_is_the_same() -> None:
    slices = [slice_of(f"s{n}", [f"d{n}"], allNodes=True) for n in (3, 1, 2)]
    rules = [rule("x", device="d1")]
    at_once = Inventory.of(slices, [], rules)
    one_by_one = Inventory()
    for made in slices:
        one_by_one = one_by_one.with_slice(made)
    one_by_one = one_by_one.with_rule(rules[0])
    assert [(view.name, view.taints) for view in at_once.shared_slices()] == [
        (view.name, view.taints) for view in one_by_one.shared_slices()
    ]
