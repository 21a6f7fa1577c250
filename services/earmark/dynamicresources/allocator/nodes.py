"""What the allocator knows of a node, and whether a slice or device can be used there (upstream A2.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from earmark.dynamicresources.allocator.errors import FATAL, AllocationError
from earmark.kube.objects import Node, NodeSelector, NodeSelectorRequirement
from earmark.kube.selectors import node_selector_matches


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node's name, labels and status.declaredFeatures."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    declared_features: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Node) -> NodeFacts:
        """Take the facts from the API object."""
        return cls(node.metadata.name, node.metadata.labels, node.status.declared_features)


def node_matches(
    node: NodeFacts, node_name: str | None, all_nodes: bool, selector: NodeSelector | None, what: str
) -> bool:
    """Whether a slice or device with these fields can be used on the node.

    what: names the slice in the error. Raises AllocationError (fatal) for a selector that cannot be read.
    """
    if node_name:
        return node_name == node.name
    if all_nodes:
        return True
    if selector is None:
        return False
    broken = _fault(selector)
    if broken:
        text = f"gather pool information: failed to perform node selection for {what}: {broken}"
        raise AllocationError(FATAL, text)
    return node_selector_matches(selector, node.labels, node.name)


_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"(?:{_DNS}/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
_INTEGER = re.compile(r"[-+]?[0-9]+")


@lru_cache(maxsize=4096)
def _fault(selector: NodeSelector) -> str:
    """Return what is wrong with the selector, "" if nothing is."""
    for number, term in enumerate(selector.node_selector_terms):
        for kind, requirements, judge in (
            ("matchExpressions", term.match_expressions, _label_fault),
            ("matchFields", term.match_fields, _field_fault),
        ):
            for position, requirement in enumerate(requirements):
                fault = judge(requirement)
                if fault:
                    return f"nodeSelectorTerms[{number}].{kind}[{position}].{fault}"
    return ""


def _label_fault(requirement: NodeSelectorRequirement) -> str:
    match requirement.operator:
        case "In" | "NotIn":
            if not requirement.values:
                return "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        case "Exists" | "DoesNotExist":
            if requirement.values:
                return "values: Invalid value: values set must be empty for exists and does not exist"
        case "Gt" | "Lt":
            if len(requirement.values) != 1:
                return "values: Invalid value: for 'Gt', 'Lt' operators, exactly one value is required"
            if _INTEGER.fullmatch(requirement.values[0]) is None:
                return f"values[0]: Invalid value: {requirement.values[0]!r}: must be an integer"
        case _:
            return f"operator: Invalid value: {requirement.operator!r}: not a valid selector operator"
    if _KEY.fullmatch(requirement.key) is None:
        return f"key: Invalid value: {requirement.key!r}"
    for index, value in enumerate(requirement.values):
        if _VALUE.fullmatch(value) is None:
            return f"values[{index}]: Invalid value: {value!r}"
    return ""


def _field_fault(requirement: NodeSelectorRequirement) -> str:
    if requirement.operator not in ("In", "NotIn"):
        return f"operator: Invalid value: {requirement.operator!r}: not a valid selector operator"
    if len(requirement.values) != 1:
        return "values: Invalid value: must have one element"
    return ""
