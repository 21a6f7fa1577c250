"""A scheduler plugin and a preemption service that do as they are told, and note what they were asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from earmark.framework.component import Framework, build
from earmark.framework.settings import FrameworkSettings, PluginSettings
from earmark.kube import objects
from earmark.runtime.environment import in_process_server
from earmark.v1 import (
    common_pb2,
    nomination_extensions_pb2,
    nomination_extensions_pb2_grpc,
    preemption_pb2,
    preemption_pb2_grpc,
    scheduler_plugin_pb2,
    scheduler_plugin_pb2_grpc,
)
from support.embedded_world import World
from support.framework_objects import manifest

NAME = "Fake"
SERVICE = "fakeplugin"

_POINTS = list(scheduler_plugin_pb2.ExtensionPoint.values())[1:]


def status(code: int, *reasons: str) -> common_pb2.Status:
    return common_pb2.Status(code=code, reasons=reasons, plugin=NAME)  # type: ignore[arg-type]


UNSCHEDULABLE = common_pb2.STATUS_CODE_UNSCHEDULABLE
UNRESOLVABLE = common_pb2.STATUS_CODE_UNSCHEDULABLE_AND_UNRESOLVABLE
SKIP = common_pb2.STATUS_CODE_SKIP


class FakePlugin(
    scheduler_plugin_pb2_grpc.SchedulerPluginServiceServicer,
    nomination_extensions_pb2_grpc.NominationExtensionsServiceServicer,
):
    """`calls` has (method, request); statuses are those that the methods answer."""

    def __init__(self, instance: str = "first") -> None:
        self.instance = instance
        self.calls: list[tuple[str, Any]] = []
        self.pre_enqueue = common_pb2.Status()
        self.pre_filter = common_pb2.Status()
        # Called with (node, UIDs of removed pods).
        self.filter: Callable[[str, list[str]], common_pb2.Status] = lambda _node, _removed: common_pb2.Status()
        self.reserve = common_pb2.Status()
        self.pre_bind = common_pb2.Status()
        self.pre_bind_waits: asyncio.Event | None = None
        self.verdict = scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP
        self.confirm_fails = False
        self.points = _POINTS
        self.wake_ups: asyncio.Queue[scheduler_plugin_pb2.WatchWakeUpsResponse] = asyncio.Queue()
        self.sessions = 0

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def requests(self, method: str) -> list[Any]:
        return [request for name, request in self.calls if name == method]

    def _note(self, request: Any) -> None:
        self.calls.append((type(request).__name__.removesuffix("Request"), request))

    async def Describe(self, request: Any, context: Any) -> scheduler_plugin_pb2.DescribeResponse:
        return scheduler_plugin_pb2.DescribeResponse(
            name=NAME,
            protocol_version="v1",
            extension_points=self.points,
            requeue_events=["Node/Add"],
            instance_id=self.instance,
            score_weight=1,
        )

    async def OpenSession(self, request: Any, context: Any) -> scheduler_plugin_pb2.OpenSessionResponse:
        self._note(request)
        self.sessions += 1
        session = common_pb2.SessionReference(id=f"{self.instance}-{self.sessions}", epoch=request.epoch)
        return scheduler_plugin_pb2.OpenSessionResponse(
            session=session, highest_generation=40, instance_id=self.instance
        )

    async def KeepSession(self, request: Any, context: Any) -> scheduler_plugin_pb2.KeepSessionResponse:
        return scheduler_plugin_pb2.KeepSessionResponse()

    async def CloseSession(self, request: Any, context: Any) -> scheduler_plugin_pb2.CloseSessionResponse:
        self._note(request)
        return scheduler_plugin_pb2.CloseSessionResponse()

    async def PreEnqueue(self, request: Any, context: Any) -> scheduler_plugin_pb2.PreEnqueueResponse:
        self._note(request)
        return scheduler_plugin_pb2.PreEnqueueResponse(statuses=[self.pre_enqueue] * len(request.pods))

    async def PreFilter(self, request: Any, context: Any) -> scheduler_plugin_pb2.PreFilterResponse:
        self._note(request)
        return scheduler_plugin_pb2.PreFilterResponse(status=self.pre_filter, cycle_id=f"c{len(self.calls)}")

    def _verdicts(self, request: Any) -> common_pb2.NodeVerdicts:
        verdicts = common_pb2.NodeVerdicts()
        for query in request.queries:
            removed = [request.pod_uids[index] for index in query.removed]
            verdicts.verdicts.append(len(verdicts.statuses))
            verdicts.with_nominated.append(False)
            verdicts.statuses.append(self.filter(request.nodes[query.node], removed))
        return verdicts

    async def Filter(self, request: Any, context: Any) -> scheduler_plugin_pb2.FilterResponse:
        self._note(request)
        return scheduler_plugin_pb2.FilterResponse(verdicts=self._verdicts(request))

    async def FilterForks(self, request: Any, context: Any) -> scheduler_plugin_pb2.FilterForksResponse:
        self._note(request)
        return scheduler_plugin_pb2.FilterForksResponse(verdicts=self._verdicts(request))

    async def PostFilter(self, request: Any, context: Any) -> scheduler_plugin_pb2.PostFilterResponse:
        self._note(request)
        return scheduler_plugin_pb2.PostFilterResponse(status=status(UNSCHEDULABLE))

    async def Score(self, request: Any, context: Any) -> scheduler_plugin_pb2.ScoreResponse:
        self._note(request)
        return scheduler_plugin_pb2.ScoreResponse(scores=[0] * len(request.nodes))

    async def Reserve(self, request: Any, context: Any) -> scheduler_plugin_pb2.ReserveResponse:
        self._note(request)
        return scheduler_plugin_pb2.ReserveResponse(status=self.reserve, reservation="kept")

    async def Unreserve(self, request: Any, context: Any) -> scheduler_plugin_pb2.UnreserveResponse:
        self._note(request)
        return scheduler_plugin_pb2.UnreserveResponse()

    async def PreBind(self, request: Any, context: Any) -> scheduler_plugin_pb2.PreBindResponse:
        self._note(request)
        if self.pre_bind_waits is not None:
            await self.pre_bind_waits.wait()
        return scheduler_plugin_pb2.PreBindResponse(status=self.pre_bind)

    async def EndCycle(self, request: Any, context: Any) -> scheduler_plugin_pb2.EndCycleResponse:
        self._note(request)
        return scheduler_plugin_pb2.EndCycleResponse(verdict=self.verdict)

    async def WatchWakeUps(
        self, request: Any, context: Any
    ) -> AsyncIterator[scheduler_plugin_pb2.WatchWakeUpsResponse]:
        self._note(request)
        while True:
            yield await self.wake_ups.get()

    async def ConfirmNominatedPod(
        self, request: Any, context: Any
    ) -> nomination_extensions_pb2.ConfirmNominatedPodResponse:
        self._note(request)
        if self.confirm_fails:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "restarting")
        return nomination_extensions_pb2.ConfirmNominatedPodResponse()

    async def RemoveNominatedPod(
        self, request: Any, context: Any
    ) -> nomination_extensions_pb2.RemoveNominatedPodResponse:
        self._note(request)
        return nomination_extensions_pb2.RemoveNominatedPodResponse()


class FakePreemption(preemption_pb2_grpc.PreemptionServiceServicer):
    """Answers Preempt with `answer`, or "not helpful"; notes calls into the plugin's list to show the order."""

    def __init__(self, calls: list[tuple[str, Any]]) -> None:
        self.calls = calls
        self.node = ""
        self.victims: list[common_pb2.PodReference] = []
        self.outcome = preemption_pb2.VICTIM_OUTCOME_DELETED
        # What becomes of the nomination where there is no node.
        self.mode = preemption_pb2.NOMINATING_MODE_OVERRIDE
        self.execute_waits: asyncio.Event | None = None
        # Called with the request before Preempt answers.
        self.meanwhile: Callable[[Any], Any] | None = None

    async def Preempt(self, request: Any, context: Any) -> preemption_pb2.PreemptResponse:
        self.calls.append(("Preempt", request))
        if self.meanwhile is not None:
            await self.meanwhile(request)
        if not self.node:
            return preemption_pb2.PreemptResponse(status=status(UNSCHEDULABLE, "not helpful"), mode=self.mode)
        nomination = common_pb2.Nomination(
            pod=request.input.preemptor.pod,
            node_name=self.node,
            generation=request.generation,
            priority=request.input.preemptor.priority,
            victims=self.victims,
            records={NAME: '{"held":["gpu-0"]}'},
        )
        return preemption_pb2.PreemptResponse(
            status=common_pb2.Status(code=common_pb2.STATUS_CODE_SUCCESS, reasons=["found"]),
            mode=preemption_pb2.NOMINATING_MODE_OVERRIDE,
            nomination=nomination,
        )

    async def Execute(self, request: Any, context: Any) -> preemption_pb2.ExecuteResponse:
        self.calls.append(("Execute", request))
        if self.execute_waits is not None:
            await self.execute_waits.wait()
        results = [preemption_pb2.VictimResult(pod=pod, outcome=self.outcome) for pod in request.nomination.victims]
        return preemption_pb2.ExecuteResponse(victims=results)


