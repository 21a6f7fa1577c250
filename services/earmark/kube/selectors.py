"""Label selectors, node selectors, tolerations: whether they match, with upstream's semantics.

Pure functions over the values of earmark.kube.objects. The text forms that list requests carry are read here as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from earmark.kube import objects

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_SMALLEST_INT64 = -(2**63)
_LARGEST_INT64 = 2**63 - 1

_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_EQUALITY = re.compile(rf"\s*({_KEY})\s*(==|=|!=)\s*({_VALUE})\s*\Z")
_SET = re.compile(rf"\s*({_KEY})\s+(in|notin)\s*\(([^()]*)\)\s*\Z")
_PRESENCE = re.compile(rf"\s*(!?)\s*({_KEY})\s*\Z")
_VALUE_ONLY = re.compile(rf"{_VALUE}\Z")


class _Requirement(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class SelectorError(ValueError):
    """A selector cannot be read."""


def requirement_matches(requirement: _Requirement, labels: Mapping[str, str]) -> bool:
    """Whether one requirement of a label or node selector holds (In, NotIn, Exists, DoesNotExist, Gt, Lt).

    NotIn holds where the key is missing. Gt and Lt compare 64-bit integers and hold for nothing else.
    An invalid requirement matches nothing.
    """
    present = requirement.key in labels
    match requirement.operator:
        case "In":
            return present and labels[requirement.key] in requirement.values
        case "NotIn":
            return not present or labels[requirement.key] not in requirement.values
        case "Exists":
            return present
        case "DoesNotExist":
            return not present
        case "Gt" | "Lt":
            if not present or len(requirement.values) != 1:
                return False
            have, want = _int64(labels[requirement.key]), _int64(requirement.values[0])
            if have is None or want is None:
                return False
            return have > want if requirement.operator == "Gt" else have < want
        case _:
            return False


def _int64(text: str) -> int | None:
    if _INTEGER.match(text) is None:
        return None
    value = int(text)
    return value if _SMALLEST_INT64 <= value <= _LARGEST_INT64 else None


# --- label selectors -------------------------------------------------------------------------------------------------


def label_selector_matches(selector: objects.LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels match: None matches nothing, an empty selector everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        requirement_matches(requirement, labels) for requirement in selector.match_expressions
    )


def parse_label_selector(text: str) -> objects.LabelSelector:
    """Read the text form, for example `app=web,tier!=back,env in (a,b),!old`.

    Raises SelectorError for what is not one.
    """
    if not text.strip():
        return objects.LabelSelector()
    expressions: list[objects.LabelSelectorRequirement] = []
    for part in _split(text):
        if found := _EQUALITY.match(part):
            key, operator, value = found.groups()
            name = "NotIn" if operator == "!=" else "In"
            expressions.append(objects.LabelSelectorRequirement(key=key, operator=name, values=(value,)))
        elif found := _SET.match(part):
            key, operator, inside = found.groups()
            values = tuple(value.strip() for value in inside.split(","))
            if any(_VALUE_ONLY.match(value) is None for value in values):
                raise SelectorError(f"unable to parse requirement: {part.strip()!r} has an invalid value")
            name = "In" if operator == "in" else "NotIn"
            expressions.append(objects.LabelSelectorRequirement(key=key, operator=name, values=values))
        elif found := _PRESENCE.match(part):
            name = "DoesNotExist" if found.group(1) else "Exists"
            expressions.append(objects.LabelSelectorRequirement(key=found.group(2), operator=name))
        else:
            raise SelectorError(f"unable to parse requirement: {part.strip()!r}")
    return objects.LabelSelector(match_expressions=tuple(expressions))


def _split(text: str) -> list[str]:
    """Split at the commas that stand outside parentheses."""
    parts, depth, begin = [], 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:index])
            begin = index + 1
    parts.append(text[begin:])
    return parts


# --- field selectors -------------------------------------------------------------------------------------------------


def parse_field_selector(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Read `field=value,field!=value` into (field, whether equal, value).

    Raises SelectorError for what is not one.
    """
    requirements: list[tuple[str, bool, str]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        for operator, equal in (("!=", False), ("==", True), ("=", True)):
            if operator in part:
                name, value = part.split(operator, 1)
                requirements.append((name.strip(), equal, value.strip()))
                break
        else:
            raise SelectorError(f"invalid selector: {part!r}; can't understand it")
    return tuple(requirements)


def field_selector_matches(requirements: Iterable[tuple[str, bool, str]], value_of: Callable[[str], str]) -> bool:
    """Whether all requirements hold; `value_of` gives a field's text ("" where it is not set)."""
    return all((value_of(name) == value) is equal for name, equal, value in requirements)


# --- node selectors --------------------------------------------------------------------------------------------------


def node_selector_term_matches(term: objects.NodeSelectorTerm, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether a term matches a node; a term without requirements matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node_name}
    return all(requirement_matches(requirement, labels) for requirement in term.match_expressions) and all(
        _field_matches(requirement, fields) for requirement in term.match_fields
    )


def _field_matches(requirement: objects.NodeSelectorRequirement, fields: Mapping[str, str]) -> bool:
    # Upstream knows only In and NotIn with exactly one value here; anything else is an error, which matches nothing.
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        return False
    return (fields.get(requirement.key, "") == requirement.values[0]) is (requirement.operator == "In")


def node_selector_matches(selector: objects.NodeSelector, labels: Mapping[str, str], node_name: str) -> bool:
    """Whether any term matches; a selector without terms matches nothing."""
    return any(node_selector_term_matches(term, labels, node_name) for term in selector.node_selector_terms)


# --- tolerations -----------------------------------------------------------------------------------------------------


class _Taint(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def effect(self) -> str: ...


class _Toleration(_Taint, Protocol):
    @property
    def operator(self) -> str: ...


def tolerates(toleration: _Toleration, taint: _Taint) -> bool:
    """Whether a toleration covers a taint, for nodes and devices alike.

    An empty effect or key of the toleration stands for every one. Operators: "" and Equal compare the value, Exists
    does not. (Lt and Gt are behind a gate that is off upstream.)
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(
    taints: Sequence[objects.Taint], tolerations: Sequence[_Toleration], effects: Sequence[str]
) -> objects.Taint | None:
    """Return the first taint with one of `effects` that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None
