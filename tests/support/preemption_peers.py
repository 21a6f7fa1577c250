"""Stand-ins for the framework and a plugin with NominationExtensions, which note what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from earmark.runtime.environment import in_process_server
from earmark.runtime.inprocess import InProcessNetwork
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nomination_extensions_pb2,
    nomination_extensions_pb2_grpc,
)

Fits = Callable[[str, frozenset[str]], bool]


class FakeFramework(framework_pb2_grpc.FrameworkServiceServicer):
    """Filters by `fits(node, removed pods)`; pods in `in_memory` are preempted without deletion."""

    def __init__(self) -> None:
        self.input = framework_pb2.PreemptionInput()
        self.fits: Fits = lambda node, removed: bool(removed)
        self.fits_on = ""
        self.in_memory: set[str] = set()
        self.preempt_seconds = 0.0
        self.rounds: list[framework_pb2.DryRunFilterRequest] = []
        self.cleared: list[tuple[str, int]] = []
        self.asked_to_preempt: list[str] = []
        self.closed: list[str] = []

    async def DryRunFilter(self, request: framework_pb2.DryRunFilterRequest, context: Any) -> Any:
        if request.cycle_id != self.input.cycle_id:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"no cycle {request.cycle_id}")
        self.rounds.append(request)
        verdicts = common_pb2.NodeVerdicts(
            statuses=[
                common_pb2.Status(code=common_pb2.STATUS_CODE_SUCCESS),
                common_pb2.Status(code=common_pb2.STATUS_CODE_UNSCHEDULABLE, reasons=["Insufficient cpu"]),
            ]
        )
        for query in request.queries:
            removed = frozenset(self.input.pods[index].pod.name for index in query.removed)
            verdicts.verdicts.append(0 if self.fits(self.input.nodes[query.node].name, removed) else 1)
            verdicts.with_nominated.append(False)
        return framework_pb2.DryRunFilterResponse(verdicts=verdicts)

    async def PreemptPod(self, request: framework_pb2.PreemptPodRequest, context: Any) -> Any:
        self.asked_to_preempt.append(request.pod.name)
        await asyncio.sleep(self.preempt_seconds)
        return framework_pb2.PreemptPodResponse(preempted=request.pod.name in self.in_memory)

    async def ClearNominations(self, request: framework_pb2.ClearNominationsRequest, context: Any) -> Any:
        self.cleared.append((request.node_name, request.below_priority))
        return framework_pb2.ClearNominationsResponse()

    async def OpenDryRun(self, request: framework_pb2.OpenDryRunRequest, context: Any) -> Any:
        return framework_pb2.OpenDryRunResponse(input=self.input, fits_on=self.fits_on)

    async def CloseDryRun(self, request: framework_pb2.CloseDryRunRequest, context: Any) -> Any:
        self.closed.append(request.cycle_id)
        return framework_pb2.CloseDryRunResponse()


class FakePlugin(nomination_extensions_pb2_grpc.NominationExtensionsServiceServicer):
    """Lets every pod preempt and accepts every nomination, unless told otherwise."""

    def __init__(self) -> None:
        self.objection = ""
        self.refusal: common_pb2.Status | None = None
        self.asked: list[nomination_extensions_pb2.PodEligibleToPreemptRequest] = []
        self.added: list[nomination_extensions_pb2.AddNominatedPodRequest] = []

    async def PodEligibleToPreempt(
        self, request: nomination_extensions_pb2.PodEligibleToPreemptRequest, context: Any
    ) -> Any:
        self.asked.append(request)
        return nomination_extensions_pb2.PodEligibleToPreemptResponse(
            eligible=not self.objection, reason=self.objection
        )

    async def AddNominatedPod(self, request: nomination_extensions_pb2.AddNominatedPodRequest, context: Any) -> Any:
        self.added.append(request)
        return nomination_extensions_pb2.AddNominatedPodResponse(status=self.refusal, record='{"held":[]}')


def serve(network: InProcessNetwork, framework: FakeFramework, plugin: FakePlugin) -> None:
    """Put both behind the names that the preemption service calls."""
    server = in_process_server()
    framework_pb2_grpc.add_FrameworkServiceServicer_to_server(framework, server)  # type: ignore[arg-type]
    network.serve("framework", server)
    server = in_process_server()
    nomination_extensions_pb2_grpc.add_NominationExtensionsServiceServicer_to_server(plugin, server)  # type: ignore[arg-type]
    network.serve("dynamicresources", server)


def preemption_input(
    *nodes: tuple[str, tuple[tuple[str, int], ...]], nominated: str = ""
) -> framework_pb2.PreemptionInput:
    """An input with nodes that are full of (name, priority) pods, for preemptor p of priority 100."""
    message = framework_pb2.PreemptionInput(
        cycle_id="cycle-1",
        preemptor=common_pb2.PodInput(
            pod=common_pb2.PodReference(namespace="default", name="p", uid="uid-p"), priority=100
        ),
        nominated_node_name=nominated,
        statuses=[
            common_pb2.Status(
                code=common_pb2.STATUS_CODE_UNSCHEDULABLE, reasons=["Insufficient cpu"], plugin="NodeResourcesFit"
            )
        ],
        plugin_cycles=[
            framework_pb2.PluginCycle(
                plugin="DynamicResources", session=common_pb2.SessionReference(id="s", epoch=3), cycle_id="dra-1"
            )
        ],
    )
    message.now.FromSeconds(1_767_225_600)
    for name, pods in nodes:
        indices = []
        for pod_name, priority in pods:
            indices.append(len(message.pods))
            reference = common_pb2.PodReference(namespace="default", name=pod_name, uid=f"uid-{pod_name}")
            message.pods.append(framework_pb2.CandidatePod(pod=reference, priority=priority))
        message.nodes.append(framework_pb2.CandidateNode(name=name, status=0, pods=indices))
    return message
