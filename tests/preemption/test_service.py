"""PreemptionService between a framework and a plugin that note what they are asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from earmark.apiserver.faults import RequestMatch
from earmark.preemption.component import build
from earmark.preemption.settings import PreemptionSettings
from earmark.runtime.clock import LoopClock
from earmark.v1 import common_pb2, framework_pb2, preemption_pb2, preemption_pb2_grpc
from support.embedded_world import World
from support.preemption_peers import FakeFramework, FakePlugin, preemption_input, serve

pytestmark = pytest.mark.virtual


class Setup:
    """The service and its peers."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.framework = FakeFramework()  # type: ignore[abstract]
        self.plugin = FakePlugin()  # type: ignore[abstract]
        self.metrics = CollectorRegistry()
        serve(world.network, self.framework, self.plugin)

    async def start(self, **settings: Any) -> None:
        env = await self.world.start("preemption", build, PreemptionSettings(**settings))
        self.metrics = env.metrics
        self.stub = preemption_pb2_grpc.PreemptionServiceStub(env.channels.to("preemption"))
        await self.world.until(self.world.seconds)

    async def preempt(
        self, message: framework_pb2.PreemptionInput, generation: int = 7
    ) -> preemption_pb2.PreemptResponse:
        self.framework.input = message
        return await self.stub.Preempt(preemption_pb2.PreemptRequest(input=message, generation=generation), timeout=10)

    def sample(self, name: str) -> float | None:
        return self.metrics.get_sample_value(name)


@pytest.fixture
async def setup(clock: LoopClock) -> AsyncIterator[Setup]:
    world = World(clock)
    setup = Setup(world)
    await setup.start()
    yield setup
    await world.close()


TWO = (("n1", (("a", 5), ("b", 1))), ("n2", (("c", 3),)))


@pytest.mark.kep("E34", "E35")
async def test_the_winner_is_proposed_to_the_plugin_before_anything_is_deleted(setup: Setup) -> None:
    message = preemption_input(*TWO)
    message.nodes[0].nominated_pod_uids.append("uid-other")
    answer = await setup.preempt(message)
    assert answer.status.code == common_pb2.STATUS_CODE_SUCCESS
    assert list(answer.status.reasons) == ["found a potential placement for pod on node n1, preempting 1 victims"]
    assert answer.mode == preemption_pb2.NOMINATING_MODE_OVERRIDE
    nomination = answer.nomination
    assert (nomination.pod.uid, nomination.node_name, nomination.generation, nomination.priority) == (
        "uid-p", "n1", 7, 100,
    )  # fmt: skip
    assert [victim.name for victim in nomination.victims] == ["b"]
    assert dict(nomination.records) == {"DynamicResources": '{"held":[]}'}
    (added,) = setup.plugin.added
    assert (added.session.id, added.session.epoch, added.cycle_id) == ("s", 3, "dra-1")
    assert (added.node_name, added.generation, added.priority) == ("n1", 7, 100)
    assert list(added.nominated_pod_uids) == ["uid-other"]
    assert [candidate.node_name for candidate in answer.candidates] == ["n2", "n1"]
    assert setup.framework.asked_to_preempt == []


async def test_a_round_is_one_call_whatever_the_number_of_nodes(setup: Setup) -> None:
    nodes = tuple((f"n{i}", tuple((f"v{i}-{j}", j) for j in range(8))) for i in range(50))
    answer = await setup.preempt(preemption_input(*nodes))
    assert answer.rounds == len(setup.framework.rounds) == 9
    assert len(setup.framework.rounds[0].queries) == 50


async def test_large_rounds_are_sent_in_chunks(setup: Setup) -> None:
    await setup.start(round_chunk_nodes=20)
    nodes = tuple((f"n{i}", ((f"v{i}", 1),)) for i in range(50))
    answer = await setup.preempt(preemption_input(*nodes))
    assert [len(request.queries) for request in setup.framework.rounds] == [20, 20, 10, 20, 20, 10]
    assert answer.rounds == 6
    assert answer.nomination.node_name == "n0"


