"""Faults are reported once, and not where the scenario itself made them."""

import pytest

from earmark.kube import objects
from earmark.simulation.ending import only_periodic
from earmark.simulation.invariants.nominations import ClaimNomination
from earmark.simulation.observe import Effect, Request
from earmark.simulation.recorder import Recorder
from earmark.simulation.watchdog import Nominations, Watchdog
from support.simulation_objects import claim, device_slice


class World:
    def __init__(self, staleness: float = 0.0) -> None:
        self.time = 1.0
        self.watchdog = Watchdog(lambda: self.time, staleness=staleness)
        self.recorder = Recorder(lambda: self.time, self._changed)

    def _changed(self, effect: Effect) -> None:
        self.watchdog.changed(effect, self.recorder)

    def write(self, value: objects.Object, client: str = "dynamicresources") -> None:
        made = Request(client, "patch", type(value).__name__, *value.key)
        self.recorder.effect(Effect(None, value, made))

    def invariants(self) -> list[str]:
        return [violation.invariant for violation in self.watchdog.violations]


def held_by(name: str) -> objects.ResourceClaim:
    return claim(name, [{"device": "d"}], [name])


@pytest.mark.kep("D34")
def test_a_fault_is_reported_once_for_as_long_as_it_lasts() -> None:
    world = World()
    world.write(device_slice([{"name": "d"}]), "scenario")
    for name in ("a", "b", "b"):
        world.write(held_by(name))
    assert world.invariants() == ["exclusive device held once"]
    world.write(claim("b"))
    world.write(held_by("b"))
    assert len(world.invariants()) == 2


def test_what_the_scenario_does_to_slices_is_not_the_services_fault() -> None:
    world = World()
    shared = {"name": "d", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi"}}}
    world.write(device_slice([shared]), "scenario")
    world.write(claim("a", [{"device": "d", "shareID": "1", "consumedCapacity": {"memory": "8Gi"}}]))
    smaller = {**shared, "capacity": {"memory": {"value": "4Gi"}}}
    world.write(device_slice([smaller]), "scenario")
    world.write(claim("unrelated"))
    assert world.invariants() == []


def nominated(uid: str, node: str) -> Nominations:
    return Nominations((ClaimNomination("p", uid, "n1"),), {uid: node}, frozenset())


@pytest.mark.kep("F48")
def test_a_claim_nomination_elsewhere_than_the_nominators_is_reported() -> None:
    world = World()
    pod = objects.Pod(metadata=objects.ObjectMeta(name="p", namespace="default", uid="u"))
    world.write(pod)
    world.watchdog.settled(nominated("u", "n1"), world.recorder)
    assert world.invariants() == []
    world.watchdog.settled(nominated("u", "n2"), world.recorder)
    world.watchdog.settled(nominated("u", "n2"), world.recorder)
    assert len(world.invariants()) == 1


@pytest.mark.parametrize(("staleness", "reported"), [(0.0, 1), (5.0, 0)])
def test_services_that_see_things_late_are_given_their_time(staleness: float, reported: int) -> None:
    world = World(staleness)
    pod = objects.Pod(metadata=objects.ObjectMeta(name="p", namespace="default", uid="u"))
    world.write(pod)
    world.recorder.effect(Effect(pod, None, None))
    world.time += 2
    world.watchdog.settled(nominated("u", "n1"), world.recorder)
    assert len(world.invariants()) == reported


def test_what_cannot_be_compared_is_not_reported() -> None:
    world = World()
    world.watchdog.settled(None, world.recorder)
    assert world.invariants() == []


def test_periodic_work_does_not_keep_a_run_from_its_end() -> None:
    assert only_periodic([("framework/flush", 30.0), ("claimcontroller/resync", 9.0)])
    assert not only_periodic([("framework/flush", 30.0), ("nodes/pod p", 9.0)])
