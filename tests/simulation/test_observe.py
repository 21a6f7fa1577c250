"""What the API does is noted with who asked for it."""

from typing import Any

import msgspec
import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable
from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds
from earmark.simulation.errors import ScenarioError
from earmark.simulation.observe import ObservedApi, ObservedStore
from earmark.simulation.recorder import NOMINATION_ANNOTATION, Recorder
from earmark.simulation.scenario import Manifest, Source
from earmark.simulation.stage import StepRefused
from earmark.simulation.store import ScenarioStore

pytestmark = pytest.mark.virtual


class World:
    def __init__(self, clock: LoopClock, ids: SeededIds) -> None:
        self.changes: list[object] = []
        self.recorder = Recorder(lambda: clock.monotonic(), self.changes.append)
        self.registry = Registry(ObservedStore(self.recorder.effect), clock, ids.uuid)
        self.store = ScenarioStore(self.registry)
        self._clock = clock

    def api(self, client: str) -> ObservedApi:
        return ObservedApi(LocalApi(self.registry, self._clock), client, self.recorder)

    def events(self) -> list[tuple[str, str]]:
        return [(entry.service, entry.event) for entry in self.recorder.log if entry.service != "apiserver"]


@pytest.fixture
def world(clock: LoopClock, ids: SeededIds) -> World:
    return World(clock, ids)


def pod(name: str, **spec: Any) -> Manifest:
    data = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    return Manifest("Pod", name, "default", data, Source("file.yaml", 3, "spec.objects[0]"))


async def test_a_deletion_by_preemption_is_an_eviction(world: World) -> None:
    world.store.apply(pod("v", nodeName="n", priority=0))
    await world.api("preemption").delete(objects.Pod, "v", "default")
    (eviction,) = world.recorder.evictions
    assert (eviction.pod, eviction.priority) == ("v", 0)
    assert ("preemption", "terminating") in world.events()


async def test_deletions_by_others_are_none(world: World) -> None:
    world.store.apply(pod("v", nodeName="n"))
    await world.api("nodes").delete(objects.Pod, "v", "default", grace_period_seconds=0)
    assert world.recorder.evictions == []
    assert world.recorder.cluster.pods == {}


async def test_a_refused_deletion_is_none_and_is_logged(world: World) -> None:
    world.store.apply(pod("v", nodeName="n"))
    world.registry.faults.fail(RequestMatch("delete", "Pod"), times=1, status=403)
    with pytest.raises(ApiError):
        await world.api("preemption").delete(objects.Pod, "v", "default")
    assert world.recorder.evictions == []
    assert world.recorder.log[-1].event == "refused"
    assert world.recorder.log[-1].details["status"] == 403


@pytest.mark.parametrize(("done", "evictions"), [(True, 1), (False, 0)])
async def test_a_deletion_whose_answer_is_lost_counts_if_it_took_effect(
    world: World, done: bool, evictions: int
) -> None:
    world.store.apply(pod("v", nodeName="n"))
    world.registry.faults.lose(RequestMatch("delete", "Pod"), times=1, done=done)
    with pytest.raises(ApiUnavailable):
        await world.api("preemption").delete(objects.Pod, "v", "default")
    assert len(world.recorder.evictions) == evictions


async def test_a_second_deletion_counts_again(world: World) -> None:
    world.store.apply(pod("v", nodeName="n"))
    for _ in range(2):
        await world.api("preemption").delete(objects.Pod, "v", "default")
    assert len(world.recorder.evictions) == 2


async def test_an_unbound_victim_that_goes_at_once_is_counted_once(world: World) -> None:
    world.store.apply(pod("v"))
    await world.api("preemption").delete(objects.Pod, "v", "default")
    assert [eviction.pod for eviction in world.recorder.evictions] == ["v"]
    assert world.recorder.cluster.pods == {}


async def test_a_nomination_says_who_was_chosen_for_whom(world: World) -> None:
    world.store.apply(pod("v", priority=0))
    world.store.apply(pod("p"))
    victim = world.recorder.cluster.pods["default", "v"].metadata.uid
    record = msgspec.json.encode({"version": 1, "victims": [{"namespace": "default", "name": "v", "uid": victim}]})
    await world.api("framework").patch(
        objects.Pod, "p", "default", {"metadata": {"annotations": {NOMINATION_ANNOTATION: record.decode()}}}
    )
    assert [(item.victim, item.preemptor) for item in world.recorder.preemptions] == [("v", "p")]


async def test_a_client_that_was_killed_writes_nothing(world: World) -> None:
    api = world.api("nodes")
    world.store.apply(pod("v"))
    api.cut()
    with pytest.raises(ApiUnavailable):
        await api.delete(objects.Pod, "v", "default")
    assert ("default", "v") in world.recorder.cluster.pods


async def test_status_and_placement_of_manifests_are_taken_as_they_are(world: World) -> None:
    manifest = pod("v", nodeName="n")
    data = {**manifest.data, "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    world.store.apply(Manifest("Pod", "v", "default", data))
    seen = world.recorder.cluster.pods["default", "v"]
    assert (seen.spec.node_name, seen.status.phase) == ("n", "Running")
    assert seen.status.start_time is not None
    assert list(world.recorder.placed_by_hand) == [seen.metadata.uid]


async def test_applying_again_replaces_the_spec(world: World) -> None:
    def node(unschedulable: bool, labels: dict[str, str]) -> Manifest:
        data = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n", "labels": labels},
            "spec": {"unschedulable": unschedulable},
        }
        return Manifest("Node", "n", "", data)

    world.store.apply(node(True, {"a": "1"}))
    world.store.apply(node(False, {"b": "2"}))
    seen = world.recorder.cluster.by_kind[objects.Node]["", "n"]
    assert seen.spec.unschedulable is False
    assert seen.metadata.labels == {"b": "2"}


async def test_a_manifest_that_the_api_refuses_is_named_with_file_line_and_field(world: World) -> None:
    with pytest.raises(ScenarioError) as caught:
        world.store.apply(pod("v", priorityClassName="none"))
    assert (caught.value.file, caught.value.line) == ("file.yaml", 3)
    assert "none" in caught.value.problem


async def test_unknown_fields_of_manifests_are_refused(world: World) -> None:
    with pytest.raises(ScenarioError, match="colour"):
        world.store.apply(pod("v", colour="red"))


async def test_deleting_what_was_never_there_is_refused(world: World) -> None:
    with pytest.raises(StepRefused, match="not found"):
        world.store.delete("Pod", "default", "nobody")
