"""Translates the RPCs of NodesService."""

from __future__ import annotations

from typing import Any

import grpc

from earmark.kube.api import ApiError, ApiUnavailable, PatchType
from earmark.kube.objects import Condition, Node, ResourceClaim
from earmark.nodes.attach import DEFAULT_REASON, STATUSES, attach_patch
from earmark.nodes.kubelets import Kubelets
from earmark.runtime.component import Environment
from earmark.runtime.retry import retrying
from earmark.v1 import nodes_pb2, nodes_pb2_grpc

# A delay beyond a day is a slip of the pen.
LONGEST_DELAY_SECONDS = 86_400


class NodesService(nodes_pb2_grpc.NodesServiceServicer):
    """GetNodesStatus, Hold, Release, Attach and SetStartupDelay."""

    def __init__(self, kubelets: Kubelets, env: Environment) -> None:
        self._kubelets = kubelets
        self._env = env

    async def GetNodesStatus(
        self, request: nodes_pb2.GetNodesStatusRequest, context: Any
    ) -> nodes_pb2.GetNodesStatusResponse:
        """Say for each node what its pods are doing."""
        return nodes_pb2.GetNodesStatusResponse(
            nodes=[
                nodes_pb2.NodeState(
                    name=node.name,
                    held=node.held,
                    running=node.running,
                    starting=node.starting,
                    terminating=node.terminating,
                )
                for node in self._kubelets.counts()
            ]
        )

    async def Hold(self, request: nodes_pb2.HoldRequest, context: Any) -> nodes_pb2.HoldResponse:
        """Stop a node's kubelet. Idempotent."""
        await self._check_node(request.node_name, context)
        self._kubelets.hold(request.node_name)
        return nodes_pb2.HoldResponse()

    async def Release(self, request: nodes_pb2.ReleaseRequest, context: Any) -> nodes_pb2.ReleaseResponse:
        """Let a node's kubelet go on. Idempotent, also for a node that is gone."""
        if not request.node_name:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "node_name: want the name of a node")
        self._kubelets.release(request.node_name)
        return nodes_pb2.ReleaseResponse()

    async def Attach(self, request: nodes_pb2.AttachRequest, context: Any) -> nodes_pb2.AttachResponse:
        """Set a condition on all allocated devices of a claim."""
        for field in ("namespace", "claim", "condition"):
            if not getattr(request, field):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{field}: must not be empty")
        if request.status and request.status not in STATUSES:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"status: want one of {', '.join(STATUSES)}, got {request.status!r}"
            )
        condition = Condition(
            type=request.condition,
            status=request.status or "True",
            reason=request.reason or DEFAULT_REASON,
            message=request.message,
        )
        try:
            await retrying(
                lambda: self._attach(request.namespace, request.claim, condition),
                clock=self._env.clock,
                ids=self._env.ids,
            )
        except ValueError as error:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except ApiError as error:
            if error.not_found:
                text = f"claim: there is no claim {request.namespace}/{request.claim}"
                await context.abort(grpc.StatusCode.NOT_FOUND, text)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except ApiUnavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return nodes_pb2.AttachResponse()

    async def SetStartupDelay(
        self, request: nodes_pb2.SetStartupDelayRequest, context: Any
    ) -> nodes_pb2.SetStartupDelayResponse:
        """Change how long pods take to start, also for those that are starting."""
        if not request.HasField("startup"):
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "startup: want a duration")
        # Not by timedelta, which a number that is too large for it would break.
        seconds = request.startup.seconds + request.startup.nanos / 1e9
        if not 0 <= seconds <= LONGEST_DELAY_SECONDS:
            text = f"startup: want 0s to {LONGEST_DELAY_SECONDS}s, got {seconds:g}s"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        self._kubelets.set_startup_seconds(seconds)
        return nodes_pb2.SetStartupDelayResponse()

    async def _attach(self, namespace: str, name: str, condition: Condition) -> None:
        claim = await self._env.api.get(ResourceClaim, name, namespace)
        await self._env.api.patch(
            ResourceClaim,
            name,
            namespace,
            attach_patch(claim, condition, self._env.clock.now()),
            subresource="status",
            patch_type=PatchType.MERGE,
        )

    async def _check_node(self, name: str, context: Any) -> None:
        if not name:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "node_name: want the name of a node")
        try:
            await self._env.api.get(Node, name)
        except ApiError as error:
            if error.not_found:
                await context.abort(grpc.StatusCode.NOT_FOUND, f"node_name: there is no node {name!r}")
            raise
