"""What a scenario says, as immutable values. Reading them from files: earmark.simulation.loader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.simulation.steps.base import Step

API_VERSION = "earmark.dev/v1alpha1"
KIND = "Scenario"

# What can be stopped and started, in the order in which it is started.
SERVICES = ("nodes", "claimcontroller", "dynamicresources", "preemption", "framework")


@dataclass(frozen=True, slots=True)
class Source:
    """Where something was written; a generated scenario has no line."""

    file: str = "generated"
    line: int = 0
    field: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A Kubernetes object as it was written, with its namespace filled in."""

    kind: str
    name: str
    # "" for cluster-scoped kinds.
    namespace: str
    data: Mapping[str, Any]
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class Delays:
    """How slow the emulated parts are, in seconds."""

    # From the end of a claim's consumer to its release by the claim controller.
    deallocation: float = 0.0
    # From the binding of a pod to its running.
    startup: float = 0.0


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """A step and its moment."""

    # Seconds since the start; None is "end".
    at: float | None
    step: Step
    source: Source = Source()


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, a timeline and what must hold."""

    name: str
    description: str = ""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    delays: Delays = Delays()
    objects: tuple[Manifest, ...] = ()
    # In the order in which it is played.
    timeline: tuple[TimelineEntry, ...] = ()
    source: Source = Source()
