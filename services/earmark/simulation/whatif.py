"""What would happen if these pods were submitted: the services of a run decide on a copy of the cluster.

The copy is taken from a dump and lives in virtual time; nothing of the cluster is touched. Pods come one after
another, so that each is decided upon with what the ones before it were given. Before each its alternatives are asked
for. The kubelets and the claim controller are emulated: what is found is feasible after deallocation, not a promise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earmark.apiserver.registry import Registry
from earmark.dynamicresources.settings import DRA_PREEMPTION
from earmark.simulation.cluster import display
from earmark.simulation.composition import SCHEDULER_NAMES, builders
from earmark.simulation.dumping import Dump
from earmark.simulation.errors import ScenarioError
from earmark.simulation.hooks import Hooks
from earmark.simulation.loop import SimulationLoop
from earmark.simulation.player import Player, run_player
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Manifest, Scenario
from earmark.simulation.stage import StepRefused
from earmark.v1 import common_pb2, preemption_pb2

_NAME = "what if"


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that would have to go."""

    pod: str
    priority: int
    # What its claims have, as POOL/DEVICE.
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A node on which a pod would have room, and what that costs."""

    node: str
    victims: tuple[Victim, ...]
    pdb_violations: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nodes on which preemption does not help, and why."""

    nodes: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One pod, and what became of it."""

    pod: str
    # "" while it is pending.
    node: str
    # As POOL/DEVICE.
    devices: tuple[str, ...]
    evicted: tuple[Victim, ...]
    # Seconds from its arrival to the end of its settling window, in the emulation; None without one.
    settled_seconds: float | None
    # Why it is pending.
    message: str
    # The node where it fits with nobody going; "" if there is none.
    fits_on: str
    alternatives: tuple[Alternative, ...]
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What would happen."""

    arrivals: tuple[Arrival, ...]
    outcome: Outcome


def what_if(dump: Dump, manifests: Sequence[Manifest], seed: int = 1) -> Answer:
    """Submit manifests to a copy of a cluster: pods in order, everything else before them.

    Raises ScenarioError for what the API would refuse, and for a pod whose name is taken.
    """
    gates = dict(dump.about.feature_gates) or {DRA_PREEMPTION: True}
    pods = tuple(manifest for manifest in manifests if manifest.kind == "Pod")
    others = tuple(manifest for manifest in manifests if manifest.kind != "Pod")
    scenario = Scenario(_NAME, feature_gates=gates, objects=(*dump.manifests, *others))
    # Who asks about a pod asks about this scheduler, whatever the pod calls it.
    asked = (str(pod.data.get("spec", {}).get("schedulerName") or "") for pod in pods)
    names = tuple(dict.fromkeys((*SCHEDULER_NAMES, *(name for name in asked if name))))
    hooks = Hooks(epoch=dump.about.taken, builders=lambda played: builders(played, names))
    players: list[_Submitter] = []

    def make(loop: SimulationLoop) -> Player:
        players.append(_Submitter(loop, scenario, seed, hooks, pods))
        return players[-1]

    outcome = run_player(make)
    return Answer(tuple(players[0].arrivals(outcome)), outcome)


@dataclass(frozen=True, slots=True)
class _Asked:
    pod: str
    fits_on: str
    alternatives: tuple[Alternative, ...]
    refusals: tuple[Refusal, ...]