@pytest.mark.kep("E81", "E86", "F49")
async def test_a_plugin_that_objects_defers_the_preemption_and_keeps_the_nomination(setup: Setup) -> None:
    setup.plugin.objection = "not eligible due to something still being reclaimed."
    answer = await setup.preempt(preemption_input(*TWO, nominated="n1"))
    assert answer.status.code == common_pb2.STATUS_CODE_UNSCHEDULABLE
    assert list(answer.status.reasons) == ["not eligible due to something still being reclaimed."]
    assert answer.mode == preemption_pb2.NOMINATING_MODE_NOOP
    assert not answer.HasField("nomination")
    assert setup.framework.rounds == []
    assert setup.plugin.asked[0].node_name == "n1"


@pytest.mark.kep("E87")
async def test_a_pod_without_nomination_is_not_asked_about(setup: Setup) -> None:
    setup.plugin.objection = "no"
    assert (await setup.preempt(preemption_input(*TWO))).nomination.node_name == "n1"
    assert setup.plugin.asked == []


@pytest.mark.kep("E88")
async def test_a_plugin_without_a_cycle_is_left_out(setup: Setup) -> None:
    message = preemption_input(*TWO, nominated="n1")
    del message.plugin_cycles[:]
    answer = await setup.preempt(message)
    assert answer.nomination.node_name == "n1"
    assert (setup.plugin.asked, setup.plugin.added) == ([], [])


@pytest.mark.kep("F7")
async def test_a_plugin_that_refuses_the_nomination_ends_the_preemption(setup: Setup) -> None:
    setup.plugin.refusal = common_pb2.Status(
        code=common_pb2.STATUS_CODE_UNSCHEDULABLE, reasons=["state has moved"], plugin="DynamicResources"
    )
    answer = await setup.preempt(preemption_input(*TWO, nominated="n2"))
    assert answer.status == setup.plugin.refusal
    assert answer.mode == preemption_pb2.NOMINATING_MODE_NOOP
    assert not answer.HasField("nomination")
    assert setup.sample("scheduler_preemption_victims_count") == 0


async def test_a_plugin_that_is_down_is_an_error_that_keeps_the_nomination(setup: Setup) -> None:
    setup.world.network.remove("dynamicresources")
    answer = await setup.preempt(preemption_input(*TWO))
    assert answer.status.code == common_pb2.STATUS_CODE_ERROR
    assert answer.status.reasons[0].startswith("DynamicResources: UNAVAILABLE")
    assert answer.mode == preemption_pb2.NOMINATING_MODE_NOOP


async def test_a_cycle_that_the_framework_has_lost_is_an_error(setup: Setup) -> None:
    message = preemption_input(*TWO)
    setup.framework.input = framework_pb2.PreemptionInput(cycle_id="another")
    answer = await setup.stub.Preempt(preemption_pb2.PreemptRequest(input=message, generation=1), timeout=10)
    assert answer.status.code == common_pb2.STATUS_CODE_ERROR
    assert "FAILED_PRECONDITION" in answer.status.reasons[0]


async def test_without_a_candidate_the_nomination_is_cleared_and_every_node_has_its_reason(setup: Setup) -> None:
    setup.framework.fits = lambda node, removed: False
    message = preemption_input(*TWO, ("n3", ()), ("n4", ()))
    message.statuses.append(
        common_pb2.Status(code=common_pb2.STATUS_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=["cordoned"])
    )
    message.nodes[3].status = 1
    answer = await setup.preempt(message)
    assert list(answer.status.reasons) == [
        "0/4 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for "
        "scheduling, 2 Insufficient cpu."
    ]
    assert answer.mode == preemption_pb2.NOMINATING_MODE_OVERRIDE
    assert [(list(reason.nodes), list(reason.preemption.reasons)) for reason in answer.node_reasons] == [
        (["n1", "n2"], ["Insufficient cpu"]),
        (["n3"], ["No preemption victims found for incoming pod"]),
        (["n4"], ["Preemption is not helpful for scheduling"]),
    ]


