"""A scheduler, call by call: what the framework sends to a plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.settings import Settings
from earmark.v1 import common_pb2, nomination_extensions_pb2, scheduler_plugin_pb2
from earmark.v1.nomination_extensions_pb2_grpc import NominationExtensionsServiceStub
from earmark.v1.scheduler_plugin_pb2_grpc import SchedulerPluginServiceStub
from support.contract_stack import PLUGIN, Stack

SUCCESS = common_pb2.STATUS_CODE_SUCCESS
UNSCHEDULABLE = common_pb2.STATUS_CODE_UNSCHEDULABLE
REJECTED = scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN


class Scheduler:
    """One session with the plugin and the calls that it makes in it."""

    def __init__(self, stack: Stack, settings: Settings = PLUGIN) -> None:
        self.stack = stack
        self.settings = settings
        self.session = common_pb2.SessionReference()
        self.epoch = 0
        self.generation = 0
        self.plugin: Any = None
        self.nominations: Any = None

    @property
    def component(self) -> DynamicResources:
        """The service behind the RPCs."""
        component = self.stack.components["dynamicresources"]
        assert isinstance(component, DynamicResources)
        return component

    async def start(self) -> None:
        """Start the service (again) and open the scheduler's session."""
        await self.stack.start("dynamicresources", dynamicresources.build, self.settings)
        await self.stack.until(lambda: self.component.ready())
        channel = self.stack.channel("dynamicresources")
        await channel.channel_ready()
        self.plugin = SchedulerPluginServiceStub(channel)
        self.nominations = NominationExtensionsServiceStub(channel)
        await self.open()

    async def open(self, *known: common_pb2.Nomination) -> scheduler_plugin_pb2.OpenSessionResponse:
        """Open the scheduler's session with the next epoch."""
        self.epoch += 1
        answer = await self.plugin.OpenSession(self.handshake(nominations=known), timeout=5)
        self.session = answer.session
        return answer  # type: ignore[no-any-return]

    def handshake(self, **fields: Any) -> scheduler_plugin_pb2.OpenSessionRequest:
        """A handshake that is right, but for `fields`."""
        right = {
            "kind": scheduler_plugin_pb2.SESSION_KIND_SCHEDULER,
            "epoch": self.epoch,
            "protocol_version": "v1",
            "feature_gates": dict(self.settings.feature_gates),
        }
        return scheduler_plugin_pb2.OpenSessionRequest(**{**right, **fields})

    async def sandbox(self) -> Scheduler:
        """Another scheduler on the same service, in a sandbox of its own."""
        other = Scheduler(self.stack, self.settings)
        other.plugin, other.nominations = self.plugin, self.nominations
        request = scheduler_plugin_pb2.OpenSessionRequest(kind=scheduler_plugin_pb2.SESSION_KIND_SANDBOX)
        other.session = (await self.plugin.OpenSession(request, timeout=5)).session
        return other

    async def ref(self, name: str) -> common_pb2.PodReference:
        """A pod's reference."""
        pod = await self.stack.world.pod(name)
        return common_pb2.PodReference(namespace="default", name=name, uid=pod.metadata.uid)

    async def pod_input(self, name: str) -> common_pb2.PodInput:
        """A pod as the input of a cycle."""
        pod = await self.stack.world.pod(name)
        return common_pb2.PodInput(
            pod=await self.ref(name), priority=pod.priority, resource_version=pod.metadata.resource_version
        )

    async def pre_filter(self, name: str) -> str:
        """Open a cycle that PreFilter lets pass; returns its id."""
        request = scheduler_plugin_pb2.PreFilterRequest(session=self.session, pod=await self.pod_input(name))
        answer = await self.plugin.PreFilter(request, timeout=5)
        assert answer.status.code == SUCCESS, answer.status
        return str(answer.cycle_id)

    async def filter(self, cycle_id: str, node: str = "n1") -> int:
        """Filter one node; returns the status code."""
        request = scheduler_plugin_pb2.FilterRequest(
            session=self.session, cycle_id=cycle_id, nodes=[node], queries=[common_pb2.NodeQuery(node=0)]
        )
        verdicts = (await self.plugin.Filter(request, timeout=5)).verdicts
        return int(verdicts.statuses[verdicts.verdicts[0]].code)

    async def forks(
        self, cycle_id: str, removed: Sequence[str] = (), nominated: Sequence[str] = (), node: str = "n1"
    ) -> common_pb2.NodeVerdicts:
        """FilterForks of one node, pods by UID."""
        uids = [*removed, *nominated]
        query = common_pb2.NodeQuery(
            node=0, removed=range(len(removed)), nominated=range(len(removed), len(removed) + len(nominated))
        )
        request = scheduler_plugin_pb2.FilterForksRequest(
            session=self.session, cycle_id=cycle_id, nodes=[node], pod_uids=uids, queries=[query]
        )
        return (await self.plugin.FilterForks(request, timeout=5)).verdicts  # type: ignore[no-any-return]

    async def reserve(self, name: str, node: str = "n1") -> tuple[str, str]:
        """PreFilter, Filter and Reserve, all of which succeed; returns cycle and reservation."""
        cycle_id = await self.pre_filter(name)
        assert await self.filter(cycle_id, node) == SUCCESS
        request = scheduler_plugin_pb2.ReserveRequest(session=self.session, cycle_id=cycle_id, node_name=node)
        answer = await self.plugin.Reserve(request, timeout=5)
        assert answer.status.code == SUCCESS, answer.status
        return cycle_id, answer.reservation

    async def end(self, name: str, cycle_id: str, outcome: Any) -> int:
        """EndCycle; returns the verdict."""
        request = scheduler_plugin_pb2.EndCycleRequest(
            session=self.session, pod=await self.ref(name), cycle_id=cycle_id, outcome=outcome
        )
        return int((await self.plugin.EndCycle(request, timeout=5)).verdict)

    async def place(self, name: str, node: str = "n1") -> None:
        """Schedule and bind a pod, and wait until the plugin has seen it."""
        cycle_id, _ = await self.reserve(name, node)
        request = scheduler_plugin_pb2.PreBindRequest(session=self.session, cycle_id=cycle_id, node_name=node)
        assert (await self.plugin.PreBind(request, timeout=10)).status.code == SUCCESS
        pod = await self.stack.world.pod(name)
        await self.stack.world.api.bind("default", name, pod.metadata.uid, node)
        await self.end(name, cycle_id, scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND)

        def seen() -> bool:
            known = self.component.core.world.pods.get(pod.metadata.uid)
            return known is not None and known.node_name == node

        await self.stack.until(seen)

    async def sleeps(self, name: str) -> None:
        """A cycle in which the plugin rejects the pod, which then sleeps."""
        cycle_id = await self.pre_filter(name)
        assert await self.filter(cycle_id) == UNSCHEDULABLE
        assert await self.end(name, cycle_id, REJECTED) == scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP

    async def nominate(self, name: str, *victims: str, confirm: bool = True) -> common_pb2.Nomination:
        """A cycle that ends with a nomination on n1."""
        cycle_id = await self.pre_filter(name)
        assert await self.filter(cycle_id) == UNSCHEDULABLE
        self.generation += 1
        references = [await self.ref(victim) for victim in victims]
        request = nomination_extensions_pb2.AddNominatedPodRequest(
            session=self.session,
            cycle_id=cycle_id,
            pod=await self.ref(name),
            node_name="n1",
            victims=references,
            generation=self.generation,
            priority=100,
        )
        answer = await self.nominations.AddNominatedPod(request, timeout=5)
        assert answer.status.code == SUCCESS, answer.status
        if confirm:
            await self.nominations.ConfirmNominatedPod(
                nomination_extensions_pb2.ConfirmNominatedPodRequest(
                    session=self.session, pod=request.pod, generation=self.generation
                ),
                timeout=5,
            )
            await self.end(name, cycle_id, REJECTED)
        return common_pb2.Nomination(
            pod=request.pod,
            node_name="n1",
            generation=self.generation,
            priority=100,
            victims=references,
            records={"DynamicResources": answer.record},
        )

    async def listed(self) -> nomination_extensions_pb2.ListNominationsResponse:
        """What is held, as this session sees it."""
        request = nomination_extensions_pb2.ListNominationsRequest(session=self.session)
        return await self.nominations.ListNominations(request, timeout=5)  # type: ignore[no-any-return]
