"""Hostile expressions end in an error, soon and in little memory."""

from __future__ import annotations

import resource
import time

import pytest

from support.cel_devices import outcome, prepared

_DEVICE = prepared({"driver": "d", "attributes": {}, "capacity": {}})
_LONG = "[" + ",".join(["1"] * 100) + "]"
_COST = {"runtime": "operation cancelled: actual cost limit exceeded"}


def _doubling(start: str, links: int) -> str:
    text = f"cel.bind(a0, {start}, "
    for index in range(1, links):
        text += f"cel.bind(a{index}, a{index - 1} + a{index - 1}, "
    return text + f"size(a{links - 1}) > 0" + ")" * links


@pytest.mark.parametrize(
    "selector",
    [
        "(" * 9_000,
        "(" * 250 + "true" + ")" * 250,
        "1" + "+1" * 300 + " > 0",
        "a" + ".b" * 4_000,
        "true ? true : " * 600 + "true",
        "[" + ",".join(["x"] * 3_000) + "].size() == 1",
        "optional.of(1)" + ".optMap(x, x)" * 30 + ".hasValue()",
        '"a".matches("' + "(" * 2_000 + "a" + ")" * 2_000 + '")',
        '"a".matches("((a{1,100}){1,100}){1,10}b")',
        "9" * 10_000 + " > 0",
    ],
)
def test_an_expression_out_of_bounds_does_not_compile(selector: str) -> None:
    found, _ = outcome(selector, _DEVICE)
    assert "compile" in found


@pytest.mark.parametrize(
    "selector",
    [
        f"{_LONG}.map(a, {_LONG}.map(b, {_LONG}.map(c, 1))).size() == 100",
        "lists.range(100000000).all(x, true)",
        "lists.range(3000).distinct().size() == 1",
        _doubling('"aaaaaaaa"', 60),
        _doubling("[1, 2]", 60),
        '"aaaaaaaaaaaaaaaa"' + '.replace("a", "aaaaaaaaaaaaaaaa")' * 20 + ".size() > 0",
    ],
)
def test_an_expression_that_grows_is_over_the_cost_limit(selector: str) -> None:
    assert outcome(selector, _DEVICE)[0] == _COST


def test_comparing_values_that_share_parts_is_bounded() -> None:
    left = "cel.bind(a0, [1, 1], " + "".join(f"cel.bind(a{i}, [a{i - 1}, a{i - 1}], " for i in range(1, 40))
    right = "cel.bind(b0, [1, 1], " + "".join(f"cel.bind(b{i}, [b{i - 1}, b{i - 1}], " for i in range(1, 40))
    assert outcome(left + right + "a39 == b39" + ")" * 80, _DEVICE)[0] == _COST


def test_a_pattern_takes_linear_time() -> None:
    started = time.process_time()
    assert outcome('"' + "a" * 5_000 + '".matches("(a*)*b")', _DEVICE)[0] is False
    assert time.process_time() - started < 1


def test_absurd_quantities_are_errors_or_answers_at_once() -> None:
    started = time.process_time()
    assert outcome('quantity("1e999999999").compareTo(quantity("1e-9")) > 0', _DEVICE)[0] is True
    assert "runtime" in outcome('quantity("1e999999999").add(1).isInteger()', _DEVICE)[0]
    assert time.process_time() - started < 1


def test_deep_nesting_up_to_the_limit_works() -> None:
    assert outcome("(" * 249 + "true" + ")" * 249, _DEVICE)[0] is True
    assert outcome("[1].all(a, " * 60 + "true" + ")" * 60, _DEVICE)[0] is True


@pytest.mark.parametrize("levels", range(20, 62, 3))
def test_nested_folds_do_not_map_memory_in_their_loops(levels: int) -> None:
    # At some depths each round crossed the end of a chunk of the interpreter's stack: 50,000 page faults.
    selector = "[1, 2].exists(a, " * levels + "false" + ")" * levels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert outcome(selector, _DEVICE)[0] == _COST
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 10_000


@pytest.mark.parametrize(
    "selector",
    [
        "[1]" + ".map(x, [x])" * 120 + ".size() == 1",
        "[" * 240 + "]" * 240 + " == []",
        "{1: " * 240 + "1" + "}" * 240 + " == {}",
        "[[" + "], [".join(["x"] * 500) + "]].map(x, x).size() == 0",
        " || ".join(["[].map(a, a) == [[]]"] * 240),
    ],
)
def test_types_that_nest_are_checked_in_linear_time(selector: str) -> None:
    started = time.process_time()
    outcome(selector, _DEVICE)
    assert time.process_time() - started < 1


def test_an_error_within_a_quantifier_stays_until_an_element_decides() -> None:
    assert outcome("[0, 1].exists(a, 1 / a == 1)", _DEVICE)[0] is True
    assert outcome("[0, 1, 2].all(a, 1 / a == 1)", _DEVICE)[0] is False
    assert outcome("[0, 1].all(a, 1 / a == 1)", _DEVICE)[0] == {"runtime": "division by zero"}
