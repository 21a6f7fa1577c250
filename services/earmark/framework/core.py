"""What the parts of the running framework share: the pure state, the informers, the plugins and small helpers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from earmark.framework import events
from earmark.framework.cache import Cache, Snapshot
from earmark.framework.events import ClusterEvent
from earmark.framework.gate import PreemptionGate
from earmark.framework.metrics import Metrics
from earmark.framework.node_info import PodInfo
from earmark.framework.nominator import Nominator
from earmark.framework.plugins import registry
from earmark.framework.queue.backoff import Backoff
from earmark.framework.queue.hints import HintRegistry
from earmark.framework.queue.scheduling_queue import QueueOptions, SchedulingQueue
from earmark.framework.remote import RemotePlugin
from earmark.framework.sampling import NodeSearch
from earmark.framework.settings import FrameworkSettings
from earmark.kube import objects
from earmark.kube.informer import Informer
from earmark.kube.recorder import EventRecorder, reference_to
from earmark.runtime.component import Environment
from earmark.v1 import preemption_pb2_grpc

_log = logging.getLogger(__name__)


class Core:
    """See the module. No decisions here."""

    def __init__(self, settings: FrameworkSettings, env: Environment) -> None:
        self.settings = settings
        self.env = env
        profile = settings.scheduler_names[0] if settings.scheduler_names else ""
        self.metrics = Metrics(env.metrics, profile)
        self.recorder = EventRecorder(env.api, env.clock, controller=profile)
        self.pods = Informer(env.api, objects.Pod, env.clock)
        self.nodes = Informer(env.api, objects.Node, env.clock)
        self.cache = Cache()
        self.snapshot = Snapshot()
        self.nominator = Nominator()
        self.gate = PreemptionGate()
        self.filters = registry.filter_plugins(self.cache.guards)
        self.scorers = registry.score_plugins()
        self.hints = HintRegistry(self._ask_hint)
        gates = (*registry.pre_enqueue_plugins(), self.gate)
        for plugin in self.filters:
            self.hints.register(plugin.name, plugin.hints)
        for gate in gates:
            self.hints.register(gate.name, gate.hints)
        options = QueueOptions(
            Backoff(settings.initial_backoff_seconds, settings.max_backoff_seconds),
            settings.pop_from_backoff,
            settings.max_unschedulable_seconds,
            settings.flush_interval_seconds,
        )
        self.queue = SchedulingQueue(self.hints, gates, options, self.metrics.incoming)
        self.metrics.watch(self.queue)
        # Until plugins have said whether they gate pods, none gets past them.
        self.queue.asks_remote = bool(settings.plugins)
        self.search = NodeSearch()
        self.remotes = tuple(
            RemotePlugin(plugin, env.channels.to(plugin.service), settings) for plugin in settings.plugins
        )
        self.preemption = preemption_pb2_grpc.PreemptionServiceStub(env.channels.to(settings.preemption_service))
        self.generation = 0
        self.epoch = 0
        # UID of the lease that the epoch comes from: the same for every scheduler of this deployment.
        self.deployment = ""
        self._cycles = 0
        # No scheduling cycle works on the snapshot.
        self.idle = True
        # Something happened that the scheduling loop may have waited for.
        self.changed = asyncio.Event()
        # Set when a write found the API away; the loop waits until it answers again.
        self.api_away = False
        self._last_event: dict[str, tuple[str, str]] = {}

    # --- time and identity -------------------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the seconds that the queue counts in."""
        return self.env.clock.monotonic()

    def next_cycle(self) -> str:
        """Return the id of a new cycle."""
        self._cycles += 1
        return f"{self.epoch}-{self._cycles}"

    def next_generation(self) -> int:
        """Return the generation of a new nomination."""
        self.generation += 1
        return self.generation

    @property
    def record_deployment(self) -> str | None:
        """What records of nominations are signed with; None if none are kept."""
        return self.deployment if self.settings.persists_nominations else None

    def responsible(self, pod: objects.Pod) -> bool:
        """Whether the pod is to be scheduled by this scheduler."""
        return pod.spec.scheduler_name in self.settings.scheduler_names

    def take_snapshot(self) -> None:
        """Bring the snapshot up to date."""
        self.cache.update_snapshot(self.snapshot)
        self.snapshot.pods_version = str(self.pods.resource_version or "")
        self.snapshot.nodes_version = str(self.nodes.resource_version or "")

    # --- pods --------------------------------------------------------------------------------------------------------

    def current(self, pod: objects.Pod) -> objects.Pod | None:
        """Return the pod as the API has it; None if it is gone or another one of the same name is there."""
        found = self.pods.get(pod.metadata.namespace, pod.metadata.name)
        return found if found is not None and found.metadata.uid == pod.metadata.uid else None

    def pending_pod(self, uid: str) -> PodInfo | None:
        """Return a pod of the queue with what it asks for."""
        queued = self.queue.get(uid)
        return PodInfo.of(queued.pod) if queued else None

    def nominated_node(self, pod: objects.Pod) -> str:
        """Return the node of a pod's nomination: what is in memory first, then the API's word (F29)."""
        return self.nominator.node_of(pod.metadata.uid) or pod.status.nominated_node_name

    # --- what happened -----------------------------------------------------------------------------------------------

    def notify(self) -> None:
        """Wake the scheduling loop."""
        self.changed.set()

    def move(self, event: ClusterEvent) -> None:
        """Queue the pods that an event may help."""
        begun = self.now()
        self.queue.move(event, begun)
        self.metrics.handled(event.name, self.now() - begun)
        self.notify()

    def nomination_gone(self, pod: objects.Pod, node: str) -> None:
        """Queue the pods that a nomination to the node may have kept out: those of at most the pod's priority.

        Upstream A15.8, for whatever reason the nomination has gone.
        """
        status = msgspec.structs.replace(pod.status, nominated_node_name=node)
        event = ClusterEvent(events.ASSIGNED_POD_DELETE, old=msgspec.structs.replace(pod, status=status))
        uid, priority = pod.metadata.uid, pod.priority
        self.queue.move(event, self.now(), lambda other: other.priority <= priority and other.metadata.uid != uid)
        self.notify()

    def _ask_hint(self, plugin: str, event: str, ask: Callable[[], bool]) -> bool:
        begun = self.now()
        helps = ask()
        self.metrics.hinted(plugin, event, self.now() - begun, helps=helps)
        return helps

    def record(self, pod: objects.Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Record an event about a pod in the background; the same one is not written twice in a row."""
        uid = pod.metadata.uid
        if self._last_event.get(uid) == (reason, note):
            return
        self._last_event[uid] = (reason, note)
        writing = self.recorder.record(reference_to(pod), type_=type_, reason=reason, action=action, note=note)
        self.spawn(writing, f"event {reason} {pod.metadata.name}")

    def forget_events(self, uid: str) -> None:
        """A pod is gone: what was recorded last about it need not be remembered."""
        self._last_event.pop(uid, None)

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run something in the background."""
        self.env.tasks.spawn(coroutine, name)

    def plugin(self, name: str) -> RemotePlugin | None:
        """Return a remote plugin by name."""
        return next((plugin for plugin in self.remotes if plugin.name == name), None)
