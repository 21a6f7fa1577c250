"""The scheduling queue (upstream A16).

Pods that may be tried are in the active queue, pods that wait for their backoff in one of two backoff queues, all
others in the unschedulable pool, gated ones among them. Whatever enters active or backoff passes PreEnqueue: first the
plugins in this process, then, all in one call made by the caller, the remote ones (`entering`, `answer`).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from earmark.framework import events
from earmark.framework.events import ClusterEvent
from earmark.framework.plugins.interface import PreEnqueuePlugin
from earmark.framework.queue.backoff import Backoff, window
from earmark.framework.queue.entry import Place, QueuedPod, Strategy
from earmark.framework.queue.hints import HintRegistry
from earmark.framework.queue.in_flight import InFlight
from earmark.framework.status import Status
from earmark.kube import objects

_HeapItem = tuple[tuple[float, ...], int, str, int]


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """How the queue behaves.

    Attributes: `longest_unschedulable` and `flush_interval` are seconds; `pop_from_backoff` lets an idle scheduler take
    pods that still back off (not those that back off after an error; upstream A16.6).
    """

    backoff: Backoff = field(default_factory=Backoff)
    pop_from_backoff: bool = True
    longest_unschedulable: float = 300.0
    flush_interval: float = 30.0


class SchedulingQueue:
    """See the module. `incoming(queue, event)` is called for each pod that enters a queue."""

    def __init__(
        self,
        hints: HintRegistry,
        pre_enqueue: Sequence[PreEnqueuePlugin],
        options: QueueOptions = QueueOptions(),
        incoming: Callable[[Place, str], None] = lambda _place, _event: None,
    ) -> None:
        self._hints = hints
        self._pre_enqueue = tuple(pre_enqueue)
        self._options = options
        self._incoming = incoming
        # Whether remote plugins are asked before a pod enters; set once they have described themselves.
        self.asks_remote = False
        self._pods: dict[str, QueuedPod] = {}
        self._active: list[_HeapItem] = []
        self._backoff: list[_HeapItem] = []
        self._error_backoff: list[_HeapItem] = []
        # The unschedulable pool, gated pods included, in the order in which they came into it.
        self._waiting: dict[str, QueuedPod] = {}
        self._entering: dict[str, QueuedPod] = {}
        self._counts: dict[Place, int] = dict.fromkeys(Place, 0)
        self._arrivals: dict[str, int] = {}
        self._arrived = 0
        self.in_flight = InFlight()

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, uid: str) -> QueuedPod | None:
        """Return a pod in the queue or in flight."""
        return self._pods.get(uid)

    def pods(self) -> tuple[QueuedPod, ...]:
        """Return all pods, in the order in which they arrived."""
        return tuple(self._pods.values())

    def counts(self) -> dict[Place, int]:
        """Return how many pods are at each place."""
        return dict(self._counts)

    def rejected_by(self, plugin: str) -> tuple[QueuedPod, ...]:
        """Return the waiting pods that a plugin rejected or gates."""
        return tuple(
            pod
            for pod in self._waiting.values()
            if plugin in pod.unschedulable_plugins or plugin in pod.pending_plugins or pod.gating_plugin == plugin
        )

    # --- pods come and go --------------------------------------------------------------------------------------------

    def add(self, pod: objects.Pod, now: float) -> None:
        """Add a new pending pod (upstream A16.2). One that is there is updated."""
        uid = pod.metadata.uid
        if uid in self._pods:
            self.update(pod, now)
            return
        queued = QueuedPod(pod, added=now, timestamp=now, since=now)
        self._insert(queued)
        self._enter(queued, Strategy.IMMEDIATELY, events.POD_ADD, now)

    def update(self, pod: objects.Pod, now: float) -> None:
        """Take over a pod's new state, and what that means for it (upstream A16.12)."""
        queued = self._pods.get(pod.metadata.uid)
        if queued is None:
            return
        changes = events.pod_changes(queued.pod, pod)
        old, queued.pod = queued.pod, pod
        for name in changes:
            event = ClusterEvent(name, old, pod, target=queued.uid)
            if queued.place is Place.IN_FLIGHT:
                self.in_flight.record(event)
            elif queued.uid in self._waiting:
                strategy = self._hints.strategy(queued, event)
                if strategy:
                    self._enter(queued, strategy, name, now)

    def delete(self, uid: str) -> None:
        """Forget a pod that is gone or bound."""
        queued = self._pods.pop(uid, None)
        if queued is not None:
            self._leave(queued)
            self._counts[queued.place] -= 1
            self._arrivals.pop(uid, None)

    # --- attempts ----------------------------------------------------------------------------------------------------

    def pop(self, now: float) -> QueuedPod | None:
        """Take the next pod to try, or None. `done`, `requeue` or `binding` ends its flight."""
        queued = self._take(self._active)
        if queued is None and self._options.pop_from_backoff:
            queued = self._take(self._backoff)
        if queued is None:
            return None
        queued.attempts += 1
        queued.unschedulable_plugins = {}
        queued.pending_plugins = {}
        queued.gated_by = None
        self._place(queued, Place.IN_FLIGHT, now)
        self.in_flight.begin(queued.uid)
        return queued

    def requeue(
        self,
        queued: QueuedPod,
        unschedulable: Iterable[str],
        pending: Iterable[str],
        verdict: Strategy,
        now: float,
    ) -> None:
        """An attempt failed: the pod goes where its rejections and the events since its Pop send it (upstream A16.7).

        Args:
            queued: what `pop` returned.
            unschedulable: plugins that rejected it; none at all means an error, which backs off by itself.
            pending: those of them that wait for something to happen.
            verdict: what remote plugins said when they were told of the end of the cycle.
            now: seconds.
        """
        seen = self.in_flight.since_pop(queued.uid)
        self.in_flight.done(queued.uid)
        if self._pods.get(queued.uid) is not queued:
            return
        queued.unschedulable_plugins = dict.fromkeys(unschedulable)
        queued.pending_plugins = dict.fromkeys(pending)
        queued.timestamp = now
        strategy = verdict
        if queued.unschedulable_plugins or queued.pending_plugins:
            queued.unschedulable_count += 1
            queued.error_count = 0
            for event in seen:
                strategy = max(strategy, self._hints.strategy(queued, event))
        else:
            queued.error_count += 1
            forced = any(event.name == events.FORCE_ACTIVATE or event.at_once for event in seen)
            strategy = Strategy.IMMEDIATELY if forced else max(strategy, Strategy.AFTER_BACKOFF)
        self._enter(queued, strategy, events.ATTEMPT_FAILED, now)

    def binding(self, queued: QueuedPod) -> None:
        """A pod is being bound: its flight ends and it leaves the queue."""
        self.in_flight.done(queued.uid)
        if self._pods.get(queued.uid) is queued:
            self.delete(queued.uid)

    def back_from_binding(self, queued: QueuedPod, unschedulable: Iterable[str], verdict: Strategy, now: float) -> None:
        """A binding failed: the pod is in the queue again, unless it has come back by itself."""
        if queued.uid in self._pods:
            return
        queued.place = Place.IN_FLIGHT
        self._insert(queued)
        self.requeue(queued, unschedulable, (), verdict, now)

    def done(self, queued: QueuedPod) -> None:
        """An attempt ended and the pod is not to be tried again."""
        self.binding(queued)

    # --- what happens ------------------------------------------------------------------------------------------------

    def move(self, event: ClusterEvent, now: float, check: Callable[[objects.Pod], bool] = lambda _pod: True) -> None:
        """Something happened: queue the waiting pods that it may help (upstream A16.8).

        `check` says which pods are asked at all.
        """
        if not event.wildcard and not self._hints.knows(event.name):
            return
        for queued in tuple(self._waiting.values()):
            if event.target not in ("", queued.uid) or not check(queued.pod):
                continue
            strategy = self._hints.strategy(queued, event)
            if strategy:
                self._enter(queued, strategy, event.name, now)
        self.in_flight.record(event)

    def wake(self, uid: str, event: ClusterEvent, now: float) -> None:
        """A remote plugin named a pod that may have become schedulable."""
        queued = self._pods.get(uid)
        if queued is None:
            return
        strategy = Strategy.IMMEDIATELY if event.at_once else Strategy.AFTER_BACKOFF
        if queued.place is Place.IN_FLIGHT:
            self.in_flight.record(event)
        elif queued.place is Place.ENTERING:
            # The plugin may have answered the question before this happened.
            queued.ask_again = True
            queued.target = max(queued.target, strategy)
        elif queued.uid in self._waiting or (queued.place is Place.BACKOFF and event.at_once):
            self._enter(queued, strategy, event.name, now)

    def activate(self, uids: Iterable[str], now: float) -> None:
        """Move pods to the active queue without backoff (upstream A16.11)."""
        for uid in uids:
            self.wake(uid, ClusterEvent(events.FORCE_ACTIVATE, target=uid, at_once=True), now)

    def ungate(self, uid: str, plugin: str, now: float) -> None:
        """A plugin's gate for a pod is open: if the pod stands at it, it goes on as it was to go on."""
        queued = self._pods.get(uid)
        if queued is not None and queued.place is Place.GATED and queued.gating_plugin == plugin:
            self._enter(queued, queued.target, queued.event, now)

    def gate(self, uid: str, now: float) -> None:
        """A plugin's gate for a pod has closed: a pod that is still on its way in stands at it."""
        queued = self._entering.get(uid)
        if queued is not None:
            self._enter(queued, queued.target, queued.event, now)

    # --- time --------------------------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """Move pods whose backoff is over, and those that have waited for too long (upstream A16.10)."""
        for heap in (self._backoff, self._error_backoff):
            while (head := self._head(heap)) is not None and not self._options.backoff.backing_off(head, now):
                self._take(heap)
                self._to_active(head, events.BACKOFF_COMPLETE, now)
        for queued in tuple(self._waiting.values()):
            if self._flush_at(queued) > now:
                break
            queued.flushed = True
            self._enter(queued, Strategy.AFTER_BACKOFF, events.UNSCHEDULABLE_TIMEOUT, now)

    def next_deadline(self) -> float:
        """Return when `flush` has something to do next; infinity if never."""
        moments = [math.inf]
        for heap in (self._backoff, self._error_backoff):
            head = self._head(heap)
            if head is not None:
                moments.append(self._options.backoff.expiry(head))
        first = next(iter(self._waiting.values()), None)
        if first is not None:
            moments.append(self._flush_at(first))
        return min(moments)

    def _flush_at(self, queued: QueuedPod) -> float:
        interval = self._options.flush_interval
        return math.ceil(round((queued.since + self._options.longest_unschedulable) / interval, 6)) * interval

    # --- remote PreEnqueue -------------------------------------------------------------------------------------------

    def entering(self) -> tuple[tuple[QueuedPod, int], ...]:
        """Return the pods that remote plugins have to be asked about, each with the token of its answer."""
        return tuple((queued, queued.token) for queued in self._entering.values())

    def answer(self, uid: str, token: int, refusal: Status | None, now: float) -> None:
        """Remote plugins answered: let a pod in, or gate it."""
        queued = self._entering.get(uid)
        if queued is None or queued.token != token:
            return
        if refusal is None:
            self._admit(queued, now)
        elif queued.ask_again:
            queued.ask_again = False
            queued.token += 1
        else:
            self._gate(queued, refusal, now)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _insert(self, queued: QueuedPod) -> None:
        self._pods[queued.uid] = queued
        self._arrived += 1
        self._arrivals[queued.uid] = self._arrived
        self._counts[queued.place] += 1

    def _place(self, queued: QueuedPod, place: Place, now: float) -> None:
        self._leave(queued)
        self._counts[queued.place] -= 1
        self._counts[place] += 1
        queued.place = place
        queued.since = now
        queued.token += 1

    def _leave(self, queued: QueuedPod) -> None:
        # Heaps forget by token.
        queued.token += 1
        self._waiting.pop(queued.uid, None)
        self._entering.pop(queued.uid, None)

    def _enter(self, queued: QueuedPod, strategy: Strategy, event: str, now: float) -> None:
        if queued.place is Place.GATED:
            strategy = max(strategy, queued.target)
        if strategy is Strategy.SKIP:
            queued.gated_by = None
            self._place(queued, Place.UNSCHEDULABLE, now)
            self._waiting[queued.uid] = queued
            self._incoming(Place.UNSCHEDULABLE, event)
            return
        queued.target = strategy
        queued.event = event
        for plugin in self._pre_enqueue:
            refusal = plugin.pre_enqueue(queued.pod)
            if refusal is not None:
                self._gate(queued, refusal.by(plugin.name), now)
                return
        if not self.asks_remote:
            self._admit(queued, now)
            return
        self._place(queued, Place.ENTERING, now)
        queued.ask_again = False
        self._entering[queued.uid] = queued

    def _gate(self, queued: QueuedPod, refusal: Status, now: float) -> None:
        fresh = queued.gated_by != refusal
        queued.gated_by = refusal
        self._place(queued, Place.GATED, now)
        self._waiting[queued.uid] = queued
        if fresh:
            self._incoming(Place.GATED, queued.event)

    def _admit(self, queued: QueuedPod, now: float) -> None:
        queued.gated_by = None
        waits = self._options.backoff.backing_off(queued, now)
        if queued.target is Strategy.IMMEDIATELY or not waits:
            self._to_active(queued, queued.event, now)
            return
        self._place(queued, Place.BACKOFF, now)
        heap = self._error_backoff if queued.error_count else self._backoff
        key = (window(self._options.backoff.expiry(queued)), *self._order(queued))
        heapq.heappush(heap, (key, self._arrivals[queued.uid], queued.uid, queued.token))
        self._incoming(Place.BACKOFF, queued.event)

    def _to_active(self, queued: QueuedPod, event: str, now: float) -> None:
        self._place(queued, Place.ACTIVE, now)
        if queued.first_active is None:
            queued.first_active = now
        item = (self._order(queued), self._arrivals[queued.uid], queued.uid, queued.token)
        heapq.heappush(self._active, item)
        self._incoming(Place.ACTIVE, event)

    @staticmethod
    def _order(queued: QueuedPod) -> tuple[float, ...]:
        """Higher priority first, then the older (upstream A16.1)."""
        return (-queued.pod.priority, queued.timestamp)

    def _head(self, heap: list[_HeapItem]) -> QueuedPod | None:
        while heap:
            _, _, uid, token = heap[0]
            queued = self._pods.get(uid)
            if queued is not None and queued.token == token:
                return queued
            heapq.heappop(heap)
        return None

    def _take(self, heap: list[_HeapItem]) -> QueuedPod | None:
        queued = self._head(heap)
        if queued is not None:
            heapq.heappop(heap)
        return queued
