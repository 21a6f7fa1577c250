"""The RPC of ExplanationService: what each node's devices lack for a pod, and which claims are awaited there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from earmark.dynamicresources import convert
from earmark.dynamicresources.claims import UnresolvedClaim, device_names
from earmark.dynamicresources.explaining import Explainer, Obstacle
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.plugin import Context, Plugin, not_found, valid
from earmark.dynamicresources.settlement import Window
from earmark.dynamicresources.settling import SettlementTracker
from earmark.dynamicresources.state import World
from earmark.dynamicresources.victimclaims import VictimClaim
from earmark.v1 import explanation_pb2, explanation_pb2_grpc

# A few milliseconds' worth.
_NODES_AT_ONCE = 20


class ExplanationServicer(explanation_pb2_grpc.ExplanationServiceServicer):
    """ExplanationService."""

    def __init__(self, plugin: Plugin, tracker: SettlementTracker) -> None:
        self._plugin = plugin
        self._tracker = tracker

    async def ExplainDevices(
        self, request: explanation_pb2.ExplainDevicesRequest, context: Context
    ) -> explanation_pb2.ExplainDevicesResponse:
        """Look at each device of each node, and change nothing."""
        ref = await valid(context, lambda: convert.pod_ref(request.pod))
        nodes = await valid(
            context, lambda: [convert.name(node, f"nodes[{index}]") for index, node in enumerate(request.nodes)]
        )
        world = self._plugin.core.world
        pod = world.pods.get(ref.uid)
        if pod is None:
            await not_found(context, f"pod.uid: no pod {ref.uid!r} is known")
        return await self._explain(world, pod, nodes or sorted(world.nodes))

    async def _explain(
        self, world: World, pod: PodFacts, nodes: Iterable[str]
    ) -> explanation_pb2.ExplainDevicesResponse:
        response = explanation_pb2.ExplainDevicesResponse()
        explainer: Explainer | None = None
        try:
            explainer = Explainer(world, pod, preemption=self._plugin.settings.preemption)
        except UnresolvedClaim as reason:
            response.problem = str(reason)
        if explainer is not None:
            for claim in explainer.claims:
                allocation = world.allocation_of(claim)
                response.claims.add(
                    namespace=claim.metadata.namespace,
                    name=claim.metadata.name,
                    devices=device_names(allocation) if allocation is not None else (),
                )
        for number, node in enumerate(nodes):
            if number % _NODES_AT_ONCE == _NODES_AT_ONCE - 1:
                # Scheduling goes on meanwhile; the state that is explained stays what it was.
                await asyncio.sleep(0)
            response.nodes.add(
                node_name=node,
                devices=[_obstacle(item) for item in explainer.node(node)] if explainer is not None else (),
                awaited=[self._awaited(world, item) for item in world.victim_claims.on(node)],
            )
        return response

    def _awaited(self, world: World, item: VictimClaim) -> explanation_pb2.AwaitedClaim:
        message = explanation_pb2.AwaitedClaim(namespace=item.key[0], name=item.key[1], uid=item.uid)
        claim = world.claim_by_uid(item.uid)
        allocation = world.allocation_of(claim) if claim is not None else None
        if allocation is not None:
            message.devices.extend(device_names(allocation))
        window = self._window(item)
        if window is None:
            return message
        message.preemptor.CopyFrom(convert.pod_message(window.preemptor))
        message.since.FromDatetime(window.t0)
        if window.t1 is not None:
            message.pods_gone.FromDatetime(window.t1)
        users = [victim.pod for victim in window.victims if victim.pod.uid in item.consumers]
        message.victims.extend(convert.pod_message(pod) for pod in users)
        return message

    def _window(self, item: VictimClaim) -> Window | None:
        """Return the window of the nomination that released the claim first."""
        keys = [(owner.preemptor_uid, owner.generation) for owner in item.owners]
        return next((window for window in self._tracker.windows() if window.key in keys), None)


def _obstacle(item: Obstacle) -> explanation_pb2.DeviceObstacle:
    return explanation_pb2.DeviceObstacle(
        request=item.request,
        device=item.device,
        kind=explanation_pb2.ObstacleKind.ValueType(int(item.kind)),
        detail=item.detail,
        claim=item.claim,
        pods=[convert.pod_message(pod) for pod in item.pods],
        priority=item.priority,
        stays=item.stays,
    )