@pytest.mark.kep("E96", "F51")
async def test_every_attempt_is_counted_and_victims_only_of_chosen_candidates(setup: Setup) -> None:
    await setup.preempt(preemption_input(*TWO))
    setup.plugin.objection = "later"
    await setup.preempt(preemption_input(*TWO, nominated="n1"))
    assert setup.sample("scheduler_preemption_attempts_total") == 2
    assert setup.sample("scheduler_preemption_victims_count") == 1
    assert setup.sample("scheduler_preemption_victims_sum") == 1
    assert setup.metrics.get_sample_value("scheduler_preemption_victims_bucket", {"le": "64.0"}) == 1


async def test_budgets_of_the_api_count(setup: Setup) -> None:
    await setup.world.apply(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1},
        }
    )
    await setup.world.until(1)
    message = preemption_input(("n1", (("a", 1),)), ("n2", (("b", 9),)))
    message.pods[0].labels["app"] = "x"
    answer = await setup.preempt(message)
    assert answer.nomination.node_name == "n2"
    assert [candidate.pdb_violations for candidate in answer.candidates] == [0, 1]


def no_cycle(message: framework_pb2.PreemptionInput) -> None:
    message.cycle_id = ""


def no_uid(message: framework_pb2.PreemptionInput) -> None:
    message.pods[1].pod.uid = ""


def bad_status(message: framework_pb2.PreemptionInput) -> None:
    message.nodes[1].status = 9


def bad_pod(message: framework_pb2.PreemptionInput) -> None:
    message.nodes[0].pods.append(99)


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (no_cycle, "input.cycle_id"),
        (no_uid, "input.pods[1].pod.uid"),
        (bad_status, "input.nodes[1].status"),
        (bad_pod, "input.nodes[0].pods"),
    ],
)
async def test_a_bad_input_is_refused_by_its_field(
    setup: Setup, spoil: Callable[[framework_pb2.PreemptionInput], None], field: str
) -> None:
    message = preemption_input(*TWO)
    spoil(message)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.preempt(message)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(raised.value.details()).startswith(field)


async def test_a_generation_is_wanted(setup: Setup) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.preempt(preemption_input(*TWO), generation=0)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_nobody_is_chosen_before_the_budgets_are_known(setup: Setup) -> None:
    setup.world.registry.faults.fail(RequestMatch("list", "PodDisruptionBudget"), times=1, status=500)
    await setup.start()
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.preempt(preemption_input(*TWO))
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    await setup.world.until(1)
    assert (await setup.preempt(preemption_input(*TWO))).nomination.node_name == "n1"


# --- dry runs for people ---------------------------------------------------------------------------------------------


async def test_a_dry_run_decides_and_proposes_nothing(setup: Setup) -> None:
    setup.framework.input = preemption_input(*TWO)
    answer = await setup.stub.DryRun(preemption_pb2.DryRunRequest(), timeout=10)
    assert answer.chosen.node_name == "n1"
    assert [victim.name for victim in answer.chosen.victims] == ["b"]
    assert setup.plugin.added == []
    assert setup.framework.closed == ["cycle-1"]
    assert setup.sample("scheduler_preemption_attempts_total") == 0


async def test_a_dry_run_of_a_pod_that_fits_says_where(setup: Setup) -> None:
    setup.framework.input = preemption_input(*TWO)
    setup.framework.fits_on = "n2"
    answer = await setup.stub.DryRun(preemption_pb2.DryRunRequest(), timeout=10)
    assert answer.fits_on == "n2"
    assert not answer.HasField("chosen")
    assert setup.framework.rounds == []
    assert setup.framework.closed == ["cycle-1"]


async def test_a_dry_run_without_framework_is_unavailable(setup: Setup) -> None:
    setup.world.network.remove("framework")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await setup.stub.DryRun(preemption_pb2.DryRunRequest(), timeout=10)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
