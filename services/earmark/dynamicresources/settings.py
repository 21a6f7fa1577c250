"""The settings of the dynamicresources service: one frozen value, read once at the edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DRA_PREEMPTION = "DRAPreemption"

# Kubernetes 1.37 defaults of the gates that change what this plugin answers (upstream A0.3).
DEFAULT_GATES: Mapping[str, bool] = {
    DRA_PREEMPTION: False,
    "DRAAdminAccess": True,
    "DRAPrioritizedList": True,
    "DRAPartitionableDevices": True,
    "DRADeviceTaints": True,
    "DRADeviceTaintRules": True,
    "DRADeviceBindingConditions": True,
    "DRAResourceClaimDeviceStatus": True,
    "DRAConsumableCapacity": True,
    "DRAFractionalCapacityRange": True,
    "DRASchedulerFilterTimeout": True,
    "DRAListTypeAttributes": False,
    "DRADerivedAttributes": False,
    "DRAOptionalNodeOperations": False,
    "DRADeviceCompatibilityGroups": False,
    # None of Kubernetes': what its maintainers have settled after 1.37.2 (allocator.features.LATER_FIXES).
    "EarmarkFixesAfter137": True,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What can be set about the dynamicresources service."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    """Feature gates by name, over DEFAULT_GATES. DRAPreemption is off by default (KEP: Feature Enablement)."""

    nomination_persistence: str = "api"
    """api: records are handed to the framework, which writes them, and are restored. none: as in alpha (F44)."""

    binding_timeout_seconds: float = 600.0
    """How long binding conditions are waited for, and when a claim counts as timed out (upstream B0.3)."""

    filter_timeout_seconds: float = 10.0
    """Time for allocating devices in one call of Filter; 0 is no limit (upstream B0.3)."""

    state_wait_seconds: float = 0.2
    """How long PreFilter waits until the caches have seen what the framework's snapshot has."""

    sandbox_timeout_seconds: float = 60.0
    """Silence after which a sandbox session is gone."""

    score_weight: int = 2
    """Weight of Score among the scheduler's plugins (upstream C7)."""

    defer_pods_without_claims: bool = False
    """Whether victim claims defer the preemption of a pod that has no claim to allocate (F26; the KEP's wording)."""

    settlement_events: bool = True
    """Whether the end of a settling window is recorded as an Event on the preemptor."""

    settlements_kept: int = 1000
    """How many settling windows are kept in memory, the newest ones."""

    def __post_init__(self) -> None:
        """Raise ValueError for a value that cannot be used, naming the field."""
        if self.nomination_persistence not in ("api", "none"):
            raise ValueError(f"nomination_persistence: want 'api' or 'none', got {self.nomination_persistence!r}")
        for name, value, least in (
            ("binding_timeout_seconds", self.binding_timeout_seconds, 1),
            ("filter_timeout_seconds", self.filter_timeout_seconds, 0),
            ("state_wait_seconds", self.state_wait_seconds, 0),
            ("sandbox_timeout_seconds", self.sandbox_timeout_seconds, 1),
            ("score_weight", self.score_weight, 0),
            ("settlements_kept", self.settlements_kept, 1),
        ):
            if value < least:
                raise ValueError(f"{name}: want {least} or more, got {value}")

    def gate(self, name: str) -> bool:
        """Whether a feature gate is on."""
        return self.feature_gates.get(name, DEFAULT_GATES.get(name, False))

    @property
    def preemption(self) -> bool:
        """Whether the gate DRAPreemption is on."""
        return self.gate(DRA_PREEMPTION)

    def effective_gates(self) -> dict[str, bool]:
        """Return every known gate with its value."""
        return {**DEFAULT_GATES, **self.feature_gates}
