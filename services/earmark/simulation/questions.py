"""What the simulation asks of services and tells them, over their own RPCs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from earmark.simulation.cluster import display
from earmark.simulation.fleet import CALL_TIMEOUT, Fleet
from earmark.simulation.report import SettlementRecord
from earmark.simulation.stage import StepRefused
from earmark.simulation.verdict import HeldCapacity
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nodes_pb2,
    nodes_pb2_grpc,
    nomination_extensions_pb2,
    nomination_extensions_pb2_grpc,
    preemption_pb2,
    preemption_pb2_grpc,
    settlement_pb2,
    settlement_pb2_grpc,
)

FRAMEWORK = "framework"
NODES = "nodes"
PREEMPTION = "preemption"
PLUGIN = "dynamicresources"


class Questions:
    """The simulation's own stubs."""

    def __init__(self, fleet: Fleet, epoch: float) -> None:
        """Ask the services of `fleet`; `epoch` is the POSIX time at which the run began."""
        self._fleet = fleet
        self._epoch = epoch
        self._held: dict[str, None] = {}

    # --- nodes -------------------------------------------------------------------------------------------------------

    async def hold(self, node: str) -> None:
        """Stop a node's kubelet, now and in every nodes service that is started while it is held; or StepRefused."""
        if self._fleet.running(NODES) is not None:
            await self._hold(node)
        self._held[node] = None

    async def release(self, node: str) -> None:
        """Let a node's kubelet go on; raises StepRefused."""
        self._held.pop(node, None)
        if self._fleet.running(NODES) is None:
            return
        try:
            await self._nodes().Release(nodes_pb2.ReleaseRequest(node_name=node), timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from None

    async def hold_again(self) -> None:
        """Tell a nodes service that was just started which kubelets are held."""
        for node in self._held:
            # One that has been removed meanwhile has no kubelet to stop.
            with suppress(StepRefused):
                await self._hold(node)

    async def _hold(self, node: str) -> None:
        try:
            await self._nodes().Hold(nodes_pb2.HoldRequest(node_name=node), timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from None

    async def attach(self, request: nodes_pb2.AttachRequest) -> None:
        """Set a condition on a claim's devices; raises StepRefused."""
        try:
            await self._nodes().Attach(request, timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from None

    def _nodes(self) -> nodes_pb2_grpc.NodesServiceAsyncStub:
        return nodes_pb2_grpc.NodesServiceStub(self._fleet.channel(NODES))

    # --- framework ---------------------------------------------------------------------------------------------------

    async def why_pending(self, namespace: str, name: str) -> str:
        """Return what the framework says of a pod; "" if it says nothing."""
        stub = framework_pb2_grpc.FrameworkServiceStub(self._fleet.channel(FRAMEWORK))
        request = framework_pb2.ExplainPodRequest(pod=common_pb2.PodReference(namespace=namespace, name=name))
        try:
            return (await stub.ExplainPod(request, timeout=CALL_TIMEOUT)).message
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from None

    # --- preemption --------------------------------------------------------------------------------------------------

    async def dry_run(self, pod: common_pb2.PodInput) -> preemption_pb2.DryRunResponse:
        """Return who would have to go for a pod that is not there; raises StepRefused."""
        stub = preemption_pb2_grpc.PreemptionServiceStub(self._fleet.channel(PREEMPTION))
        try:
            return await stub.DryRun(preemption_pb2.DryRunRequest(pod=pod), timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            raise _refused(error) from None

    # --- dynamicresources --------------------------------------------------------------------------------------------

    async def nominations(self) -> tuple[HeldCapacity, ...] | None:
        """Return the live claim nominations; None if nobody can be asked."""
        if self._fleet.running(PLUGIN) is None:
            return None
        stub = nomination_extensions_pb2_grpc.NominationExtensionsServiceStub(self._fleet.channel(PLUGIN))
        request = nomination_extensions_pb2.ListNominationsRequest()
        try:
            answer = await stub.ListNominations(request, timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError:
            return None
        assigned = nomination_extensions_pb2.NOMINATION_PHASE_ASSIGNED
        return tuple(
            HeldCapacity(_name(held.pod), held.node_name, tuple(held.devices))
            for held in answer.nominations
            if held.phase != assigned
        )

    async def settlements(self) -> tuple[tuple[tuple[str, int], SettlementRecord], ...]:
        """Return the windows that the plugin remembers, by preemptor UID and generation; none if it is down."""
        if self._fleet.running(PLUGIN) is None:
            return ()
        stub = settlement_pb2_grpc.SettlementServiceStub(self._fleet.channel(PLUGIN))
        try:
            answer = await stub.ListSettlements(settlement_pb2.ListSettlementsRequest(), timeout=CALL_TIMEOUT)
        except grpc.aio.AioRpcError:
            return ()
        return tuple(((item.preemptor.uid, item.generation), self._record(item)) for item in answer.settlements)

    def _record(self, item: settlement_pb2.Settlement) -> SettlementRecord:
        return SettlementRecord(
            preemptor=_name(item.preemptor),
            node=item.node_name,
            victims=_names(victim.pod for victim in item.victims),
            claims=tuple(sorted(display(claim.namespace, claim.name) for claim in item.claims)),
            t0=self._moment(item, "t0"),
            t1=self._moment(item, "t1"),
            t3=self._moment(item, "t3"),
            t4=self._moment(item, "t4"),
        )

    def _moment(self, item: settlement_pb2.Settlement, field: str) -> float | None:
        if not item.HasField(field):  # type: ignore[arg-type]
            return None
        stamp: Timestamp = getattr(item, field)
        return stamp.ToNanoseconds() / 1e9 - self._epoch


def _refused(error: grpc.aio.AioRpcError) -> StepRefused:
    return StepRefused(error.details() or error.code().name)


def _name(pod: common_pb2.PodReference) -> str:
    return display(pod.namespace, pod.name)


def _names(pods: Iterable[common_pb2.PodReference]) -> tuple[str, ...]:
    return tuple(sorted(_name(pod) for pod in pods))
