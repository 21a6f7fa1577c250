"""Which kind has which rules."""

from __future__ import annotations

from earmark.apiserver.strategies.base import Strategy
from earmark.apiserver.strategies.claims import ClaimStrategy, ClaimTemplateStrategy
from earmark.apiserver.strategies.cluster import (
    EventStrategy,
    LeaseStrategy,
    NamespaceStrategy,
    NodeStrategy,
    PodDisruptionBudgetStrategy,
    PriorityClassStrategy,
)
from earmark.apiserver.strategies.devices import DeviceClassStrategy, DeviceTaintRuleStrategy, ResourceSliceStrategy
from earmark.apiserver.strategies.pods import PodStrategy
from earmark.kube.resources import RESOURCES

_OWN: dict[str, type[Strategy]] = {
    "Namespace": NamespaceStrategy,
    "Node": NodeStrategy,
    "Pod": PodStrategy,
    "PriorityClass": PriorityClassStrategy,
    "Event": EventStrategy,
    "PodDisruptionBudget": PodDisruptionBudgetStrategy,
    "Lease": LeaseStrategy,
    "DeviceClass": DeviceClassStrategy,
    "ResourceSlice": ResourceSliceStrategy,
    "ResourceClaim": ClaimStrategy,
    "ResourceClaimTemplate": ClaimTemplateStrategy,
    "DeviceTaintRule": DeviceTaintRuleStrategy,
}


def strategies() -> dict[str, Strategy]:
    """Return the strategy of every kind."""
    return {resource.kind: _OWN.get(resource.kind, Strategy)(resource) for resource in RESOURCES}
