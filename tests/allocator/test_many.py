"""Many nodes at once: equal problems are solved once, and every answer is that of its node alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from earmark.dynamicresources.allocator import AllocationError, Allocator, NodeFacts
from earmark.dynamicresources.allocator import answers as answering
from earmark.dynamicresources.allocator.jsonlines import Question, plain_result
from earmark.dynamicresources.allocator.judge import CelJudge
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from support.allocator_corpus import own_inputs
from support.allocator_world import (
    N1,
    N2,
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


def never() -> bool:
    return False


def fixed() -> str:
    return "share"


@pytest.fixture
def solves(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for every search."""
    calls: list[Any] = []
    original: Callable[..., Any] = answering.solve

    def counted(task: Any, expired: Any) -> Any:
        calls.append(task)
        return original(task, expired)

    monkeypatch.setattr(answering, "solve", counted)
    return calls


def fleet(count: int, *, varied: bool = False) -> tuple[Inventory, list[NodeFacts]]:
    nodes = [NodeFacts(f"n{number}") for number in range(count)]
    slices = [
        slice_of(
            f"s-{node.name}",
            [device(f"gpu-{k}", attributes={"uuid": {"string": f"{node.name}-{k}"},
                                            "model": {"string": "ab"[(k + number) % 2] if varied else "a"}})
             for k in range(4)],
            nodeName=node.name,
        )
        for number, node in enumerate(nodes)
    ]  # fmt: skip
    return inventory_of(*slices), nodes


MODEL = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "a"'}}


def test_equal_nodes_are_solved_once_and_get_their_own_devices(solves: list[Any]) -> None:
    inventory, nodes = fleet(20)
    problem = Allocator(inventory).prepare([claim_of(exactly(count=2, selectors=[MODEL]))])
    outcomes = problem.allocate_many([(node, [Ledger()]) for node in nodes], expired=never)
    assert len(solves) == 1
    for node, outcome in zip(nodes, outcomes, strict=True):
        results = outcome.results(fixed)
        assert results is not None
        assert [result.pool for result in results[0].devices.results] == [f"s-{node.name}"] * 2
        assert results[0].node_selector is not None
        assert results[0].node_selector.node_selector_terms[0].match_fields[0].values == (node.name,)


def test_what_is_in_use_sets_nodes_apart(solves: list[Any]) -> None:
    inventory, nodes = fleet(3)
    ledger = Ledger().charge("x", allocation_of(result_of("gpu-0", "s-n1")))
    problem = Allocator(inventory).prepare([claim_of()])
    outcomes = problem.allocate_many([(node, [ledger]) for node in nodes], expired=never)
    assert [names(outcome.results(fixed)) for outcome in outcomes] == [["gpu-0"], ["gpu-1"], ["gpu-0"]]
    assert len(solves) == 2


def test_yes_or_no_needs_no_search_where_counting_does(solves: list[Any]) -> None:
    inventory, nodes = fleet(12, varied=True)
    problem = Allocator(inventory).prepare([claim_of(exactly(count=2, selectors=[MODEL]))])
    answers = problem.fits_many([(node, [Ledger()]) for node in nodes], expired=never)
    assert answers == [True] * 12
    assert not solves


def test_yes_or_no_does_not_ask_for_the_order_of_devices(solves: list[Any]) -> None:
    inventory, nodes = fleet(12, varied=True)
    constraints = [{"distinctAttribute": "gpu.example.com/uuid"}]
    inventory = inventory_of(*[
        slice_of(f"s-{node.name}", [device(f"gpu-{k}", attributes={"uuid": {"int": k}, "model": {
            "string": "ab"[(k + number) % 2]}}) for k in range(4)], nodeName=node.name)
        for number, node in enumerate(nodes)
    ])  # fmt: skip
    problem = Allocator(inventory).prepare([claim_of(exactly(count=2), constraints=constraints)])
    answers = problem.fits_many([(node, [Ledger()]) for node in nodes], expired=never)
    assert answers == [True] * 12
    assert len(solves) == 1


def test_errors_take_the_place_of_answers_and_name_their_own_node() -> None:
    inventory, nodes = fleet(2)
    missing = {"cel": {"expression": 'device.attributes["gpu.example.com"].missing == "a"'}}
    problem = Allocator(inventory).prepare([claim_of(exactly(selectors=[missing]))])
    outcomes = problem.allocate_many([(node, [Ledger()]) for node in nodes], expired=never)
    texts = [outcome.error.text if outcome.error else "" for outcome in outcomes]
    assert ["s-n0/gpu-0" in texts[0], "s-n1/gpu-0" in texts[1]] == [True, True]
    yes_no = problem.fits_many([(nodes[0], [Ledger()])], expired=never)
    assert isinstance(yes_no[0], AllocationError)


def test_a_new_revision_of_the_inventory_keeps_what_is_compiled() -> None:
    inventory, nodes = fleet(2)
    allocator = Allocator(inventory)
    changed = allocator.on(inventory.with_slice(slice_of("s-n0", ["other"], nodeName="n0")).with_class(class_of("x")))
    outcome = changed.prepare([claim_of()]).allocate_many([(nodes[0], [Ledger()])], expired=never)[0]
    assert names(outcome.results(fixed)) == ["other"]


