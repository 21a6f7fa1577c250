"""Plays one scenario: the cluster, its services and the timeline, in virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.kube.api import KubeApi
from earmark.runtime.ids import SeededIds
from earmark.runtime.virtual import VirtualDeadlockError, VirtualLivelockError
from earmark.simulation.conclusion import pod_records
from earmark.simulation.ending import LONGEST_SECONDS, QUIET_SECONDS, only_periodic
from earmark.simulation.errors import ScenarioError
from earmark.simulation.expectation import Expectation
from earmark.simulation.faults import FaultBoard
from earmark.simulation.fleet import Fleet
from earmark.simulation.hooks import Hooks
from earmark.simulation.loop import SimulationClock, SimulationLoop
from earmark.simulation.metrics import metric_value
from earmark.simulation.observe import Effect, ObservedApi, ObservedStore
from earmark.simulation.probes import guards, look_at_nominations
from earmark.simulation.questions import NODES, PLUGIN, Questions
from earmark.simulation.recorder import Recorder
from earmark.simulation.report import Failure, Outcome, SettlementRecord, Violation
from earmark.simulation.restored import split
from earmark.simulation.scenario import SERVICES, Manifest, Scenario, TimelineEntry
from earmark.simulation.stage import RequestMatch, StepRefused
from earmark.simulation.store import CLIENT as STEPS
from earmark.simulation.store import ScenarioStore
from earmark.simulation.verdict import Observation, check
from earmark.simulation.watchdog import Watchdog
from earmark.v1 import nodes_pb2

# When a run begins: later than what recorded clusters call the past.
EPOCH = datetime(2027, 1, 1, tzinfo=UTC)

# A service that ends by itself is started again after a while, but not for ever.
_RESTART_SECONDS = 1.0
_MOST_CRASHES = 5


def play(scenario: Scenario, seed: int = 0, hooks: Hooks | None = None) -> Outcome:
    """Play a scenario and return what it has shown; the same arguments give the same outcome.

    Raises ScenarioError where the scenario asks for what the cluster does not allow.
    """
    return run_player(lambda loop: Player(loop, scenario, seed, hooks or Hooks()))


def run_player(make: Callable[[SimulationLoop], Player]) -> Outcome:
    """Run a player in a loop of its own, from the beginning to the end of its virtual time."""
    collecting = gc.isenabled()
    # Finalizers of forgotten streams must not run at moments that depend on anything else.
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=SimulationLoop) as runner:
            loop = runner.get_loop()
            assert isinstance(loop, SimulationLoop)
            player = make(loop)
            try:
                return runner.run(_play(player))
            except (VirtualDeadlockError, VirtualLivelockError) as error:
                return player.stuck(error)
    finally:
        if collecting:
            gc.enable()


async def _play(player: Player) -> Outcome:
    try:
        return await player.run()
    finally:
        player.close()


class Player:
    """One run. Implements earmark.simulation.stage.Stage."""

    def __init__(self, loop: SimulationLoop, scenario: Scenario, seed: int, hooks: Hooks) -> None:
        """Set up a cluster without objects and services."""
        self._loop = loop
        self._scenario = scenario
        self._seed = seed
        self._hooks = hooks
        self._epoch = hooks.epoch or EPOCH
        self._clock = SimulationClock(loop, self._epoch)
        ids = SeededIds(seed)
        self._watchdog = Watchdog(self._now, staleness=hooks.staleness)
        self._recorder = Recorder(self._now, self._changed)
        api_ids = ids.derive("apiserver")
        restored, self._objects = split(scenario.objects)
        self._registry = Registry(
            ObservedStore(self._recorder.effect, restored), self._clock, api_ids.uuid, below=api_ids.below
        )  # fmt: skip
        hooks.prepare(self._registry)
        self._faults = FaultBoard(self._registry.faults)
        self._store = ScenarioStore(self._registry)
        self._fleet = Fleet(
            hooks.builders(scenario),
            clock=self._clock,
            ids=ids,
            api=self._api,
            on_crash=self._crashed,
            guards=lambda component: (
                *hooks.interceptors(component.name),
                *guards(component, self._watchdog.report),
            ),
        )
        self._apis: dict[str, ObservedApi] = {}
        self._questions = Questions(self._fleet, self._epoch.timestamp())
        self._failures: list[Failure] = []
        self._settlements: dict[tuple[str, int], SettlementRecord] = {}
        self._last_change = 0.0
        self._crashes: dict[str, int] = {}
        hooks.crashes(self)

    async def run(self) -> Outcome:
        """Play the whole scenario."""
        await self._begin()
        for entry in self._scenario.timeline:
            await self._reach(entry.at)
            await self._do(entry)
        await self._loop.settled()
        await self._remember_settlements()
        return self._outcome()

    async def _begin(self) -> None:
        """Make the objects and start the services."""
        self._store.load(self._objects)
        self._loop.on_settled(self._settled)
        for service in SERVICES:
            await self.start(service)
        await self._loop.settled()

    def stuck(self, error: Exception) -> Outcome:
        """Return what a run has shown that came to no end: everything waits, or time does not move on."""
        self._recorder.open()
        self._watchdog.violations.append(Violation(self._now(), "the run comes to its end", str(error)))
        return self._outcome()

    def close(self) -> None:
        """End: nothing that happens from now on is a part of the run."""
        self._recorder.close()
        self._loop.on_settled(None)
        for service in self._fleet.names:
            self._kill(service)

    # --- time --------------------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._loop.time()

    async def _reach(self, at: float | None) -> None:
        if at is None:
            await self._reach_end()
        elif at > self._now():
            await asyncio.sleep(at - self._now())

    async def _reach_end(self) -> None:
        """Return when nothing is left to happen, one virtual hour from now at the most."""
        await self._loop.settled()
        begun = self._now()
        while self._now() - begun < LONGEST_SECONDS:
            quiet_since = max(begun, self._last_change)
            if self._now() - quiet_since >= QUIET_SECONDS and only_periodic(self._clock.sleepers()):
                return
            await asyncio.sleep(min(10.0, LONGEST_SECONDS - (self._now() - begun)))
            await self._loop.settled()

    async def _do(self, entry: TimelineEntry) -> None:
        self._recorder.note(STEPS, "step", {"step": entry.step.key, **entry.step.describe()})
        try:
            await entry.step.run(self)
        except StepRefused as error:
            source = entry.source
            raise ScenarioError(source.file, source.line, f"{source.field}.{entry.step.key}", str(error)) from None

    # --- what is heard -----------------------------------------------------------------------------------------------

    def _api(self, client: str) -> KubeApi:
        observed = ObservedApi(LocalApi(self._registry, self._clock), client, self._recorder)
        self._apis[client] = observed
        return self._hooks.api(client, observed, self._clock)

    def _kill(self, service: str) -> None:
        self._apis[service].cut()
        self._fleet.kill(service)

    def _changed(self, effect: Effect) -> None:
        self._last_change = self._now()
        self._watchdog.changed(effect, self._recorder)

    def _settled(self) -> None:
        self._watchdog.evicted(self._recorder)
        self._watchdog.preempting(self._recorder)
        self._watchdog.settled(look_at_nominations(self._fleet), self._recorder)

    def _crashed(self, service: str, what: str) -> None:
        """A service ended by itself: that is a fault, and it is started again as its supervisor would."""
        self._watchdog.violations.append(Violation(self._now(), "services do not crash", f"{service}: {what}"))
        self._recorder.note(service, "crashed", {"error": what})
        if self._fleet.running(service) is not None:
            self._kill(service)
            self._crashes[service] = self._crashes.get(service, 0) + 1
            if self._crashes[service] <= _MOST_CRASHES:
                self._loop.create_task(self._start_again(service, _RESTART_SECONDS), name=f"{service} is started again")

    async def _start_again(self, service: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self._fleet.running(service) is None:
            await self.start(service)

    def crash(self, service: str, seconds: float) -> None:
        """See earmark.simulation.hooks.Crashes; a service that is down already stays so for as long as it was to."""
        if self._fleet.running(service) is None:
            return
        self._kill(service)
        self._recorder.note(service, "crashed on purpose")
        self._loop.create_task(self._start_again(service, seconds), name=f"{service} is started again")

    # --- Stage -------------------------------------------------------------------------------------------------------

    async def apply(self, manifest: Manifest) -> None:
        """See Stage."""
        self._store.apply(manifest)

    async def delete(self, kind: str, namespace: str, name: str) -> None:
        """See Stage; what is already gone stays so."""
        if self._registry.lookup(kind, namespace, name) is None and self._recorder.existed(kind, namespace, name):
            self._recorder.note(STEPS, "already gone", {"object": f"{kind}/{name}"})
            return
        self._store.delete(kind, namespace, name)

    async def patch(self, kind: str, namespace: str, name: str, subresource: str, merge: Mapping[str, Any]) -> None:
        """See Stage; what is already gone stays so."""
        if self._registry.lookup(kind, namespace, name) is None and self._recorder.existed(kind, namespace, name):
            self._recorder.note(STEPS, "already gone", {"object": f"{kind}/{name}"})
            return
        self._store.patch(kind, namespace, name, subresource, merge)

    async def stop(self, service: str) -> None:
        """See Stage."""
        if self._fleet.running(service) is None:
            raise StepRefused(f"{service} is stopped already")
        if service == PLUGIN:
            await self._remember_settlements()
        self._kill(service)
        self._recorder.note(service, "stopped")

    async def start(self, service: str) -> None:
        """See Stage."""
        if self._fleet.running(service) is not None:
            raise StepRefused(f"{service} runs already")
        await self._fleet.start(service)
        if service == NODES:
            await self._questions.hold_again()
        self._recorder.note(service, "started")

    def fail(self, match: RequestMatch, times: int, status: int) -> None:
        """See Stage."""
        self._faults.fail(match, times, status)

    def delay(self, match: RequestMatch, seconds: float) -> None:
        """See Stage."""
        self._faults.delay(match, seconds)

    async def hold(self, node: str) -> None:
        """See Stage."""
        await self._questions.hold(node)

    async def release(self, node: str) -> None:
        """See Stage."""
        await self._questions.release(node)

    async def attach(self, namespace: str, claim: str, condition: str, status: str, reason: str, message: str) -> None:
        """See Stage."""
        name = claim if namespace == "default" else f"{namespace}/{claim}"
        found = self._recorder.cluster.claim(name)
        if found is None:
            raise StepRefused(f"there is no claim {name}")
        await self._questions.attach(
            nodes_pb2.AttachRequest(
                namespace=found.metadata.namespace,
                claim=found.metadata.name,
                condition=condition,
                status=status,
                reason=reason,
                message=message,
            )
        )

    async def expect(self, expectation: Expectation) -> None:
        """See Stage."""
        await self._loop.settled()
        seen = Observation(
            cluster=self._recorder.cluster,
            evictions=tuple(eviction.pod for eviction in self._recorder.evictions),
            nominations=await self._questions.nominations() if expectation.nominations is not None else None,
            metric=lambda name: metric_value(self._fleet.metrics, name),
        )
        failures = check(expectation, seen, self._now())
        self._failures += failures
        for failure in failures:
            details = {"path": failure.path, "want": failure.want, "got": failure.got}
            self._recorder.note(STEPS, "failure", details)

    # --- the end -----------------------------------------------------------------------------------------------------

    async def _remember_settlements(self) -> None:
        self._settlements.update(await self._questions.settlements())

    def _outcome(self) -> Outcome:
        for violation in self._watchdog.violations:
            details = {"invariant": violation.invariant, "detail": violation.detail, "since": violation.at}
            self._recorder.note(STEPS, "violation", details)
        return Outcome(
            scenario=self._scenario.name,
            seed=self._seed,
            failures=tuple(self._failures),
            violations=tuple(self._watchdog.violations),
            evictions=tuple(self._recorder.evictions),
            pods=pod_records(self._recorder.cluster),
            settlements=tuple(self._settlements.values()),
            log=tuple(self._recorder.log),
            duration=self._now(),
        )
