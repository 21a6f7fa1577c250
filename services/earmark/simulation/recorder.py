"""Keeps what happens while a scenario is played: the mirror of the cluster, the log, the evictions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from earmark.kube import objects
from earmark.simulation.cluster import Cluster, display
from earmark.simulation.history import told
from earmark.simulation.invariants.evictions import Preemption
from earmark.simulation.observe import Effect, Listener, Request
from earmark.simulation.report import Eviction, LogEntry

PREEMPTION = "preemption"
API = "apiserver"

# Where the framework writes whom it preempts for a pod.
NOMINATION_ANNOTATION = "earmark.dev/nomination"

Change = Callable[[Effect], None]


class Recorder(Listener):
    """Listens to the API. Everything is noted at the moment at which it takes effect."""

    def __init__(self, now: Callable[[], float], on_change: Change) -> None:
        """Note times of `now` (seconds since the start); `on_change` is called after each change is in the mirror."""
        self.cluster = Cluster()
        self.log: list[LogEntry] = []
        self.evictions: list[Eviction] = []
        self.preemptions: list[Preemption] = []
        # UIDs of pods that came with spec.nodeName.
        self.placed_by_hand: dict[str, None] = {}
        # When pods went, by UID.
        self.gone: dict[str, float] = {}
        self._ever: dict[tuple[str, str, str], None] = {}
        self._now = now
        self._on_change = on_change
        self._deleting: dict[Request, objects.Pod] = {}
        self._open = True

    def close(self) -> None:
        """Note nothing any more: what ends now ends because the run does."""
        self._open = False

    def open(self) -> None:
        """Note again: the run is told to the end after it was cut off."""
        self._open = True

    def note(self, service: str, event: str, details: Mapping[str, Any] | None = None) -> None:
        """Add an entry to the log."""
        if self._open:
            self.log.append(LogEntry(self._now(), service, event, details or {}))

    def existed(self, kind: str, namespace: str, name: str) -> bool:
        """Whether there has ever been such an object."""
        return (kind, namespace, name) in self._ever

    def effect(self, effect: Effect) -> None:
        """Take in a change of an object."""
        if not self._open:
            return
        if effect.after is not None:
            self.cluster.put(effect.after)
        elif effect.before is not None:
            self.cluster.remove(effect.before)
        value = effect.after if effect.after is not None else effect.before
        assert value is not None
        self._ever[type(value).__name__, *value.key] = None
        if isinstance(value, objects.Pod):
            self._pod(effect)
        for event, details in told(effect):
            self.note(effect.request.client if effect.request is not None else API, event, details)
        self._on_change(effect)

    def _pod(self, effect: Effect) -> None:
        before, after = effect.before, effect.after
        if before is None and isinstance(after, objects.Pod) and after.spec.node_name:
            self.placed_by_hand[after.metadata.uid] = None
        if after is None and isinstance(before, objects.Pod):
            self.gone[before.metadata.uid] = self._now()
        if isinstance(after, objects.Pod):
            self._nomination(before if isinstance(before, objects.Pod) else None, after)
        made = effect.request
        if made is not None and made.client == PREEMPTION and made.verb == "delete" and isinstance(before, objects.Pod):
            # The answer is not there yet, and the object may be gone when it is.
            self._deleting[made] = before

    def _nomination(self, before: objects.Pod | None, after: objects.Pod) -> None:
        """Note whom a nomination that was just written has chosen as victims."""
        record = after.metadata.annotations.get(NOMINATION_ANNOTATION)
        if not record or (before is not None and before.metadata.annotations.get(NOMINATION_ANNOTATION) == record):
            return
        by_uid = {pod.metadata.uid: pod for pod in self.cluster.pods.values()}
        for uid in _victims(record):
            victim = by_uid.get(uid)
            if victim is not None:
                names = display(*victim.key), display(*after.key)
                self.preemptions.append(Preemption(names[0], victim.priority, names[1], after.priority))

    def accepted(self, made: Request) -> None:
        """Note a deletion by preemption."""
        if not self._open or made.client != PREEMPTION or made.verb != "delete" or made.kind != "Pod":
            return
        pod = self._deleting.pop(made, None) or self.cluster.pods.get((made.namespace, made.name))
        if pod is None:
            return
        name = display(*pod.key)
        self.evictions.append(Eviction(self._now(), name, pod.metadata.uid, pod.priority))
        self.note(PREEMPTION, "preempted", {"pod": name})

    def refused(self, made: Request, status: int, message: str) -> None:
        """Note a request that the API refused."""
        what = {"object": f"{made.kind}/{display(made.namespace, made.name)}", "verb": made.verb}
        if made.subresource:
            what["subresource"] = made.subresource
        self.note(made.client, "refused", {**what, "status": status, "message": message})


def _victims(record: str) -> list[str]:
    try:
        victims = json.loads(record)["victims"]
        return [str(victim["uid"]) for victim in victims]
    except (ValueError, KeyError, TypeError):
        # A record that is none was written by hand and chooses nobody.
        return []