class _Submitter(Player):
    """Plays a copy of a cluster to which pods come."""

    def __init__(
        self, loop: SimulationLoop, scenario: Scenario, seed: int, hooks: Hooks, pods: Sequence[Manifest]
    ) -> None:
        super().__init__(loop, scenario, seed, hooks)
        self._pods = pods
        self._asked: list[_Asked] = []
        # Every pod that was there before one of ours chose victims, by name.
        self._known: dict[str, Victim] = {}
        self._pending: dict[str, str] = {}

    async def run(self) -> Outcome:
        """Let the pods come, then let everything come to rest."""
        await self._begin()
        for manifest in self._pods:
            if self._registry.lookup("Pod", manifest.namespace, manifest.name) is not None:
                source = manifest.source
                raise ScenarioError(source.file, source.line, source.field, f"there is a pod {manifest.name} already")
            self._remember_pods()
            self._asked.append(await self._ask(manifest))
            await self.apply(manifest)
            await self._loop.settled()
        await self._reach_end()
        await self._remember_settlements()
        for manifest in self._pods:
            # A pod that may not enter the queue has no condition that tells why.
            name = display(manifest.namespace, manifest.name)
            self._pending[name] = await self._questions.why_pending(manifest.namespace, manifest.name)
        return self._outcome()

    def _remember_pods(self) -> None:
        cluster = self._recorder.cluster
        for key, pod in cluster.pods.items():
            name = display(*key)
            if name not in self._known:
                devices = tuple(device.partition("/")[2] for device in cluster.devices_of(pod))
                self._known[name] = Victim(name, pod.priority, devices)

    async def _ask(self, manifest: Manifest) -> _Asked:
        name = display(manifest.namespace, manifest.name)
        try:
            answer = await self._questions.dry_run(_input(manifest, _priority(self._registry, manifest.data)))
        except StepRefused as error:
            # What keeps it from being asked about, such as a claim that is missing, shows when it is submitted.
            return _Asked(name, "", (), (Refusal((), str(error)),))
        return _Asked(
            name,
            answer.fits_on,
            tuple(self._alternative(candidate) for candidate in answer.candidates),
            tuple(
                Refusal(
                    tuple(reason.nodes),
                    "; ".join((reason.preemption if reason.HasField("preemption") else reason.status).reasons),
                )
                for reason in answer.node_reasons
            ),
        )

    def _alternative(self, candidate: preemption_pb2.CandidateResult) -> Alternative:
        names = [display(pod.namespace, pod.name) for pod in candidate.victims]
        victims = tuple(self._known.get(name, Victim(name, 0, ())) for name in names)
        return Alternative(candidate.node_name, victims, candidate.pdb_violations)

    def arrivals(self, outcome: Outcome) -> list[Arrival]:
        """Return what became of each pod."""
        return [self._arrival(asked, outcome) for asked in self._asked]

    def _arrival(self, asked: _Asked, outcome: Outcome) -> Arrival:
        record = outcome.pods.get(asked.pod)
        evicted = dict.fromkeys(
            preemption.victim for preemption in self._recorder.preemptions if preemption.preemptor == asked.pod
        )
        windows = [item for item in outcome.settlements if item.preemptor == asked.pod and item.t4 is not None]
        last = windows[-1] if windows else None
        return Arrival(
            pod=asked.pod,
            node=(record.node if record is not None else None) or "",
            devices=record.devices if record is not None else (),
            evicted=tuple(self._known.get(name, Victim(name, 0, ())) for name in evicted),
            settled_seconds=last.t4 - last.t0
            if last is not None and last.t4 is not None and last.t0 is not None
            else None,
            message=(record.message if record is not None else None) or self._pending.get(asked.pod, ""),
            fits_on=asked.fits_on,
            alternatives=asked.alternatives,
            refusals=asked.refusals,
        )


def _input(manifest: Manifest, priority: int) -> common_pb2.PodInput:
    uid = f"what-if-{manifest.namespace}-{manifest.name}"
    data = {**manifest.data, "metadata": {**manifest.data["metadata"], "uid": uid}}
    reference = common_pb2.PodReference(namespace=manifest.namespace, name=manifest.name, uid=uid)
    return common_pb2.PodInput(pod=reference, priority=priority, manifest=json.dumps(data))


def _priority(registry: Registry, pod: Mapping[str, Any]) -> int:
    """Return the priority that admission gives a pod."""
    spec = pod.get("spec", {})
    if isinstance(spec.get("priority"), int):
        return int(spec["priority"])
    name = spec.get("priorityClassName")
    classes = registry.all("PriorityClass")
    for item in classes:
        if item["metadata"]["name"] == name or (not name and item.get("globalDefault")):
            return int(item.get("value", 0))
    return 0


def replicas(manifests: Sequence[Manifest], count: int) -> tuple[Manifest, ...]:
    """Return the manifests with each pod `count` times, as NAME-1, NAME-2 ... where there is more than one."""
    found: list[Manifest] = []
    for manifest in manifests:
        if manifest.kind != "Pod" or count == 1:
            found.append(manifest)
            continue
        for number in range(1, count + 1):
            name = f"{manifest.name}-{number}"
            data = {**manifest.data, "metadata": {**manifest.data["metadata"], "name": name}}
            found.append(Manifest(manifest.kind, name, manifest.namespace, data, manifest.source))
    return tuple(found)
