"""The feature names of upstream's allocator and which of its three variants a set of them selects (upstream A0)."""

from __future__ import annotations

from collections.abc import Iterable

ADMIN_ACCESS = "AdminAccess"
COMPATIBILITY_GROUPS = "CompatibilityGroups"
CONSUMABLE_CAPACITY = "ConsumableCapacity"
DERIVED_ATTRIBUTES = "DerivedAttributes"
DEVICE_BINDING_AND_STATUS = "DeviceBindingAndStatus"
DEVICE_TAINTS = "DeviceTaints"
FRACTIONAL_CAPACITY_RANGE = "FractionalCapacityRange"
LIST_TYPE_ATTRIBUTES = "ListTypeAttributes"
OPTIONAL_NODE_OPERATIONS = "OptionalNodeOperations"
PARTITIONABLE_DEVICES = "PartitionableDevices"
PRIORITIZED_LIST = "PrioritizedList"

LATER_FIXES = "FixesAfter137"
"""None of upstream's features: what its maintainers have settled after 1.37.2. Without it the answers are 1.37.2's.

An incomplete or invalid pool rejects its node only, in mode All too; claims for admin access only need no counters.
"""

STABLE_FEATURES = frozenset({ADMIN_ACCESS, PRIORITIZED_LIST, PARTITIONABLE_DEVICES, DEVICE_TAINTS})
INCUBATING_FEATURES = STABLE_FEATURES | {DEVICE_BINDING_AND_STATUS, CONSUMABLE_CAPACITY, FRACTIONAL_CAPACITY_RANGE}
EXPERIMENTAL_FEATURES = INCUBATING_FEATURES | {
    LIST_TYPE_ATTRIBUTES,
    OPTIONAL_NODE_OPERATIONS,
    DERIVED_ATTRIBUTES,
    COMPATIBILITY_GROUPS,
}

ALL_FEATURES = EXPERIMENTAL_FEATURES

DEFAULT_FEATURES = INCUBATING_FEATURES
"""What Kubernetes 1.37 has on by default (upstream A0.3)."""

STABLE, INCUBATING, EXPERIMENTAL = "stable", "incubating", "experimental"

_VARIANTS = (
    (STABLE, STABLE_FEATURES),
    (INCUBATING, INCUBATING_FEATURES),
    (EXPERIMENTAL, EXPERIMENTAL_FEATURES),
)


class UnsupportedFeatures(ValueError):
    """No variant of the allocator supports the features."""


def variant_for(features: Iterable[str], channel: str = "") -> str:
    """Return the first variant that supports all features: stable, incubating or experimental (upstream A0.1).

    channel: only this one is considered, unless it is "".
    Raises UnsupportedFeatures.
    """
    wanted = frozenset(features) - {LATER_FIXES}
    for name, supported in _VARIANTS:
        if channel in ("", name) and wanted <= supported:
            return name
    names = ", ".join(sorted(wanted))
    raise UnsupportedFeatures(f"internal error: no allocator available for feature set {names} (channel {channel!r})")
