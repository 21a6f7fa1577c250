"""What the demo has seen: a timeline made from the changes of pods and claims, and what must hold at its end.

Pure: it is told of changes and of the time, and prints and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from earmark.kube import objects

TRAINING, SERVING, INCIDENT, LATECOMER = "training", "serving", "incident", "latecomer"


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of the timeline."""

    # Seconds since the demo's services were up.
    at: float
    # "t0", "t1", "t3", "t4" of the settling window, or empty.
    stage: str
    text: str


class Story:
    """Pods and claims as the API has them, and what happened to them."""

    def __init__(self, seconds: Callable[[], float], tell: Callable[[Moment], None]) -> None:
        """Tell each moment as it comes; `seconds` is the time since the start."""
        self._seconds = seconds
        self._tell = tell
        self.pods: dict[str, objects.Pod] = {}
        self.claims: dict[str, objects.ResourceClaim] = {}
        self.moments: list[Moment] = []
        self.victims: list[str] = []
        self.held: list[str] = []

    def say(self, text: str, stage: str = "") -> None:
        """Add a moment."""
        moment = Moment(round(self._seconds(), 3), stage, text)
        self.moments.append(moment)
        self._tell(moment)

    def at(self, stage: str) -> float | None:
        """Return when a stage of the settling window began (t1 and t3: the last one)."""
        times = [moment.at for moment in self.moments if moment.stage == stage]
        return times[-1] if times else None

    def pod_changed(self, old: objects.Pod | None, new: objects.Pod | None) -> None:
        """Take in a change of a pod; `new` is None when it has disappeared."""
        if new is None:
            if old is not None:
                self.pods.pop(old.metadata.name, None)
                if old.metadata.name in self.victims:
                    self.say(f"{old.metadata.name} is gone; its claim is still allocated", "t1")
            return
        name = new.metadata.name
        self.pods[name] = new
        if old is None:
            self.say(f"{name} arrives (priority {new.priority})")
        was_deleted = old is not None and old.metadata.deletion_timestamp is not None
        if new.metadata.deletion_timestamp is not None and not was_deleted:
            self.victims.append(name)
            self.say(f"{name} is preempted: deleted, and terminates for {_grace(new)} s", "t0")
        before = old.status.nominated_node_name if old is not None else ""
        if new.status.nominated_node_name and not before and not new.spec.node_name:
            self.say(f"{name} is nominated to {new.status.nominated_node_name}")
        if new.spec.node_name and (old is None or not old.spec.node_name):
            stage = "t4" if name == INCIDENT else ""
            self.say(
                f"{name} is scheduled to {new.spec.node_name} with {', '.join(self.devices(name)) or 'no device'}",
                stage,
            )
        if new.status.phase == "Running" and (old is None or old.status.phase != "Running"):
            self.say(f"{name} runs")

    def claim_changed(self, old: objects.ResourceClaim | None, new: objects.ResourceClaim | None) -> None:
        """Take in a change of a claim; `new` is None when it has disappeared."""
        gone = new is None or new.status.allocation is None
        if old is not None and old.status.allocation is not None and gone:
            owner = _owner(old)
            if owner in self.victims:
                self.say(f"the claim of {owner} is deallocated: {', '.join(_devices(old))} is free, and held", "t3")
        if new is None:
            if old is not None:
                self.claims.pop(old.metadata.name, None)
            return
        self.claims[new.metadata.name] = new

    def devices(self, pod: str) -> list[str]:
        """Return the devices of a pod's claims, as DRIVER/POOL/DEVICE."""
        return [
            device
            for name in sorted(self.claims)
            if _owner(self.claims[name]) == pod
            for device in _devices(self.claims[name])
        ]

    def runs(self, pod: str) -> bool:
        """Return whether a pod is Running."""
        return pod in self.pods and self.pods[pod].status.phase == "Running"

    def failures(self) -> list[str]:
        """Return what should hold at the end and does not."""
        failures = []
        if self.victims != [TRAINING]:
            failures.append(f"preempted: want {TRAINING} alone, got {', '.join(self.victims) or 'nobody'}")
        if not self.runs(INCIDENT):
            failures.append(f"{INCIDENT}: want it running")
        if not self.held or self.devices(INCIDENT) != self.held:
            got = ", ".join(self.devices(INCIDENT)) or "none"
            failures.append(f"{INCIDENT}: want the device that was held ({', '.join(self.held) or 'none'}), got {got}")
        if not self.runs(SERVING):
            failures.append(f"{SERVING}: want it still running")
        if LATECOMER not in self.pods or self.pods[LATECOMER].spec.node_name or self.devices(LATECOMER):
            failures.append(f"{LATECOMER}: want it pending, without a device")
        stages = [self.at(stage) for stage in ("t0", "t1", "t3", "t4")]
        known = [at for at in stages if at is not None]
        if len(known) < len(stages) or known != sorted(known):
            failures.append(f"t0, t1, t3, t4: want them in this order, got {stages}")
        return failures


def _grace(pod: objects.Pod) -> int:
    seconds = pod.metadata.deletion_grace_period_seconds
    return seconds if seconds is not None else 0


def _owner(claim: objects.ResourceClaim) -> str:
    return next((owner.name for owner in claim.metadata.owner_references if owner.kind == "Pod"), "")


def _devices(claim: objects.ResourceClaim) -> list[str]:
    if claim.status.allocation is None:
        return []
    return [f"{result.driver}/{result.pool}/{result.device}" for result in claim.status.allocation.devices.results]
