"""The service over its RPCs, on the embedded API in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.dynamicresources import solving
from earmark.dynamicresources.component import DynamicResources, build
from earmark.dynamicresources.settings import Settings
from earmark.kube import objects
from earmark.runtime.environment import in_process_server
from earmark.v1 import common_pb2, nomination_extensions_pb2, scheduler_plugin_pb2, settlement_pb2
from earmark.v1.nomination_extensions_pb2_grpc import NominationExtensionsServiceStub
from earmark.v1.scheduler_plugin_pb2_grpc import SchedulerPluginServiceStub
from earmark.v1.settlement_pb2_grpc import SettlementServiceStub
from support.dra_cluster import EverythingMatches
from support.embedded_world import World
from support.uncertain_api import answer_late

pytestmark = pytest.mark.virtual

SUCCESS = common_pb2.STATUS_CODE_SUCCESS
UNSCHEDULABLE = common_pb2.STATUS_CODE_UNSCHEDULABLE
UNRESOLVABLE = common_pb2.STATUS_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE

PATCH = RequestMatch(verb="patch", kind="ResourceClaim")
STATUS_PATCH = RequestMatch(verb="patch", kind="ResourceClaim", subresource="status")


class Scheduler:
    """What a framework does with the plugin, call by call."""

    def __init__(self, world: World, settings: Settings) -> None:
        self.world = world
        self.settings = settings
        self.component: DynamicResources | None = None
        self.epoch = 0
        self.session = common_pb2.SessionReference()
        self.generation = 0

    async def start(self) -> None:
        """Start the service (again) and open a session."""
        self.world.stop("dynamicresources")
        env = self.world.environment("dynamicresources")
        self.component = build(self.settings, env)
        server = in_process_server()
        self.component.register(server)
        self.world.network.serve("dynamicresources", server)
        await self.component.start()
        await self.settle()
        channel = self.world.environment("test").channels.to("dynamicresources")
        self.plugin = SchedulerPluginServiceStub(channel)
        self.nominations = NominationExtensionsServiceStub(channel)
        self.settlements = SettlementServiceStub(channel)
        await self.open()

    async def settle(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    async def open(self, *known: common_pb2.Nomination) -> scheduler_plugin_pb2.OpenSessionResponse:
        self.epoch += 1
        answer = await self.plugin.OpenSession(
            scheduler_plugin_pb2.OpenSessionRequest(
                kind=scheduler_plugin_pb2.SESSION_KIND_SCHEDULER,
                epoch=self.epoch,
                protocol_version="v1",
                feature_gates=dict(self.settings.feature_gates),
                nominations=known,
            ),
            timeout=5,
        )
        self.session = answer.session
        return answer

    async def ref(self, name: str) -> common_pb2.PodReference:
        pod = await self.world.pod(name)
        return common_pb2.PodReference(namespace="default", name=name, uid=pod.metadata.uid)

    async def pre_filter(self, name: str) -> scheduler_plugin_pb2.PreFilterResponse:
        pod = await self.world.pod(name)
        item = common_pb2.PodInput(
            pod=await self.ref(name), priority=pod.priority, resource_version=pod.metadata.resource_version
        )
        request = scheduler_plugin_pb2.PreFilterRequest(session=self.session, pod=item)
        return await self.plugin.PreFilter(request, timeout=5)

    async def filter(self, cycle_id: str, node: str = "n1") -> common_pb2.Status:
        answer = await self.plugin.Filter(
            scheduler_plugin_pb2.FilterRequest(
                session=self.session, cycle_id=cycle_id, nodes=[node], queries=[common_pb2.NodeQuery(node=0)]
            ),
            timeout=5,
        )
        return answer.verdicts.statuses[answer.verdicts.verdicts[0]]

    async def reserve(self, name: str, node: str = "n1") -> tuple[str, str]:
        """PreFilter, Filter and Reserve, all of which succeed; returns cycle and reservation."""
        opened = await self.pre_filter(name)
        assert opened.status.code == SUCCESS, opened.status
        assert (await self.filter(opened.cycle_id, node)).code == SUCCESS
        answer = await self.plugin.Reserve(
            scheduler_plugin_pb2.ReserveRequest(session=self.session, cycle_id=opened.cycle_id, node_name=node),
            timeout=5,
        )
        assert answer.status.code == SUCCESS
        return opened.cycle_id, answer.reservation

    def pre_bind(self, cycle_id: str, node: str = "n1", timeout: float = 900) -> Any:
        request = scheduler_plugin_pb2.PreBindRequest(session=self.session, cycle_id=cycle_id, node_name=node)
        return self.plugin.PreBind(request, timeout=timeout)

    async def unreserve(self, name: str, reservation: str, *, preempted: bool = False) -> None:
        request = scheduler_plugin_pb2.UnreserveRequest(
            session=self.session, pod=await self.ref(name), node_name="n1", reservation=reservation, preempted=preempted
        )
        await self.plugin.Unreserve(request, timeout=5)

    async def end(self, name: str, cycle_id: str, outcome: int) -> int:
        request = scheduler_plugin_pb2.EndCycleRequest(
            session=self.session, pod=await self.ref(name), cycle_id=cycle_id, outcome=outcome
        )
        return (await self.plugin.EndCycle(request, timeout=5)).verdict

    async def place(self, name: str) -> None:
        """Schedule and bind a pod."""
        cycle_id, _ = await self.reserve(name)
        assert (await self.pre_bind(cycle_id)).status.code == SUCCESS
        pod = await self.world.pod(name)
        await self.world.api.bind("default", name, pod.metadata.uid, "n1")
        await self.end(name, cycle_id, scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND)
        await self.settle()

    async def nominate(self, name: str, *victims: str, confirm: bool = True) -> tuple[str, common_pb2.Nomination]:
        opened = await self.pre_filter(name)
        assert (await self.filter(opened.cycle_id)).code == UNSCHEDULABLE
        self.generation += 1
        pod = await self.ref(name)
        references = [await self.ref(victim) for victim in victims]
        answer = await self.nominations.AddNominatedPod(
            nomination_extensions_pb2.AddNominatedPodRequest(
                session=self.session,
                cycle_id=opened.cycle_id,
                pod=pod,
                node_name="n1",
                victims=references,
                generation=self.generation,
                priority=100,
            ),
            timeout=5,
        )
        assert answer.status.code == SUCCESS
        if confirm:
            request = nomination_extensions_pb2.ConfirmNominatedPodRequest(
                session=self.session, pod=pod, generation=self.generation
            )
            await self.nominations.ConfirmNominatedPod(request, timeout=5)
        return opened.cycle_id, common_pb2.Nomination(
            pod=pod,
            node_name="n1",
            generation=self.generation,
            priority=100,
            victims=references,
            records={"DynamicResources": answer.record},
        )

    async def listed(self) -> nomination_extensions_pb2.ListNominationsResponse:
        return await self.nominations.ListNominations(nomination_extensions_pb2.ListNominationsRequest(), timeout=5)

    async def claim(self, pod: str) -> objects.ResourceClaim:
        return await self.world.api.get(objects.ResourceClaim, f"{pod}-gpu", "default")


def pod(name: str, priority: int = 0) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "priorityClassName": "high" if priority else "low",
            "containers": [{"name": "main", "image": "x"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}],
        },
    }


def claim(name: str, **device: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": f"{name}-gpu"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }


def slice_of(devices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpu"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "n1",
            "devices": devices,
        },
    }


@pytest.fixture
async def world(clock: Any) -> AsyncIterator[World]:
    made = World(clock)
    yield made
    await made.close()


@pytest.fixture
async def scheduler(world: World, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    return await prepared(world, monkeypatch, [{"name": "gpu-0"}])


async def prepared(
    world: World, monkeypatch: pytest.MonkeyPatch, devices: list[dict[str, Any]], **settings: Any
) -> Scheduler:
    original = solving.Solver.__init__
    monkeypatch.setattr(
        solving.Solver,
        "__init__",
        lambda self, *parts, **more: original(self, *parts, judge=EverythingMatches(), **more),
    )
    await world.apply({"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}})
    await world.apply({"kind": "Node", "metadata": {"name": "n1"}})
    for name, value in (("low", 0), ("high", 100)):
        await world.apply({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    await world.apply(slice_of(devices))
    for name, priority in (("v", 0), ("p", 100), ("q", 100)):
        await world.apply(claim(name))
        await world.apply(pod(name, priority))
    made = Scheduler(world, Settings(feature_gates={"DRAPreemption": True}, **settings))
    await made.start()
    return made


def code_of(failure: pytest.ExceptionInfo[grpc.aio.AioRpcError]) -> tuple[grpc.StatusCode, str]:
    return failure.value.code(), failure.value.details() or ""


# --- sessions ----------------------------------------------------------------------------------------------------------


async def test_describe_names_what_the_plugin_takes_part_in(scheduler: Scheduler) -> None:
    answer = await scheduler.plugin.Describe(scheduler_plugin_pb2.DescribeRequest(), timeout=5)
    assert (answer.name, answer.protocol_version, answer.score_weight) == ("DynamicResources", "v1", 2)
    assert scheduler_plugin_pb2.EXTENSION_POINT_NOMINATION in answer.extension_points
    assert answer.feature_gates["DRAPreemption"]
    assert list(answer.requeue_events) == ["Node/Add", "Node/UpdateNodeLabel", "Node/UpdateNodeAllocatable"]


@pytest.mark.kep("E2", "E3")
async def test_without_the_gate_it_has_no_extensions(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await prepared(world, monkeypatch, [{"name": "gpu-0"}])
    made.settings = Settings()
    await made.start()
    answer = await made.plugin.Describe(scheduler_plugin_pb2.DescribeRequest(), timeout=5)
    assert scheduler_plugin_pb2.EXTENSION_POINT_NOMINATION not in answer.extension_points
    assert scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER_EXTENSIONS not in answer.extension_points


async def test_a_mismatch_of_gates_names_both_values(scheduler: Scheduler) -> None:
    request = scheduler_plugin_pb2.OpenSessionRequest(kind=scheduler_plugin_pb2.SESSION_KIND_SCHEDULER, epoch=9)
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await scheduler.plugin.OpenSession(request, timeout=5)
    code, text = code_of(failure)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert text == "feature_gates[DRAPreemption]: False of the caller, True of DynamicResources"


async def test_an_older_epoch_is_refused(scheduler: Scheduler) -> None:
    old = common_pb2.SessionReference(id=scheduler.session.id, epoch=scheduler.session.epoch)
    await scheduler.open()
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await scheduler.plugin.KeepSession(scheduler_plugin_pb2.KeepSessionRequest(session=old), timeout=5)
    assert code_of(failure)[0] is grpc.StatusCode.FAILED_PRECONDITION


async def test_an_unknown_cycle_is_a_failed_precondition(scheduler: Scheduler) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await scheduler.filter("nonsense")
    assert code_of(failure) == (grpc.StatusCode.FAILED_PRECONDITION, "cycle_id: unknown cycle 'nonsense'")


async def test_a_bad_index_names_its_field(scheduler: Scheduler) -> None:
    opened = await scheduler.pre_filter("p")
    request = scheduler_plugin_pb2.FilterForksRequest(
        session=scheduler.session,
        cycle_id=opened.cycle_id,
        nodes=["n1"],
        queries=[common_pb2.NodeQuery(node=0, removed=[3])],
    )
    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await scheduler.plugin.FilterForks(request, timeout=5)
    assert code_of(failure) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "queries[0].removed: 3 is outside of pod_uids (0)",
    )


async def test_a_sandbox_leaves_nothing_behind(scheduler: Scheduler) -> None:
    answer = await scheduler.plugin.OpenSession(
        scheduler_plugin_pb2.OpenSessionRequest(kind=scheduler_plugin_pb2.SESSION_KIND_SANDBOX), timeout=5
    )
    mine, scheduler.session = scheduler.session, answer.session
    await scheduler.reserve("v")
    component = scheduler.component
    assert component is not None
    assert component.core.world.reservations == {}
    # In the sandbox the device is taken now.
    opened = await scheduler.pre_filter("p")
    assert (await scheduler.filter(opened.cycle_id)).code == UNSCHEDULABLE
    scheduler.session = mine
    opened = await scheduler.pre_filter("p")
    assert (await scheduler.filter(opened.cycle_id)).code == SUCCESS


async def test_unary_calls_shape_a_fork(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    opened = await scheduler.pre_filter("p")
    victim = await scheduler.ref("v")
    cycle = {"session": scheduler.session, "cycle_id": opened.cycle_id}

    async def fits() -> bool:
        request = scheduler_plugin_pb2.FilterForksRequest(**cycle, nodes=["n1"], queries=[common_pb2.NodeQuery(node=0)])
        verdicts = (await scheduler.plugin.FilterForks(request, timeout=5)).verdicts
        return verdicts.statuses[verdicts.verdicts[0]].code == SUCCESS

    assert not await fits()
    await scheduler.plugin.RemovePod(
        scheduler_plugin_pb2.RemovePodRequest(**cycle, node_name="n1", pod=victim), timeout=5
    )
    assert await fits()
    await scheduler.plugin.AddPod(scheduler_plugin_pb2.AddPodRequest(**cycle, node_name="n1", pod=victim), timeout=5)
    assert not await fits()


# --- PreFilter ---------------------------------------------------------------------------------------------------------


async def test_pre_filter_waits_briefly_for_what_the_framework_has_seen(scheduler: Scheduler) -> None:
    before = scheduler.world.seconds
    item = common_pb2.PodInput(pod=await scheduler.ref("p"), priority=100)
    request = scheduler_plugin_pb2.PreFilterRequest(session=scheduler.session, pod=item, pods_resource_version="999999")
    answer = await scheduler.plugin.PreFilter(request, timeout=5)
    assert (answer.status.code, list(answer.status.reasons)) == (UNSCHEDULABLE, ["state not yet seen"])
    assert scheduler.world.seconds - before == pytest.approx(0.2)
    outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN
    assert await scheduler.end("p", answer.cycle_id, outcome) == scheduler_plugin_pb2.SLEEP_VERDICT_QUEUE


async def test_a_version_that_only_other_kinds_have_is_not_waited_for_twice(scheduler: Scheduler) -> None:
    # Nodes are at a lower version than the list of a framework that starts now.
    listed = (await scheduler.world.api.list(objects.Node)).resource_version
    item = common_pb2.PodInput(pod=await scheduler.ref("p"), priority=100)
    request = scheduler_plugin_pb2.PreFilterRequest(
        session=scheduler.session, pod=item, pods_resource_version=listed, nodes_resource_version=listed
    )
    for _ in range(2):
        answer = await scheduler.plugin.PreFilter(request, timeout=5)
        assert answer.status.code == SUCCESS
    before = scheduler.world.seconds
    await scheduler.plugin.PreFilter(request, timeout=5)
    assert scheduler.world.seconds == before


async def test_an_unknown_pod_is_no_error(scheduler: Scheduler) -> None:
    item = common_pb2.PodInput(pod=common_pb2.PodReference(namespace="default", name="x", uid="x"))
    request = scheduler_plugin_pb2.PreFilterRequest(session=scheduler.session, pod=item)
    answer = await scheduler.plugin.PreFilter(request, timeout=5)
    assert list(answer.status.reasons) == ["state not yet seen"]


# --- PreBind and Unreserve ---------------------------------------------------------------------------------------------


@pytest.mark.kep("E57")
async def test_pre_bind_writes_finalizer_then_allocation_and_reservation(scheduler: Scheduler) -> None:
    before = await scheduler.claim("v")
    await scheduler.place("v")
    after = await scheduler.claim("v")
    assert after.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert after.status.allocation is not None
    assert [result.device for result in after.status.allocation.devices.results] == ["gpu-0"]
    assert [entry.name for entry in after.status.reserved_for] == ["v"]
    assert after.metadata.uid == before.metadata.uid
    component = scheduler.component
    assert component is not None
    assert component.core.world.in_flight == {}
    assert component.core.world.reservations == {}


async def test_a_conflict_is_tried_again_on_the_fresh_claim(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    # The plugin's cache is behind when it writes.
    await scheduler.world.api.patch(
        objects.ResourceClaim, "v-gpu", "default", {"metadata": {"labels": {"touched": "yes"}}}
    )
    assert (await scheduler.pre_bind(cycle_id)).status.code == SUCCESS


async def test_unreserve_after_pre_bind_takes_the_reservation_back_only(scheduler: Scheduler) -> None:
    cycle_id, reservation = await scheduler.reserve("v")
    await scheduler.pre_bind(cycle_id)
    for _ in range(2):
        await scheduler.unreserve("v", reservation)
    after = await scheduler.claim("v")
    assert after.status.allocation is not None
    assert after.status.reserved_for == ()


@pytest.mark.kep("F10", "D22", "E25")
async def test_a_pod_preempted_in_pre_bind_gives_its_devices_back(scheduler: Scheduler) -> None:
    cycle_id, reservation = await scheduler.reserve("v")
    await scheduler.pre_bind(cycle_id)
    await scheduler.nominate("p", "v")
    assert [item.name for item in (await scheduler.listed()).victim_claims] == ["v-gpu"]
    await scheduler.unreserve("v", reservation, preempted=True)
    after = await scheduler.claim("v")
    assert (after.status.allocation, after.status.reserved_for) == (None, ())
    assert (await scheduler.listed()).victim_claims == []


async def test_a_write_survives_the_call_that_asked_for_it(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    scheduler.world.registry.faults.delay(PATCH, 1.0)
    with pytest.raises(grpc.aio.AioRpcError):
        await scheduler.pre_bind(cycle_id, timeout=0.5)
    await scheduler.world.clock.sleep(5)
    assert (await scheduler.claim("v")).status.allocation is not None


@pytest.mark.kep("F58", "D34")
@pytest.mark.parametrize("done", [False, True])
async def test_a_write_whose_answer_is_lost_is_looked_after(scheduler: Scheduler, done: bool) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    scheduler.world.registry.faults.lose(STATUS_PATCH, times=1, done=done)
    assert (await scheduler.pre_bind(cycle_id)).status.code == SUCCESS
    after = await scheduler.claim("v")
    assert after.status.allocation is not None
    assert [entry.name for entry in after.status.reserved_for] == ["v"]


@pytest.mark.kep("F58", "D34")
async def test_a_device_stays_taken_while_a_write_is_uncertain(scheduler: Scheduler) -> None:
    cycle_id, reservation = await scheduler.reserve("v")
    scheduler.world.registry.faults.delay(STATUS_PATCH, 30.0)
    with pytest.raises(grpc.aio.AioRpcError):
        await scheduler.pre_bind(cycle_id, timeout=1)
    await scheduler.unreserve("v", reservation)
    opened = await scheduler.pre_filter("p")
    assert (await scheduler.filter(opened.cycle_id)).code == UNSCHEDULABLE
    # The pod itself is not tried again before it is known what was written.
    opened = await scheduler.pre_filter("v")
    assert list(opened.status.reasons) == ["resource claims of an earlier attempt are still being released"]
    outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN
    assert await scheduler.end("v", opened.cycle_id, outcome) == scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP
    scheduler.world.registry.faults.delay(STATUS_PATCH, 0)
    await scheduler.world.clock.sleep(40)
    after = await scheduler.claim("v")
    assert after.status.reserved_for == ()
    component = scheduler.component
    assert component is not None
    assert component.core.wake_ups.sleepers == ()
    assert component.core.wake_ups.last_number > 0
    assert (await scheduler.pre_filter("v")).status.code == SUCCESS


async def test_a_refused_write_is_an_error_that_names_the_claim(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    scheduler.world.registry.faults.fail(STATUS_PATCH, times=1, status=403)
    status = (await scheduler.pre_bind(cycle_id)).status
    assert status.code == common_pb2.STATUS_CODE_ERROR
    assert status.reasons[0].startswith("add allocation and reservation to claim default/v-gpu: ")


@pytest.mark.kep("F58")
@pytest.mark.parametrize("writes", [1, 2], ids=["finalizer", "both"])
async def test_a_write_that_was_done_though_the_server_failed_counts(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    left = answer_late(monkeypatch, scheduler.world.api, "patch", times=writes)
    assert (await scheduler.pre_bind(cycle_id)).status.code == SUCCESS
    assert left == [0]
    assert [entry.name for entry in (await scheduler.claim("v")).status.reserved_for] == ["v"]


@pytest.mark.kep("F58")
async def test_a_server_that_fails_and_has_not_written_is_an_error_at_once(scheduler: Scheduler) -> None:
    cycle_id, _ = await scheduler.reserve("v")
    scheduler.world.registry.faults.fail(STATUS_PATCH, times=1, status=500)
    before = scheduler.world.seconds
    assert (await scheduler.pre_bind(cycle_id)).status.code == common_pb2.STATUS_CODE_ERROR
    assert scheduler.world.seconds - before < 1
    assert (await scheduler.claim("v")).status.allocation is None


async def test_a_new_scheduler_takes_over_what_an_older_one_had_in_flight(scheduler: Scheduler) -> None:
    await scheduler.reserve("v")
    await scheduler.open()
    opened = await scheduler.pre_filter("p")
    assert (await scheduler.filter(opened.cycle_id)).code == SUCCESS


# --- binding conditions and PostFilter ---------------------------------------------------------------------------------

CONDITIONED = [{"name": "gpu-0", "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}]


async def set_condition(scheduler: Scheduler, name: str, condition: str) -> None:
    device = {
        "driver": "gpu.example.com",
        "pool": "n1",
        "device": "gpu-0",
        "conditions": [
            {
                "type": condition,
                "status": "True",
                "reason": "Driver",
                "message": "said so",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    await scheduler.world.api.patch(
        objects.ResourceClaim, f"{name}-gpu", "default", {"status": {"devices": [device]}}, subresource="status"
    )


@pytest.mark.parametrize(
    ("condition", "code", "text"),
    [
        ("ready", SUCCESS, ""),
        ("broken", common_pb2.STATUS_CODE_ERROR, 'claim=v-gpu, reason=Driver, message="said so"'),
        ("", common_pb2.STATUS_CODE_ERROR, "device binding timeout: claim=v-gpu"),
    ],
)
async def test_pre_bind_waits_for_binding_conditions(
    world: World, monkeypatch: pytest.MonkeyPatch, condition: str, code: int, text: str
) -> None:
    scheduler = await prepared(world, monkeypatch, CONDITIONED)
    cycle_id, _ = await scheduler.reserve("v")
    call = scheduler.pre_bind(cycle_id)
    await scheduler.world.clock.sleep(5)
    claim_now = await scheduler.claim("v")
    assert claim_now.status.allocation is not None
    assert claim_now.status.allocation.allocation_timestamp is not None
    if condition:
        await set_condition(scheduler, "v", condition)
    status = (await call).status
    assert status.code == code
    assert text in "".join(status.reasons)
    events = await scheduler.world.api.list(objects.Event)
    assert [event.reason for event in events.items] == ["BindingConditionsPending"]


@pytest.mark.kep("E24", "E25", "F10")
async def test_a_pod_that_waits_for_conditions_can_be_preempted(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = await prepared(world, monkeypatch, CONDITIONED)
    cycle_id, reservation = await scheduler.reserve("v")
    call = scheduler.pre_bind(cycle_id)
    await scheduler.world.clock.sleep(5)
    await scheduler.nominate("p", "v")
    call.cancel()
    await scheduler.unreserve("v", reservation, preempted=True)
    assert (await scheduler.claim("v")).status.allocation is None
    assert (await scheduler.listed()).victim_claims == []
    opened = await scheduler.pre_filter("p")
    assert (await scheduler.filter(opened.cycle_id)).code == SUCCESS


@pytest.mark.kep("F41")
@pytest.mark.parametrize("gate", [True, False])
async def test_post_filter_deallocates_a_claim_that_cannot_be_used(
    world: World, monkeypatch: pytest.MonkeyPatch, gate: bool
) -> None:
    scheduler = await prepared(world, monkeypatch, CONDITIONED)
    scheduler.settings = Settings(feature_gates={"DRAPreemption": gate})
    await scheduler.start()
    cycle_id, reservation = await scheduler.reserve("v")
    call = scheduler.pre_bind(cycle_id)
    await scheduler.world.clock.sleep(5)
    await set_condition(scheduler, "v", "broken")
    await call
    await scheduler.unreserve("v", reservation)
    opened = await scheduler.pre_filter("v")
    status = await scheduler.filter(opened.cycle_id)
    assert (status.code, list(status.reasons)) == (UNRESOLVABLE, ["resourceclaim not available on the node"])
    request = scheduler_plugin_pb2.PostFilterRequest(session=scheduler.session, cycle_id=opened.cycle_id)
    status = (await scheduler.plugin.PostFilter(request, timeout=5)).status
    # With the gate on preemption must not run in the same attempt.
    assert status.code == (UNRESOLVABLE if gate else UNSCHEDULABLE)
    assert list(status.reasons) == ["deallocation of ResourceClaim completed"]
    assert (await scheduler.claim("v")).status.allocation is None


# --- settling ----------------------------------------------------------------------------------------------------------


@pytest.mark.kep("E34", "E36", "E72")
async def test_a_nomination_can_be_listed(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    answer = await scheduler.listed()
    [held] = answer.nominations
    assert (held.pod.name, held.node_name, list(held.devices)) == ("p", "n1", ["gpu.example.com/n1/gpu-0"])
    assert held.phase == nomination_extensions_pb2.NOMINATION_PHASE_CONFIRMED
    [awaited] = answer.victim_claims
    assert (awaited.name, awaited.preemptor_uid) == ("v-gpu", held.pod.uid)


@pytest.mark.kep("E81", "E83", "E86", "F49")
async def test_a_nominated_pod_may_not_preempt_while_claims_are_deallocated(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    request = nomination_extensions_pb2.PodEligibleToPreemptRequest(
        session=scheduler.session, pod=await scheduler.ref("p"), node_name="n1"
    )
    answer = await scheduler.nominations.PodEligibleToPreempt(request, timeout=5)
    assert not answer.eligible
    assert "still being deallocated" in answer.reason
    await deallocate(scheduler, "v")
    assert (await scheduler.nominations.PodEligibleToPreempt(request, timeout=5)).eligible


async def deallocate(scheduler: Scheduler, name: str) -> None:
    await scheduler.world.api.patch(
        objects.ResourceClaim,
        f"{name}-gpu",
        "default",
        {"status": {"allocation": None, "reservedFor": None}},
        subresource="status",
    )
    await scheduler.settle()


@pytest.mark.kep("E52", "D25")
async def test_a_restarted_service_holds_what_it_held(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    cycle_id, nomination = await scheduler.nominate("p", "v")
    await scheduler.end("p", cycle_id, scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN)
    before = await scheduler.listed()
    await scheduler.start()
    assert (await scheduler.listed()).nominations == []
    answer = await scheduler.open(nomination)
    assert list(answer.held) == [nomination.pod.uid]
    assert answer.highest_generation == 1
    assert await scheduler.listed() == before


@pytest.mark.kep("F44", "E52")
async def test_without_persistence_a_restart_forgets(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = await prepared(world, monkeypatch, [{"name": "gpu-0"}], nomination_persistence="none")
    await scheduler.place("v")
    _, nomination = await scheduler.nominate("p", "v")
    assert nomination.records["DynamicResources"] == ""
    await scheduler.start()
    assert list((await scheduler.open(nomination)).held) == []


@pytest.mark.kep("E90", "F31")
async def test_wake_ups_are_streamed(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    cycle_id, _ = await scheduler.nominate("p", "v")
    outcome = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN
    assert await scheduler.end("p", cycle_id, outcome) == scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP
    stream = scheduler.plugin.WatchWakeUps(
        scheduler_plugin_pb2.WatchWakeUpsRequest(session=scheduler.session, sleepers=[await scheduler.ref("p")]),
        timeout=60,
    )
    reading = asyncio.ensure_future(stream.read())
    await scheduler.settle()
    assert not reading.done()
    await deallocate(scheduler, "v")
    item = await reading
    assert ([pod.name for pod in item.pods], item.at_once, item.event) == (["p"], True, "ResourceClaim/Update")
    stream.cancel()


async def test_a_settling_window_is_listed_and_watched(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    stream = scheduler.settlements.WatchSettlements(settlement_pb2.WatchSettlementsRequest(), timeout=600)
    first = (await stream.read()).settlement
    assert first.phase == settlement_pb2.SETTLEMENT_PHASE_TERMINATING
    await scheduler.world.clock.sleep(10)
    await scheduler.world.api.delete(objects.Pod, "v", "default", grace_period_seconds=0)
    await scheduler.settle()
    assert (await stream.read()).settlement.phase == settlement_pb2.SETTLEMENT_PHASE_DEALLOCATING
    await scheduler.world.clock.sleep(10)
    await deallocate(scheduler, "v")
    assert (await stream.read()).settlement.phase == settlement_pb2.SETTLEMENT_PHASE_HELD
    await scheduler.place("p")
    stream.cancel()
    [window] = (
        await scheduler.settlements.ListSettlements(settlement_pb2.ListSettlementsRequest(), timeout=5)
    ).settlements
    assert window.outcome == "scheduled"
    seconds = [getattr(window, name).seconds - window.t0.seconds for name in ("t0", "t1", "t3", "t4")]
    assert seconds == [0, 10, 20, 20]
    await scheduler.settle()
    events = await scheduler.world.api.list(objects.Event)
    assert [event.reason for event in events.items] == ["PreemptionSettled"]


async def test_a_sandbox_may_ask_about_a_pod_of_its_own(scheduler: Scheduler) -> None:
    await scheduler.world.apply(
        {
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "one"},
            "spec": {"spec": claim("x")["spec"]},
        }
    )
    answer = await scheduler.plugin.OpenSession(
        scheduler_plugin_pb2.OpenSessionRequest(kind=scheduler_plugin_pb2.SESSION_KIND_SANDBOX), timeout=5
    )
    entry = '"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "%s"}]'

    def request(template: str) -> scheduler_plugin_pb2.PreFilterRequest:
        item = common_pb2.PodInput(
            pod=common_pb2.PodReference(namespace="default", name="mine", uid="mine"),
            priority=7,
            manifest='{"metadata": {"name": "mine"}, "spec": {' + entry % template + "}}",
        )
        return scheduler_plugin_pb2.PreFilterRequest(session=answer.session, pod=item)

    with pytest.raises(grpc.aio.AioRpcError) as failure:
        await scheduler.plugin.PreFilter(request("none"), timeout=5)
    assert code_of(failure) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "pod.manifest: ResourceClaimTemplate default/none does not exist",
    )
    opened = await scheduler.plugin.PreFilter(request("one"), timeout=5)
    assert opened.status.code == SUCCESS
    scheduler.session = answer.session
    assert (await scheduler.filter(opened.cycle_id)).code == SUCCESS


@pytest.mark.kep("E43")
async def test_a_nomination_ends_with_the_binding_though_nobody_says_so(scheduler: Scheduler) -> None:
    await scheduler.place("v")
    await scheduler.nominate("p", "v")
    await deallocate(scheduler, "v")
    cycle_id, _ = await scheduler.reserve("p")
    assert (await scheduler.pre_bind(cycle_id)).status.code == SUCCESS
    bound = await scheduler.world.pod("p")
    await scheduler.world.api.bind("default", "p", bound.metadata.uid, "n1")
    await scheduler.settle()
    assert (await scheduler.listed()).nominations == []
    [window] = (
        await scheduler.settlements.ListSettlements(settlement_pb2.ListSettlementsRequest(), timeout=5)
    ).settlements
    assert window.outcome == "scheduled"