class Stand:
    """A world with a framework, a fake plugin (if wanted) and a fake preemption service."""

    def __init__(self, world: World, *, plugin: bool = True) -> None:
        self.world = world
        self.plugin = FakePlugin()
        self.preemption = FakePreemption(self.plugin.calls)
        self.with_plugin = plugin
        self.framework: Framework | None = None
        self.settings = FrameworkSettings(
            plugins=(PluginSettings(NAME, SERVICE),) if plugin else (), feature_gates={"DRAPreemption": True}
        )

    async def start(self) -> None:
        """Start everything that does not run."""
        self.serve_preemption()
        if self.with_plugin:
            self.serve_plugin()
        await self.start_framework()

    def serve_plugin(self) -> None:
        server = in_process_server()
        scheduler_plugin_pb2_grpc.add_SchedulerPluginServiceServicer_to_server(self.plugin, server)  # type: ignore[arg-type]
        nomination_extensions_pb2_grpc.add_NominationExtensionsServiceServicer_to_server(self.plugin, server)  # type: ignore[arg-type]
        self.world.network.serve(SERVICE, server)

    def serve_preemption(self) -> None:
        server = in_process_server()
        preemption_pb2_grpc.add_PreemptionServiceServicer_to_server(self.preemption, server)  # type: ignore[arg-type]
        self.world.network.serve("preemption", server)

    async def start_framework(self) -> None:
        def remember(settings: FrameworkSettings, env: Any) -> Framework:
            self.framework = build(settings, env)
            return self.framework

        await self.world.start("framework", remember, self.settings)

    @property
    def running(self) -> Framework:
        assert self.framework is not None
        return self.framework

    async def create(self, *values: objects.Pod | objects.Node) -> None:
        for value in values:
            await self.world.apply(manifest(value))

    async def condition(self, name: str) -> tuple[str, str]:
        """Reason and message of a pod's PodScheduled condition."""
        pod = await self.world.pod(name)
        found = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        return (found.reason, found.message) if found is not None else ("", "")

    async def node_of(self, name: str) -> str:
        return (await self.world.pod(name)).spec.node_name

    def metric(self, name: str, **labels: str) -> float:
        return self.running.core.env.metrics.get_sample_value(name, labels) or 0.0
