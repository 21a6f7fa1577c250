"""What can be set for the framework service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

DRA_PREEMPTION = "DRAPreemption"


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """A scheduler plugin that runs in a service of its own."""

    name: str
    """The plugin's name, as it describes itself."""

    service: str
    """The name of the service that it runs in."""


@dataclass(frozen=True, slots=True)
class FrameworkSettings:
    """Settings of the framework service."""

    scheduler_names: tuple[str, ...] = ("earmark",)
    """Pods with one of these spec.schedulerName are scheduled; all others are left alone."""

    plugins: tuple[PluginSettings, ...] = (PluginSettings("DynamicResources", "dynamicresources"),)
    """Remote plugins, in the order in which they are called, after the plugins in this process."""

    preemption_service: str = "preemption"
    """The service that decides on preemption and executes it."""

    feature_gates: Mapping[str, bool] = field(default_factory=lambda: {DRA_PREEMPTION: False})
    """Feature gates by name. Plugins have to agree with them (KEP: Feature Enablement)."""

    nomination_persistence: Literal["api", "none"] = "api"
    """"api": nominations are written with the pod and survive a restart. "none": alpha behaviour (F44)."""

    initial_backoff_seconds: float = 1.0
    """First backoff of a pod that was tried in vain; it doubles with each failure."""

    max_backoff_seconds: float = 10.0
    """Longest backoff; 0 switches backoff off."""

    pop_from_backoff: bool = True
    """An idle scheduler tries pods that still back off (upstream gate SchedulerPopFromBackoffQ)."""

    max_unschedulable_seconds: float = 300.0
    """A pod that nothing woke for this long is tried again."""

    flush_interval_seconds: float = 30.0
    """How often such pods are looked for."""

    percentage_of_nodes_to_score: int = 0
    """Share of the nodes after which the search for feasible ones ends; 0 lets it shrink with the cluster's size."""

    nodes_per_call: int = 2000
    """Most nodes in one Filter or FilterForks call."""

    call_timeout_seconds: float = 10.0
    """Deadline of calls to plugins that only look at memory."""

    filter_timeout_seconds: float = 60.0
    """Deadline of Filter, FilterForks and Preempt."""

    pre_bind_timeout_seconds: float = 900.0
    """Deadline of PreBind; it may wait for devices to become ready."""

    execute_timeout_seconds: float = 120.0
    """Deadline of one Execute call; a call that fails is repeated."""

    reconnect_seconds: float = 1.0
    """Pause before a plugin, a wake-up stream or the API is tried again."""

    lease_namespace: str = "kube-system"
    """Namespace of the lease whose transitions are the scheduler's epoch."""

    lease_name: str = "earmark-scheduler"
    """Name of that lease."""

    plugin_metrics_sample_percent: int = 10
    """Share of the cycles whose plugin durations are recorded (upstream A3.3)."""

    @property
    def preemption_gate(self) -> bool:
        """Whether the gate DRAPreemption is on."""
        return self.feature_gates.get(DRA_PREEMPTION, False)

    @property
    def persists_nominations(self) -> bool:
        """Whether nominations are written with the pod."""
        return self.preemption_gate and self.nomination_persistence == "api"
