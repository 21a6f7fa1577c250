"""Selectors and tolerations match as upstream's do."""

from __future__ import annotations

import pytest

from earmark.kube import objects
from earmark.kube.selectors import (
    SelectorError,
    label_selector_matches,
    node_selector_matches,
    node_selector_term_matches,
    parse_field_selector,
    parse_label_selector,
    requirement_matches,
    tolerates,
    untolerated,
)

LABELS = {"zone": "a", "gpus": "8", "empty": ""}


def requirement(key: str, operator: str, *values: str) -> objects.NodeSelectorRequirement:
    return objects.NodeSelectorRequirement(key=key, operator=operator, values=values)


@pytest.mark.parametrize(
    ("key", "operator", "values", "want"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("nope", "In", ("",), False),
        ("zone", "NotIn", ("a",), False),
        ("zone", "NotIn", ("b",), True),
        ("nope", "NotIn", ("a",), True),
        ("empty", "Exists", (), True),
        ("nope", "Exists", (), False),
        ("nope", "DoesNotExist", (), True),
        ("empty", "DoesNotExist", (), False),
        ("gpus", "Gt", ("7",), True),
        ("gpus", "Gt", ("8",), False),
        ("gpus", "Lt", ("9",), True),
        ("gpus", "Lt", ("8",), False),
        ("zone", "Gt", ("7",), False),
        ("gpus", "Gt", ("x",), False),
        ("gpus", "Gt", ("1", "2"), False),
        ("gpus", "Lt", (str(2**63),), False),
        ("nope", "Lt", ("1",), False),
        ("zone", "Like", ("a",), False),
    ],
)
def test_operators(key: str, operator: str, values: tuple[str, ...], want: bool) -> None:
    assert requirement_matches(requirement(key, operator, *values), LABELS) is want


def test_no_label_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector_matches(None, LABELS)
    assert label_selector_matches(objects.LabelSelector(), {})


def test_all_parts_of_a_label_selector_have_to_match() -> None:
    selector = objects.LabelSelector(
        match_labels={"zone": "a"},
        match_expressions=(objects.LabelSelectorRequirement(key="gpus", operator="Exists"),),
    )
    assert label_selector_matches(selector, LABELS)
    assert not label_selector_matches(selector, {"zone": "a"})
    assert not label_selector_matches(selector, {"zone": "b", "gpus": "1"})


@pytest.mark.parametrize(
    ("text", "labels", "want"),
    [
        ("", {}, True),
        ("zone=a", LABELS, True),
        ("zone==a,gpus!=8", LABELS, False),
        ("nope!=x", LABELS, True),
        ("zone in (b, a)", LABELS, True),
        ("zone notin (a,b),gpus", LABELS, False),
        ("!nope,example.com/x notin (y)", LABELS, True),
        ("empty=", LABELS, True),
        ("empty", LABELS, True),
    ],
)
def test_text_selectors(text: str, labels: dict[str, str], want: bool) -> None:
    assert label_selector_matches(parse_label_selector(text), labels) is want


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "a in (b", ",", "=a", "a b", "a=*", "a in (b;c)"])
def test_bad_text_selectors(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_label_selector(text)


def test_field_selectors() -> None:
    assert parse_field_selector("spec.nodeName=n1, status.phase!=Failed,") == (
        ("spec.nodeName", True, "n1"),
        ("status.phase", False, "Failed"),
    )
    with pytest.raises(SelectorError):
        parse_field_selector("spec.nodeName")


def test_terms_are_alternatives_and_empty_ones_match_nothing() -> None:
    empty = objects.NodeSelectorTerm()
    named = objects.NodeSelectorTerm(match_fields=(requirement("metadata.name", "In", "n1"),))
    zone = objects.NodeSelectorTerm(match_expressions=(requirement("zone", "In", "b"),))
    assert not node_selector_matches(objects.NodeSelector(), LABELS, "n1")
    assert not node_selector_matches(objects.NodeSelector(node_selector_terms=(empty,)), LABELS, "n1")
    assert node_selector_matches(objects.NodeSelector(node_selector_terms=(empty, zone, named)), LABELS, "n1")
    assert not node_selector_matches(objects.NodeSelector(node_selector_terms=(empty, zone, named)), LABELS, "n2")


def test_expressions_and_fields_of_a_term_have_to_match() -> None:
    term = objects.NodeSelectorTerm(
        match_expressions=(requirement("zone", "In", "a"),), match_fields=(requirement("metadata.name", "NotIn", "n2"),)
    )
    assert node_selector_term_matches(term, LABELS, "n1")
    assert not node_selector_term_matches(term, LABELS, "n2")
    assert not node_selector_term_matches(term, {}, "n1")


def test_fields_know_in_and_notin_with_one_value_only() -> None:
    for bad in (requirement("metadata.name", "Exists"), requirement("metadata.name", "In", "n1", "n2")):
        assert not node_selector_term_matches(objects.NodeSelectorTerm(match_fields=(bad,)), {}, "n1")


TAINT = objects.Taint(key="gpu", value="yes", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "want"),
    [
        (objects.Toleration(key="gpu", value="yes", effect="NoSchedule"), True),
        (objects.Toleration(key="gpu", operator="Equal", value="yes"), True),
        (objects.Toleration(key="gpu", operator="Equal", value="no"), False),
        (objects.Toleration(key="gpu", operator="Exists"), True),
        (objects.Toleration(operator="Exists"), True),
        (objects.Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (objects.Toleration(key="cpu", operator="Exists"), False),
        (objects.Toleration(key="gpu", operator="Gt", value="yes"), False),
    ],
)
def test_tolerations(toleration: objects.Toleration, want: bool) -> None:
    assert tolerates(toleration, TAINT) is want


def test_the_first_untolerated_taint_with_the_effect_is_found() -> None:
    soft = objects.Taint(key="soft", effect="PreferNoSchedule")
    assert untolerated((soft, TAINT), (), ("NoSchedule", "NoExecute")) == TAINT
    assert untolerated((soft, TAINT), (objects.Toleration(key="gpu", operator="Exists"),), ("NoSchedule",)) is None
