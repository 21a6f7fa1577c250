"""Validation of parts of a pod spec: containers and their resources, tolerations, affinity, claim entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.apiserver import names
from earmark.apiserver.errors import Cause, duplicate, forbidden, invalid, not_supported, required
from earmark.apiserver.strategies.base import Data
from earmark.kube.quantity import parse_quantity

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character"
)


def validate_container(container: Data, path: str, pod_claims: Sequence[str]) -> list[Cause]:
    """Check a container; `pod_claims` are the names of the pod's claim entries."""
    causes: list[Cause] = []
    name = container.get("name", "")
    if not name:
        causes.append(required(f"{path}.name"))
    elif not names.is_label(name):
        causes.append(invalid(f"{path}.name", name, _LABEL_RULE))
    if not container.get("image"):
        causes.append(required(f"{path}.image"))
    resources = container.get("resources", {})
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for group, amounts in (("limits", limits), ("requests", requests)):
        causes += validate_amounts(amounts, f"{path}.resources.{group}")
    for resource, amount in requests.items():
        limit = limits.get(resource)
        if limit is None:
            continue
        if parse_quantity(amount) > parse_quantity(limit):
            causes.append(
                invalid(
                    f"{path}.resources.requests", amount, f"must be less than or equal to {resource} limit of {limit}"
                )
            )
    for resource in requests:
        # Extended resources cannot be overcommitted.
        if "/" in resource and resource not in limits:
            causes.append(required(f"{path}.resources.limits", "Limit must be set for non overcommitable resources"))
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(resources.get("claims", ())):
        where = f"{path}.resources.claims[{index}]"
        key = (claim.get("name", ""), claim.get("request", ""))
        if not key[0]:
            causes.append(required(f"{where}.name"))
        elif key[0] not in pod_claims:
            causes.append(
                Cause("FieldValueNotFound", f'Not found: "{key[0]}"', f"{where}.name")
            )  # fmt: skip
        if key in seen:
            causes.append(duplicate(where, claim.get("name", "")))
        seen.add(key)
    for index, port in enumerate(container.get("ports", ())):
        for key_name, needed in (("containerPort", True), ("hostPort", False)):
            number = port.get(key_name, 0)
            if (needed or number) and not 1 <= number <= 65535:
                causes.append(
                    invalid(f"{path}.ports[{index}].{key_name}", number, "must be between 1 and 65535, inclusive")
                )  # fmt: skip
        protocol = port.get("protocol", "TCP")
        if protocol not in ("TCP", "UDP", "SCTP"):
            causes.append(not_supported(f"{path}.ports[{index}].protocol", protocol, ("SCTP", "TCP", "UDP")))
    return causes


def validate_amounts(amounts: dict[str, str], path: str) -> list[Cause]:
    """Check resource amounts: a valid name, nothing negative, whole numbers where parts make no sense."""
    causes = []
    for name, text in amounts.items():
        if not names.is_qualified(name):
            causes.append(invalid(f"{path}[{name}]", name, "must be a qualified name"))
        amount = parse_quantity(text)
        if amount.sign < 0:
            causes.append(invalid(f"{path}[{name}]", text, "must be greater than or equal to 0"))
        elif "/" in name and amount.milli_value() % 1000:
            causes.append(invalid(f"{path}[{name}]", text, "must be an integer"))
    return causes


