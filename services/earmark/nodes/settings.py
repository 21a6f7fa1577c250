"""What can be set for the emulated kubelets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodesSettings:
    """Settings of the emulated kubelets and device drivers."""

    startup_seconds: float = 0.0
    """From a pod's arrival on its node, with its claims ready, to Running."""

    default_grace_period_seconds: int = 30
    """Grace period of a pod whose deletion names none."""

    workers: int = 10
    """Pods that are worked on at the same time."""