def test_slices_of_several_nodes_are_judged_for_each_node() -> None:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    inventory = inventory_of(slice_of("s", ["d0"], nodeSelector=selector))
    problem = Allocator(inventory).prepare([claim_of()])
    here, there = NodeFacts("n1", {"zone": "a"}), NodeFacts("n2", {"zone": "b"})
    assert problem.fits_many([(here, [Ledger()]), (there, [Ledger()])], expired=never) == [True, False]


def test_devices_that_choose_their_node_are_judged_for_each_node() -> None:
    members = [device("d1", nodeName="n1"), device("d2", nodeName="n2")]
    problem = Allocator(inventory_of(slice_of("s", members, perDeviceNodeSelection=True))).prepare([claim_of()])
    outcomes = problem.allocate_many([(N1, [Ledger()]), (N2, [Ledger()])], expired=never)
    assert [names(outcome.results(fixed)) for outcome in outcomes] == [["d1"], ["d2"]]


def test_asked_twice_in_any_way_recorded_problems_have_one_answer() -> None:
    judge = CelJudge()
    for line in own_inputs():
        question = Question.read(line)
        allocator = Allocator(question.inventory, question.features, channel=question.channel, judge=judge)
        problem = allocator.prepare(question.claims)
        query = [(question.node, [question.ledger])]
        yes = problem.fits_many(query * 2, expired=never)
        outcomes = problem.allocate_many(query * 2, expired=never)
        for answer, outcome in zip(yes, outcomes, strict=True):
            if isinstance(answer, AllocationError):
                assert outcome.error is not None, line["id"]
                assert outcome.error.kind == answer.kind
            else:
                assert answer is outcome.fits, line["id"]
        if outcomes[0].fits:
            results = [outcome.results(fixed) or () for outcome in outcomes]
            assert [*map(plain_result, results[0])] == [*map(plain_result, results[1])]


@pytest.mark.parametrize("seed", range(6))
def test_yes_or_no_agrees_with_a_search_for_every_state(seed: int) -> None:
    chance = random.Random(seed)
    slices, nodes = [], [NodeFacts(f"n{number}") for number in range(4)]
    for node in nodes:
        members = [
            device(f"gpu-{k}", attributes={"model": {"string": chance.choice("ab")}}, consumesCounters=[
                {"counterSet": "cs", "counters": {"m": {"value": str(chance.randint(1, 4))}}}])
            for k in range(5)
        ]  # fmt: skip
        sets = [{"name": "cs", "counters": {"m": {"value": str(chance.randint(5, 9))}}}]
        pool = f"p-{node.name}"
        slices.append(slice_of(f"s-{node.name}", members, pool=pool, count=2, nodeName=node.name))
        slices.append(slice_of(f"t-{node.name}", pool=pool, count=2, nodeName=node.name, sharedCounters=sets))
    inventory = inventory_of(*slices)
    wanted = claim_of(exactly("r0", selectors=[MODEL]), exactly("r1", count=chance.randint(1, 2)),
                      constraints=[{"matchAttribute": "gpu.example.com/model"}] if seed % 2 else [])  # fmt: skip
    allocator = Allocator(inventory)
    problem = allocator.prepare([wanted])
    for _ in range(60):
        node = chance.choice(nodes)
        ledgers = []
        for _ in range(chance.randint(1, 2)):
            ledger = Ledger()
            for k in chance.sample(range(5), chance.randint(0, 3)):
                ledger = ledger.charge(f"c{k}", allocation_of(result_of(f"gpu-{k}", f"p-{node.name}")))
            ledgers.append(ledger)
        fresh = allocator.prepare([wanted]).allocate_many([(node, ledgers)], expired=never)[0]
        assert problem.fits_many([(node, ledgers)], expired=never) == [fresh.fits]


def test_the_next_pod_of_the_same_shape_needs_no_search(solves: list[Any]) -> None:
    inventory, nodes = fleet(5)
    allocator = Allocator(inventory)
    first = allocator.prepare([claim_of(name="a")]).allocate_many([(node, [Ledger()]) for node in nodes], expired=never)
    second = allocator.prepare([claim_of(name="b")]).allocate_many(
        [(node, [Ledger()]) for node in nodes], expired=never
    )
    assert [outcome.results(fixed) for outcome in first] == [outcome.results(fixed) for outcome in second]
    assert len(solves) == 1
    larger = allocator.prepare([claim_of(exactly(count=2))]).allocate_many([(nodes[0], [Ledger()])], expired=never)
    assert names(larger[0].results(fixed)) == ["gpu-0", "gpu-1"]


def test_a_class_that_changed_makes_another_shape() -> None:
    inventory, nodes = fleet(1)
    allocator = Allocator(inventory)
    assert allocator.prepare([claim_of()]).fits_many([(nodes[0], [Ledger()])], expired=never) == [True]
    nothing = class_of(selectors=[{"cel": {"expression": "false"}}])
    changed = allocator.on(inventory.with_class(nothing))
    assert changed.prepare([claim_of()]).fits_many([(nodes[0], [Ledger()])], expired=never) == [False]


def test_taints_set_equal_nodes_apart() -> None:
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}
    slices = [slice_of("s1", ["gpu-0"]), slice_of("s2", [device("gpu-0", taints=[taint])], nodeName="n2")]
    query = [(N1, [Ledger()]), (N2, [Ledger()])]
    problem = Allocator(inventory_of(*slices)).prepare([claim_of()])
    assert problem.fits_many(query, expired=never) == [True, False]
    outcomes = problem.allocate_many(query, expired=never)
    assert [outcome.fits for outcome in outcomes] == [True, False]
