"""All nodes' kubelets: follows pods, nodes and claims, and carries out what lifecycle decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from earmark.kube.api import ApiError, EventType, PatchType
from earmark.kube.informer import Informer, InformerEvent
from earmark.kube.objects import Node, Pod, ResourceClaim
from earmark.kube.workqueue import WorkQueue
from earmark.nodes.lifecycle import Action, Surroundings, claims_ready, next_step, running_patch, seconds_to_end
from earmark.nodes.settings import NodesSettings
from earmark.runtime import semconv
from earmark.runtime.awaiting import Preemptors, awaiting_victim
from earmark.runtime.component import AttributeValue, Environment, SpanIdentity

# (namespace, name) of a pod.
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Arrival:
    """When a pod was first seen on its node."""

    uid: str
    monotonic: float
    time: datetime


@dataclass(frozen=True, slots=True)
class _Ending:
    """When a terminating pod's grace period is over; counted once for each deletion timestamp."""

    uid: str
    timestamp: datetime
    due: float


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """One node's pods, by what they are doing."""

    name: str
    held: bool
    running: int
    starting: int
    terminating: int


class Kubelets:
    """The emulated kubelets. What they remember (holds, arrivals) goes with the process."""

    def __init__(self, settings: NodesSettings, env: Environment) -> None:
        self._settings = settings
        self._env = env
        self._startup = settings.startup_seconds
        self._pods = Informer(env.api, Pod, env.clock)
        self._preemptors = Preemptors()
        self._nodes = Informer(env.api, Node, env.clock)
        self._claims = Informer(env.api, ResourceClaim, env.clock)
        self._held: dict[str, None] = {}
        self._arrivals: dict[Key, _Arrival] = {}
        self._endings: dict[Key, _Ending] = {}
        # Pods on each node, and those of all nodes that wait for their claims.
        self._on_node: dict[str, dict[Key, None]] = {}
        self._awaiting_claims: dict[Key, None] = {}
        self._queue: WorkQueue[Key] = WorkQueue(env.clock, self._work, "nodes")

    # --- steering ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Follow the API, and work once everything has been listed."""
        self._pods.add_handler(self._preemptors.on_pod)
        self._pods.add_handler(self._on_pod)
        self._nodes.add_handler(self._on_node_event)
        self._claims.add_handler(self._on_claim)
        for informer in (self._nodes, self._claims, self._pods):
            informer.start(self._env.tasks)
        self._env.tasks.spawn(self._begin(), "begin")

    async def _begin(self) -> None:
        for informer in (self._nodes, self._claims, self._pods):
            await informer.wait_synced()
        self._queue.start(self._env.tasks, self._settings.workers)

    @property
    def synced(self) -> bool:
        """Whether everything has been listed."""
        return self._pods.synced and self._nodes.synced and self._claims.synced

    def hold(self, node_name: str) -> None:
        """Stop a node's kubelet."""
        self._held[node_name] = None

    def release(self, node_name: str) -> None:
        """Let it go on; what became due meanwhile happens now."""
        if node_name in self._held:
            del self._held[node_name]
            self._look_at_pods_of(node_name)

    def set_startup_seconds(self, seconds: float) -> None:
        """Change the startup delay, also for pods that are starting."""
        self._startup = seconds
        for node_name in tuple(self._on_node):
            self._look_at_pods_of(node_name)

    def counts(self) -> tuple[NodeCounts, ...]:
        """Return what each node's pods are doing, nodes by name."""
        return tuple(self._counts(node.metadata.name) for node in self._nodes.items())

    def _counts(self, node_name: str) -> NodeCounts:
        running = starting = terminating = 0
        for key in self._on_node.get(node_name, ()):
            pod = self._pods.get(*key)
            if pod is None or pod.terminal:
                continue
            if pod.metadata.deletion_timestamp is not None:
                terminating += 1
            elif pod.status.phase == "Running":
                running += 1
            else:
                starting += 1
        return NodeCounts(node_name, node_name in self._held, running, starting, terminating)

    # --- events ------------------------------------------------------------------------------------------------------

    def _on_pod(self, event: InformerEvent[Pod]) -> None:
        old, new = event.old, event.new
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._forget(old)
        if new is not None and new.spec.node_name:
            arrival = self._arrivals.get(new.key)
            if arrival is None or arrival.uid != new.metadata.uid:
                clock = self._env.clock
                self._arrivals[new.key] = _Arrival(new.metadata.uid, clock.monotonic(), clock.now())
                self._on_node.setdefault(new.spec.node_name, {})[new.key] = None
            self._queue.add(new.key)

    def _forget(self, pod: Pod) -> None:
        self._arrivals.pop(pod.key, None)
        self._endings.pop(pod.key, None)
        self._awaiting_claims.pop(pod.key, None)
        pods = self._on_node.get(pod.spec.node_name, {})
        pods.pop(pod.key, None)
        if not pods:
            self._on_node.pop(pod.spec.node_name, None)

    def _on_node_event(self, event: InformerEvent[Node]) -> None:
        if event.type is EventType.ADDED:
            self._look_at_pods_of(event.object.metadata.name)

    def _on_claim(self, event: InformerEvent[ResourceClaim]) -> None:
        namespace = event.object.metadata.namespace
        for key in tuple(self._awaiting_claims):
            if key[0] == namespace:
                self._queue.add(key)

    def _look_at_pods_of(self, node_name: str) -> None:
        for key in tuple(self._on_node.get(node_name, ())):
            self._queue.add(key)

    # --- work --------------------------------------------------------------------------------------------------------

    async def _work(self, key: Key) -> None:
        pod, arrival = self._pods.get(*key), self._arrivals.get(key)
        if pod is None or arrival is None:
            return
        now = self._env.clock.now()
        around = self._around(pod, arrival)
        if around.claims_ready:
            self._awaiting_claims.pop(key, None)
        else:
            self._awaiting_claims[key] = None
        step = next_step(pod, around)
        if step.wait_seconds is not None:
            self._queue.add_after(key, step.wait_seconds)
        elif step.action is Action.START:
            await self._start(pod, arrival, now)
        elif step.action is Action.END:
            await self._end(pod)

    def _around(self, pod: Pod, arrival: _Arrival) -> Surroundings:
        namespace, node_name = pod.metadata.namespace, pod.spec.node_name
        return Surroundings(
            node_exists=self._nodes.get("", node_name) is not None,
            held=node_name in self._held,
            claims_ready=claims_ready(pod, lambda name: self._claims.get(namespace, name)),
            seconds_on_node=self._env.clock.monotonic() - arrival.monotonic,
            startup_seconds=self._startup,
            seconds_to_end=self._seconds_to_end(pod),
        )

    def _seconds_to_end(self, pod: Pod) -> float:
        timestamp = pod.metadata.deletion_timestamp
        if timestamp is None:
            return 0.0
        clock = self._env.clock
        ending = self._endings.get(pod.key)
        if ending is None or (ending.uid, ending.timestamp) != (pod.metadata.uid, timestamp):
            seconds = seconds_to_end(pod, clock.now(), self._settings.default_grace_period_seconds)
            ending = _Ending(pod.metadata.uid, timestamp, clock.monotonic() + seconds)
            self._endings[pod.key] = ending
        return ending.due - clock.monotonic()

    async def _start(self, pod: Pod, arrival: _Arrival, now: datetime) -> None:
        try:
            await self._env.api.patch(
                Pod,
                pod.metadata.name,
                pod.metadata.namespace,
                running_patch(pod, arrival.time, now),
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
        except ApiError as error:
            if not error.not_found:
                raise

    async def _end(self, pod: Pod) -> None:
        attributes: Mapping[str, AttributeValue] = {
            semconv.POD_NAMESPACE: pod.metadata.namespace,
            semconv.POD_NAME: pod.metadata.name,
            semconv.POD_UID: pod.metadata.uid,
            semconv.NODE_NAME: pod.spec.node_name,
        }
        awaiting = awaiting_victim(self._preemptors.pods(), pod.metadata.uid)
        since, telemetry = self._env.clock.now(), self._env.telemetry
        with telemetry.span(semconv.NODE_TERMINATE, attributes):
            try:
                await self._env.api.delete(
                    Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid, grace_period_seconds=0
                )
            except ApiError as error:
                if not error.not_found:
                    raise
            if awaiting is not None:
                trace, parent = awaiting
                current = telemetry.current()
                telemetry.emit(
                    semconv.NODE_TERMINATE,
                    since,
                    self._env.clock.now(),
                    attributes,
                    identity=SpanIdentity(trace, telemetry.span_id(), parent),
                    links=() if current is None else (current,),
                )
