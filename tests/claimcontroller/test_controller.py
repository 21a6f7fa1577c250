"""The claim controller on the embedded API in virtual time (upstream C1 to C8)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from earmark.apiserver.faults import RequestMatch
from earmark.claimcontroller.component import build
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.kube.objects import Event, Pod, ResourceClaim
from earmark.runtime.clock import LoopClock
from earmark.v1 import claim_controller_pb2, claim_controller_pb2_grpc
from support.embedded_world import World, claim, node, pod, template

pytestmark = pytest.mark.virtual


@pytest.fixture
async def world(clock: LoopClock) -> AsyncIterator[World]:
    world = World(clock)
    await world.apply(node())
    await world.apply(template())
    yield world
    await world.close()


async def start(world: World, **settings: Any) -> claim_controller_pb2_grpc.ClaimControllerServiceAsyncStub:
    env = await world.start("claimcontroller", build, ClaimControllerSettings(**settings))
    return claim_controller_pb2_grpc.ClaimControllerServiceStub(env.channels.to("claimcontroller"))


async def claims(world: World) -> list[ResourceClaim]:
    return list((await world.api.list(ResourceClaim)).items)


async def running(world: World, name: str, *, claim_name: str = "", grace: int = 0) -> ResourceClaim:
    """A pod on n1 with its claim allocated and reserved, as a scheduler leaves it."""
    source = f"claim:{claim_name}" if claim_name else "template:one-gpu"
    await world.apply(pod(name, grace=grace, gpu=source))
    await world.until(world.seconds)
    found = await world.claim_of(name) if not claim_name else await world.find(ResourceClaim, claim_name)
    assert found is not None
    subject = await world.pod(name)
    await world.allocate(found, subject)
    await world.api.bind("default", name, subject.metadata.uid, "n1")
    return await world.api.get(ResourceClaim, found.metadata.name, "default")


async def gone(world: World, name: str) -> None:
    """Remove a pod at once, as a kubelet does at the end."""
    await world.api.delete(Pod, name, "default", grace_period_seconds=0)


async def test_a_pod_gets_a_claim_from_its_template_and_learns_its_name(world: World) -> None:
    await start(world)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(1)
    (made,) = await claims(world)
    assert made.metadata.name.startswith("p-gpu-")
    assert made.metadata.labels == {"from": "one-gpu"}
    assert await world.claim_of("p") == made


async def test_claims_are_made_for_pods_that_were_there_before_the_controller(world: World) -> None:
    await world.apply(pod("p", gpu="template:one-gpu"))
    await start(world)
    await world.until(1)
    assert await world.claim_of("p") is not None


async def test_a_status_write_that_fails_does_not_make_a_second_claim(world: World) -> None:
    await start(world)
    world.registry.faults.fail(RequestMatch("patch", "Pod", "p", "status"), times=3, status=500)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(5)
    assert len(await claims(world)) == 1
    assert await world.claim_of("p") is not None


async def test_an_answer_that_is_lost_does_not_make_a_second_claim(world: World) -> None:
    await start(world)
    world.registry.faults.lose(RequestMatch("create", "ResourceClaim"), times=1, done=True)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(5)
    assert len(await claims(world)) == 1
    assert await world.claim_of("p") is not None


async def test_a_missing_template_is_told_once_in_an_event_and_heals_when_it_comes(world: World) -> None:
    await start(world)
    await world.apply(pod("p", gpu="template:later"))
    await world.until(10)
    (event,) = (await world.api.list(Event)).items
    assert (event.type, event.reason, event.regarding.name) == ("Warning", "FailedResourceClaimCreation", "p")
    assert event.note.startswith("PodResourceClaim gpu: ")
    await world.apply(template("later"))
    await world.until(11)
    assert await world.claim_of("p") is not None


async def test_a_claim_that_disappears_under_a_pending_pod_is_made_anew(world: World) -> None:
    await start(world)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(1)
    (first,) = await claims(world)
    await world.api.delete(ResourceClaim, first.metadata.name, "default")
    await world.until(2)
    (second,) = await claims(world)
    assert second.metadata.uid != first.metadata.uid
    assert await world.claim_of("p") == second


async def test_the_delay_counts_from_the_end_of_the_consumer_and_the_generated_claim_goes_with_it(world: World) -> None:
    await start(world, deallocation_seconds=10)
    held = await running(world, "p")
    await world.until(20)
    await gone(world, "p")
    await world.until(29.9)
    assert (await world.api.get(ResourceClaim, held.metadata.name, "default")).status.allocation is not None
    await world.until(30)
    assert await claims(world) == []


async def test_a_named_claim_is_deallocated_loses_its_finalizer_and_stays(world: World) -> None:
    await start(world)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    await gone(world, "p")
    await world.until(1)
    (left,) = await claims(world)
    assert left.status.allocation is None
    assert left.status.reserved_for == ()
    assert left.metadata.finalizers == ()


async def watched(world: World, two_writes: bool) -> list[tuple[int, bool, bool]]:
    """What watchers see of a claim after its last pod has gone: (reservations, allocated, protected)."""
    await start(world, two_writes=two_writes)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    version = (await world.api.list(ResourceClaim)).resource_version
    await gone(world, "p")
    await world.until(1)
    seen = []
    stream = world.api.watch(ResourceClaim, resource_version=version)
    async for event in stream:
        subject = event.object
        seen.append(
            (
                len(subject.status.reserved_for),
                subject.status.allocation is not None,
                bool(subject.metadata.finalizers),
            )
        )
        if not subject.metadata.finalizers:
            return seen
    raise AssertionError("the watch ended")


async def test_watchers_see_reservation_and_allocation_go_in_one_write_and_then_the_finalizer(world: World) -> None:
    assert await watched(world, two_writes=False) == [(0, False, True), (0, False, False)]


@pytest.mark.kep("F50")
async def test_two_writes_can_be_asked_for(world: World) -> None:
    assert await watched(world, two_writes=True) == [(0, True, True), (0, False, True), (0, False, False)]


async def test_a_pod_that_terminates_slowly_keeps_its_claim_until_it_has_gone(world: World) -> None:
    await start(world)
    held = await running(world, "p", grace=600)
    await world.until(10)
    await world.api.delete(Pod, "p", "default")
    await world.until(500)
    found = await world.api.get(ResourceClaim, held.metadata.name, "default")
    assert found.status.allocation is not None
    assert len(found.status.reserved_for) == 1


@pytest.mark.kep("F54")
async def test_a_pod_that_has_finished_releases_its_claim_before_it_is_gone(world: World) -> None:
    await start(world)
    await running(world, "p", grace=600)
    await world.api.delete(Pod, "p", "default")
    await world.api.patch(Pod, "p", "default", {"status": {"phase": "Failed"}}, subresource="status")
    await world.until(1)
    assert await claims(world) == []
    assert await world.find(Pod, "p") is not None


async def test_the_claim_of_a_pending_pod_goes_with_it(world: World) -> None:
    await start(world)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(1)
    await world.api.delete(Pod, "p", "default")
    await world.until(2)
    assert await claims(world) == []


async def test_a_pod_of_the_same_name_does_not_inherit_the_reservation(world: World) -> None:
    await start(world)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    world.stop("claimcontroller")
    await gone(world, "p")
    await world.apply(pod("p", gpu="claim:c"))
    await start(world)
    await world.until(1)
    (left,) = await claims(world)
    assert left.status.allocation is None
    assert left.status.reserved_for == ()


async def test_two_pods_share_a_claim_until_the_last_has_gone_each_after_its_own_delay(world: World) -> None:
    await start(world, deallocation_seconds=10)
    await world.apply(claim("c"))
    await running(world, "a", claim_name="c")
    await world.apply(pod("b", gpu="claim:c"))
    subject = await world.pod("b")
    await world.api.bind("default", "b", subject.metadata.uid, "n1")
    await world.until(1)
    assert len((await world.api.get(ResourceClaim, "c", "default")).status.reserved_for) == 2
    await world.until(20)
    await gone(world, "a")
    await world.until(25)
    await gone(world, "b")
    await world.until(30)
    held = (await world.api.get(ResourceClaim, "c", "default")).status
    assert [entry.name for entry in held.reserved_for] == ["b"]
    assert held.allocation is not None
    await world.until(34.9)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is not None
    await world.until(35)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_a_restarted_controller_starts_the_delay_anew(world: World) -> None:
    await start(world, deallocation_seconds=10)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    await world.until(20)
    await gone(world, "p")
    await world.until(27)
    await start(world, deallocation_seconds=10)
    await world.until(36.9)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is not None
    await world.until(37)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_a_conflict_is_retried_within_milliseconds(world: World) -> None:
    await start(world)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    world.registry.faults.fail(RequestMatch("patch", "ResourceClaim", "c", "status"), times=2, status=409)
    await world.until(1)
    await gone(world, "p")
    await world.until(1.1)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_a_consumer_that_the_api_cannot_tell_of_is_kept_until_it_can(world: World) -> None:
    await start(world)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    world.stop("claimcontroller")
    await gone(world, "p")
    world.registry.faults.fail(RequestMatch("get", "Pod", "p"), times=8, status=500)
    await start(world)
    await world.until(0.5)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is not None
    await world.until(5)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_nothing_happens_while_paused_and_everything_after_resume(world: World) -> None:
    rpc = await start(world, deallocation_seconds=10)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    await world.until(5)
    await rpc.Pause(claim_controller_pb2.PauseRequest(), timeout=1)
    await gone(world, "p")
    await world.until(100)
    status = await rpc.GetStatus(claim_controller_pb2.GetStatusRequest(), timeout=1)
    assert status.paused
    assert (world.now - status.paused_since.ToDatetime(world.now.tzinfo)).total_seconds() == 95
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is not None
    await rpc.Resume(claim_controller_pb2.ResumeRequest(), timeout=1)
    await world.until(100.1)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_a_changed_delay_counts_for_what_waits_already(world: World) -> None:
    rpc = await start(world, deallocation_seconds=1000)
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    await gone(world, "p")
    await world.until(5)
    status = await rpc.GetStatus(claim_controller_pb2.GetStatusRequest(), timeout=1)
    assert list(status.deallocating) == ["default/c"]
    request = claim_controller_pb2.SetDelaysRequest()
    request.deallocation.FromSeconds(7)
    await rpc.SetDelays(request, timeout=1)
    await world.until(6.9)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is not None
    await world.until(7)
    assert (await world.api.get(ResourceClaim, "c", "default")).status.allocation is None


async def test_a_negative_delay_is_refused(world: World) -> None:
    rpc = await start(world)
    request = claim_controller_pb2.SetDelaysRequest()
    request.deallocation.FromSeconds(-1)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await rpc.SetDelays(request, timeout=1)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "deallocation" in str(raised.value.details())


async def test_an_allocated_claim_that_nobody_reserves_is_left_alone_until_its_pod_goes(world: World) -> None:
    await start(world)
    await world.apply(pod("p", gpu="template:one-gpu"))
    await world.until(1)
    (made,) = await claims(world)
    await world.allocate(made)
    await world.until(10)
    assert (await claims(world))[0].status.allocation is not None
    await world.api.delete(Pod, "p", "default")
    await world.until(11)
    assert await claims(world) == []


async def test_metrics_tell_claims_by_state_and_source(world: World) -> None:
    env = await world.start("claimcontroller", build, ClaimControllerSettings())
    await world.apply(claim("c"))
    await running(world, "p", claim_name="c")
    await world.apply(pod("q", gpu="template:one-gpu"))
    await world.until(1)

    def claims_with(**labels: str) -> float | None:
        return env.metrics.get_sample_value(
            "dynamic_resource_allocation_resource_claims", {"admin_access": "false", **labels}
        )

    assert claims_with(allocated="true", source="") == 1
    assert claims_with(allocated="false", source="resource_claim_template") == 1
    created = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert env.metrics.get_sample_value(created, {"status": "success"}) == 1
    await gone(world, "p")
    await world.until(2)
    assert env.metrics.get_sample_value("earmark_claimcontroller_deallocations_total") == 1
    assert claims_with(allocated="false", source="") == 1