def validate_tolerations(tolerations: Sequence[Data], path: str) -> list[Cause]:
    """Check a pod's tolerations."""
    causes = []
    for index, toleration in enumerate(tolerations):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key and not names.is_qualified(key):
            causes.append(invalid(f"{where}.key", key, "must be a qualified name"))
        if not key and operator != "Exists":
            causes.append(
                invalid(
                    f"{where}.operator",
                    operator,
                    'operator must be Exists when `key` is empty, which means "match all values and all keys"',
                )
            )
        if operator not in ("", "Equal", "Exists"):
            causes.append(not_supported(f"{where}.operator", operator, ("Equal", "Exists")))
        if operator == "Exists" and toleration.get("value"):
            causes.append(
                invalid(f"{where}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
            )  # fmt: skip
        if toleration.get("effect", "") not in ("", *_EFFECTS):
            causes.append(not_supported(f"{where}.effect", toleration["effect"], _EFFECTS))
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            causes.append(
                invalid(f"{where}.effect", toleration.get("effect", ""),
                        "effect must be 'NoExecute' when `tolerationSeconds` is set")
            )  # fmt: skip
    return causes


def validate_affinity(affinity: Data, path: str) -> list[Cause]:
    """Check node affinity; the other kinds are kept as they are."""
    node = affinity.get("nodeAffinity", {})
    causes: list[Cause] = []
    hard = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    where = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    if hard is not None:
        causes += validate_node_selector(hard, where)
    where = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, item in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution", ())):
        if not 1 <= item.get("weight", 0) <= 100:
            causes.append(invalid(f"{where}[{index}].weight", item.get("weight", 0), "must be in the range 1-100"))
        causes += _node_selector_term(item.get("preference", {}), f"{where}[{index}].preference")
    return causes


def validate_node_selector(selector: Data, path: str) -> list[Cause]:
    """Check a node selector."""
    terms = selector.get("nodeSelectorTerms", ())
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    causes: list[Cause] = []
    for index, term in enumerate(terms):
        causes += _node_selector_term(term, f"{path}.nodeSelectorTerms[{index}]")
    return causes


def _node_selector_term(term: Data, path: str) -> list[Cause]:
    causes: list[Cause] = []
    for index, requirement in enumerate(term.get("matchExpressions", ())):
        causes += _requirement(requirement, f"{path}.matchExpressions[{index}]")
    for index, requirement in enumerate(term.get("matchFields", ())):
        where = f"{path}.matchFields[{index}]"
        operator, values = requirement.get("operator", ""), requirement.get("values", ())
        if operator not in ("In", "NotIn"):
            causes.append(invalid(f"{where}.operator", operator, "not a valid selector operator"))
        elif len(values) != 1:
            causes.append(
                required(
                    f"{where}.values",
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                )
            )
        if requirement.get("key") != "metadata.name":
            causes.append(invalid(f"{where}.key", requirement.get("key", ""), "not a valid field selector key"))
    return causes


def _requirement(requirement: Data, path: str) -> list[Cause]:
    causes: list[Cause] = []
    operator, values = requirement.get("operator", ""), requirement.get("values", ())
    if operator not in _OPERATORS:
        causes.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        causes.append(
            forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        )  # fmt: skip
    elif operator in ("Gt", "Lt") and len(values) != 1:
        causes.append(required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    if not names.is_qualified(requirement.get("key", "")):
        causes.append(invalid(f"{path}.key", requirement.get("key", ""), "must be a qualified name"))
    return causes


def validate_label_selector(selector: Data | None, path: str) -> list[Cause]:
    """Check a label selector."""
    causes: list[Cause] = []
    for index, requirement in enumerate((selector or {}).get("matchExpressions", ())):
        if requirement.get("operator") in ("Gt", "Lt"):
            causes.append(
                invalid(f"{path}.matchExpressions[{index}].operator", requirement["operator"],
                        "not a valid selector operator")
            )  # fmt: skip
        else:
            causes += _requirement(requirement, f"{path}.matchExpressions[{index}]")
    return causes


def validate_resource_claims(entries: Sequence[Data], path: str) -> list[Cause]:
    """Check the pod's claim entries: a unique name, and exactly one of claim and template."""
    causes: list[Cause] = []
    seen: set[Any] = set()
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        name = entry.get("name", "")
        if not name:
            causes.append(required(f"{where}.name"))
        elif not names.is_label(name):
            causes.append(invalid(f"{where}.name", name, _LABEL_RULE))
        if name in seen:
            causes.append(duplicate(f"{where}.name", name))
        seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if key in entry]
        if len(given) != 1:
            causes.append(
                invalid(where, name,
                        "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")
            )  # fmt: skip
        for key in given:
            if not names.is_subdomain(entry[key]):
                causes.append(invalid(f"{where}.{key}", entry[key], "must be a lowercase RFC 1123 subdomain"))
    return causes
