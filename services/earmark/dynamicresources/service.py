"""The RPCs of the plugin: messages in, core asked, messages out. What is decided is decided elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import grpc
import msgspec

from earmark.dynamicresources import convert, record
from earmark.dynamicresources.binding import Binder
from earmark.dynamicresources.caches import Caches
from earmark.dynamicresources.core import Core, UnknownCycle
from earmark.dynamicresources.cycles import Cycle
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.hints import Hint
from earmark.dynamicresources.nominating import Known, Proposal, Removal
from earmark.dynamicresources.postfilter import PostFilter
from earmark.dynamicresources.reserving import read_text, write_text
from earmark.dynamicresources.sessions import Session, Sessions, StaleEpoch, UnknownSession
from earmark.dynamicresources.settings import DRA_PREEMPTION, Settings
from earmark.dynamicresources.settling import SettlementTracker
from earmark.dynamicresources.statuses import PLUGIN_NAME, SUCCESS
from earmark.dynamicresources.wakeups import WakeUp
from earmark.dynamicresources.whatif import MissingTemplate, wanted_templates, with_pod
from earmark.kube import objects
from earmark.kube.clock import Clock
from earmark.v1 import (
    common_pb2,
    nomination_extensions_pb2,
    scheduler_plugin_pb2,
    scheduler_plugin_pb2_grpc,
    settlement_pb2,
    settlement_pb2_grpc,
)
from earmark.v1 import nomination_extensions_pb2_grpc as nomination_grpc

R = TypeVar("R")

PROTOCOL_VERSION = "v1"
# Cluster events that the framework handles for this plugin (upstream B4.1); all others come as wake-ups.
REQUEUE_EVENTS = ("Node/Add", "Node/UpdateNodeLabel", "Node/UpdateNodeAllocatable")

Context = grpc.aio.ServicerContext[Any, Any]

# Values of the contract's enums, with their names as people say them.
_KINDS: dict[int, str] = {
    scheduler_plugin_pb2.SESSION_KIND_SCHEDULER: "SCHEDULER",
    scheduler_plugin_pb2.SESSION_KIND_SANDBOX: "SANDBOX",
}
_OUTCOMES: dict[int, str] = {
    number: key.removeprefix("CYCLE_OUTCOME_") for key, number in scheduler_plugin_pb2.CycleOutcome.items()
}
_REASONS: dict[int, str] = {
    number: key.removeprefix("REMOVE_REASON_") for key, number in nomination_extensions_pb2.RemoveReason.items()
}

_VERDICTS = {
    Hint.SKIP: scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP,
    Hint.QUEUE: scheduler_plugin_pb2.SLEEP_VERDICT_QUEUE,
    Hint.ACTIVATE: scheduler_plugin_pb2.SLEEP_VERDICT_ACTIVATE,
}


class Plugin:
    """What both servicers share: sessions, the scheduler's core and its way to the API."""

    def __init__(
        self,
        settings: Settings,
        core: Core,
        caches: Caches,
        binder: Binder,
        post_filter: PostFilter,
        sessions: Sessions,
        clock: Clock,
        new_core: Callable[[], Core],
        template: Callable[[str, str], Awaitable[objects.ResourceClaimTemplate | None]],
        instance_id: str,
    ) -> None:
        """`new_core` makes a sandbox's core over the present state; `template` finds one by namespace and name."""
        self.settings = settings
        self.core = core
        self.caches = caches
        self.binder = binder
        self.post_filter = post_filter
        self.sessions = sessions
        self.clock = clock
        self.new_core = new_core
        self.template = template
        self.instance_id = instance_id

    async def session(self, reference: common_pb2.SessionReference, context: Context) -> Session:
        """Return the session or end the call with FAILED_PRECONDITION."""
        try:
            return self.sessions.get(reference.id, reference.epoch)
        except (UnknownSession, StaleEpoch) as reason:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, f"session: {reason}")

    async def cycle(self, session: Session, cycle_id: str, context: Context) -> Cycle:
        """Return the cycle or end the call with FAILED_PRECONDITION."""
        try:
            return session.core.cycle(cycle_id)
        except UnknownCycle as reason:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, f"cycle_id: {reason}")

    def configuration(self) -> dict[str, str]:
        """Return the settings that scheduler and plugin must agree on."""
        return {"nominationPersistence": self.settings.nomination_persistence}


async def fail(context: Context, code: grpc.StatusCode, text: str) -> NoReturn:
    """End the call."""
    await context.abort(code, text)
    raise AssertionError("abort returned")


async def valid(context: Context, read: Callable[[], R]) -> R:
    """Return what `read` reads from the request, or end the call with INVALID_ARGUMENT naming the field."""
    try:
        return read()
    except convert.InvalidField as reason:
        await fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(reason))


class SchedulerPluginServicer(scheduler_plugin_pb2_grpc.SchedulerPluginServiceServicer):
    """SchedulerPluginService."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._streams = 0

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def Describe(
        self, request: scheduler_plugin_pb2.DescribeRequest, context: Context
    ) -> scheduler_plugin_pb2.DescribeResponse:
        settings = self._plugin.settings
        points = [
            scheduler_plugin_pb2.EXTENSION_POINT_PRE_ENQUEUE,
            scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER,
            scheduler_plugin_pb2.EXTENSION_POINT_FILTER,
            scheduler_plugin_pb2.EXTENSION_POINT_POST_FILTER,
            scheduler_plugin_pb2.EXTENSION_POINT_SCORE,
            scheduler_plugin_pb2.EXTENSION_POINT_RESERVE,
            scheduler_plugin_pb2.EXTENSION_POINT_PRE_BIND,
        ]
        if settings.preemption:
            # E2: without the gate the plugin is what it was.
            points.insert(2, scheduler_plugin_pb2.EXTENSION_POINT_PRE_FILTER_EXTENSIONS)
            points.append(scheduler_plugin_pb2.EXTENSION_POINT_NOMINATION)
        return scheduler_plugin_pb2.DescribeResponse(
            name=PLUGIN_NAME,
            protocol_version=PROTOCOL_VERSION,
            extension_points=points,
            requeue_events=REQUEUE_EVENTS,
            feature_gates=settings.effective_gates(),
            instance_id=self._plugin.instance_id,
            score_weight=settings.score_weight,
            configuration=self._plugin.configuration(),
        )

    async def OpenSession(
        self, request: scheduler_plugin_pb2.OpenSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.OpenSessionResponse:
        plugin = self._plugin
        await valid(context, lambda: convert.one_of(request.kind, _KINDS, "kind"))
        mismatch = self._mismatch(request)
        if mismatch:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, mismatch)
        if not plugin.caches.synced:
            await fail(context, grpc.StatusCode.UNAVAILABLE, "caches have not synced yet")
        held: tuple[str, ...] = ()
        if request.kind == scheduler_plugin_pb2.SESSION_KIND_SCHEDULER:
            await valid(context, lambda: convert.at_least(request.epoch, 0, "epoch"))
            known = await valid(context, lambda: self._known(request))
            try:
                session = plugin.sessions.open_scheduler(request.epoch, plugin.core)
            except StaleEpoch as reason:
                await fail(context, grpc.StatusCode.FAILED_PRECONDITION, f"epoch: {reason}")
            plugin.core.abandon_cycles()
            plugin.binder.abandon_all()
            held = plugin.core.reconcile(known)
        else:
            session = plugin.sessions.open_sandbox(plugin.new_core())
        return scheduler_plugin_pb2.OpenSessionResponse(
            session=common_pb2.SessionReference(id=session.id, epoch=session.epoch),
            highest_generation=plugin.core.world.nominations.highest_generation,
            held=held,
            instance_id=plugin.instance_id,
            last_wake_up=plugin.core.wake_ups.last_number,
        )

    def _mismatch(self, request: scheduler_plugin_pb2.OpenSessionRequest) -> str:
        plugin = self._plugin
        if request.protocol_version and request.protocol_version != PROTOCOL_VERSION:
            return (
                f"protocol_version: {request.protocol_version!r} of the caller, {PROTOCOL_VERSION!r} of {PLUGIN_NAME}"
            )
        if request.kind == scheduler_plugin_pb2.SESSION_KIND_SANDBOX:
            return ""
        gates = dict(request.feature_gates)
        gates.setdefault(DRA_PREEMPTION, False)
        mine = plugin.settings.effective_gates()
        for name in sorted(gates):
            if name in mine and gates[name] != mine[name]:
                return f"feature_gates[{name}]: {gates[name]} of the caller, {mine[name]} of {PLUGIN_NAME}"
        configuration = plugin.configuration()
        for name in sorted(request.configuration):
            if name in configuration and request.configuration[name] != configuration[name]:
                return (
                    f"configuration[{name}]: {request.configuration[name]!r} of the caller, "
                    f"{configuration[name]!r} of {PLUGIN_NAME}"
                )
        return ""

    def _known(self, request: scheduler_plugin_pb2.OpenSessionRequest) -> list[Known]:
        known = []
        for position, item in enumerate(request.nominations):
            field = f"nominations[{position}]"
            pod = convert.pod_ref(item.pod, f"{field}.pod")
            convert.name(item.node_name, f"{field}.node_name")
            convert.at_least(item.generation, 1, f"{field}.generation")
            victims = tuple(
                convert.pod_ref(victim, f"{field}.victims[{index}]") for index, victim in enumerate(item.victims)
            )
            text = item.records.get(PLUGIN_NAME, "")
            restored = None
            if text and self._plugin.settings.nomination_persistence == "api":
                restored = record.read(text, pod, item.node_name, item.generation, item.priority, victims)
            known.append(Known(pod, item.node_name, item.generation, restored))
        return known

    async def KeepSession(
        self, request: scheduler_plugin_pb2.KeepSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.KeepSessionResponse:
        await self._plugin.session(request.session, context)
        return scheduler_plugin_pb2.KeepSessionResponse()

    async def CloseSession(
        self, request: scheduler_plugin_pb2.CloseSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.CloseSessionResponse:
        self._plugin.sessions.close(await valid(context, lambda: convert.name(request.session.id, "session.id")))
        return scheduler_plugin_pb2.CloseSessionResponse()

    # --- queue -------------------------------------------------------------------------------------------------------

    async def PreEnqueue(
        self, request: scheduler_plugin_pb2.PreEnqueueRequest, context: Context
    ) -> scheduler_plugin_pb2.PreEnqueueResponse:
        session = await self._plugin.session(request.session, context)
        # All are looked at before the first of them may fall asleep: nothing of a bad request is done.
        for position, item in enumerate(request.pods):
            await self._check_pod(session, item, f"pods[{position}]", context)
        statuses = []
        # One wait for all of them: pods that the cache lacks are told of together.
        deadline = self._plugin.clock.monotonic() + self._plugin.settings.state_wait_seconds
        for position, item in enumerate(request.pods):
            left = max(0.0, deadline - self._plugin.clock.monotonic())
            try:
                pod = await self._pod(session, item, f"pods[{position}]", left)
            except convert.InvalidField as reason:
                await fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(reason))
            status = session.core.pre_enqueue(pod, convert.pod_ref(item.pod))
            statuses.append(convert.status_message(status))
        return scheduler_plugin_pb2.PreEnqueueResponse(statuses=statuses)

    async def _check_pod(self, session: Session, item: common_pb2.PodInput, field: str, context: Context) -> None:
        """End the call with INVALID_ARGUMENT where the pod of a request cannot be used."""

        def read() -> None:
            convert.pod_ref(item.pod, f"{field}.pod")
            convert.resource_version(item.resource_version, f"{field}.resource_version")
            if item.manifest and session.scheduler:
                raise convert.InvalidField(f"{field}.manifest: only sandbox sessions may bring a pod of their own")
            if item.manifest:
                _manifest(item, field)

        await valid(context, read)

    async def _pod(
        self, session: Session, item: common_pb2.PodInput, field: str, wait_seconds: float
    ) -> PodFacts | None:
        """Return the (checked) pod of a request, after a short wait where the cache has not seen it.

        None if it stays unknown.
        """
        plugin = self._plugin
        ref = convert.pod_ref(item.pod)
        if item.manifest:
            return await self._made_pod(session, _manifest(item, field), item, field)
        if session.scheduler:
            version = convert.resource_version(item.resource_version, field)
            await plugin.caches.wait_seen(0, 0, ref.uid, version, wait_seconds)
            if not plugin.caches.has_pod(ref.uid, version):
                return None
        return session.core.world.pods.get(ref.uid)

    async def _made_pod(self, session: Session, pod: objects.Pod, item: common_pb2.PodInput, field: str) -> PodFacts:
        """Make a sandbox's own pod and its claims in it. Raises InvalidField for a template that is missing."""
        known = session.core.world.pods.get(item.pod.uid)
        if known is not None:
            return known
        templates: dict[str, objects.ResourceClaimTemplate] = {}
        for name in wanted_templates(pod):
            template = await self._plugin.template(pod.metadata.namespace or "default", name)
            if template is not None:
                templates[name] = template
        try:
            world, facts = with_pod(session.core.world, pod, convert.pod_ref(item.pod), item.priority, templates)
        except MissingTemplate as reason:
            raise convert.InvalidField(f"{field}.manifest: {reason}") from reason
        session.core.commit((world, ()))
        return facts

    # --- cycle -------------------------------------------------------------------------------------------------------

    async def PreFilter(
        self, request: scheduler_plugin_pb2.PreFilterRequest, context: Context
    ) -> scheduler_plugin_pb2.PreFilterResponse:
        plugin = self._plugin
        session = await plugin.session(request.session, context)
        pods = await valid(
            context, lambda: convert.resource_version(request.pods_resource_version, "pods_resource_version")
        )
        nodes = await valid(
            context, lambda: convert.resource_version(request.nodes_resource_version, "nodes_resource_version")
        )
        await self._check_pod(session, request.pod, "pod", context)
        await self._check_pod(session, request.pod, "pod", context)
        not_seen = cleaning = False
        if session.scheduler:
            wait = plugin.settings.state_wait_seconds
            not_seen = not await plugin.caches.wait_seen(pods, nodes, "", 0, wait)
            cleaning = plugin.binder.cleaning(request.pod.pod.uid)
        try:
            pod = await self._pod(session, request.pod, "pod", plugin.settings.state_wait_seconds)
        except convert.InvalidField as reason:
            await fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(reason))
        if pod is None:
            not_seen = True
            pod = convert.unknown_pod(convert.pod_ref(request.pod.pod), request.pod.priority)
        cycle = session.core.pre_filter(pod, not_seen=not_seen, cleaning=cleaning)
        return scheduler_plugin_pb2.PreFilterResponse(
            status=convert.status_message(cycle.status), cycle_id=cycle.id, revision=cycle.world.revision
        )

    async def AddPod(
        self, request: scheduler_plugin_pb2.AddPodRequest, context: Context
    ) -> scheduler_plugin_pb2.AddPodResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        session.core.add_pod(cycle, node, pod.uid)
        return scheduler_plugin_pb2.AddPodResponse(status=convert.status_message(SUCCESS))

    async def RemovePod(
        self, request: scheduler_plugin_pb2.RemovePodRequest, context: Context
    ) -> scheduler_plugin_pb2.RemovePodResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        session.core.remove_pod(cycle, node, pod.uid)
        return scheduler_plugin_pb2.RemovePodResponse(status=convert.status_message(SUCCESS))

    async def Filter(
        self, request: scheduler_plugin_pb2.FilterRequest, context: Context
    ) -> scheduler_plugin_pb2.FilterResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        checks = await valid(
            context, lambda: convert.node_checks(request.nodes, request.pod_uids, request.queries, forks=False)
        )
        verdicts = session.core.filter(cycle, checks, self._plugin.clock.now())
        return scheduler_plugin_pb2.FilterResponse(verdicts=convert.verdicts_message(verdicts))

    async def FilterForks(
        self, request: scheduler_plugin_pb2.FilterForksRequest, context: Context
    ) -> scheduler_plugin_pb2.FilterForksResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        checks = await valid(
            context, lambda: convert.node_checks(request.nodes, request.pod_uids, request.queries, forks=True)
        )
        verdicts = session.core.filter_forks(cycle, checks, self._plugin.clock.now())
        return scheduler_plugin_pb2.FilterForksResponse(verdicts=convert.verdicts_message(verdicts))

    async def PostFilter(
        self, request: scheduler_plugin_pb2.PostFilterRequest, context: Context
    ) -> scheduler_plugin_pb2.PostFilterResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        status = await self._plugin.post_filter.run(cycle, session.core, write=session.scheduler)
        return scheduler_plugin_pb2.PostFilterResponse(status=convert.status_message(status))

    async def Score(
        self, request: scheduler_plugin_pb2.ScoreRequest, context: Context
    ) -> scheduler_plugin_pb2.ScoreResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        nodes = await valid(
            context, lambda: [convert.name(node, f"nodes[{index}]") for index, node in enumerate(request.nodes)]
        )
        scores = session.core.score(cycle, nodes)
        return scheduler_plugin_pb2.ScoreResponse(status=convert.status_message(SUCCESS), scores=scores)

    async def Reserve(
        self, request: scheduler_plugin_pb2.ReserveRequest, context: Context
    ) -> scheduler_plugin_pb2.ReserveResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        answer = session.core.reserve(cycle, node)
        text = write_text(answer.reservation) if answer.reservation is not None else ""
        return scheduler_plugin_pb2.ReserveResponse(status=convert.status_message(answer.status), reservation=text)

    async def Unreserve(
        self, request: scheduler_plugin_pb2.UnreserveRequest, context: Context
    ) -> scheduler_plugin_pb2.UnreserveResponse:
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        if session.scheduler:
            await self._plugin.binder.unreserve(pod, read_text(request.reservation), preempted=request.preempted)
        else:
            session.core.unreserve(pod.uid)
        return scheduler_plugin_pb2.UnreserveResponse()

    async def PreBind(
        self, request: scheduler_plugin_pb2.PreBindRequest, context: Context
    ) -> scheduler_plugin_pb2.PreBindResponse:
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        status = SUCCESS
        # A sandbox writes nothing: what it has reserved is as good as written to its own state.
        if session.scheduler:
            status = await self._plugin.binder.pre_bind(cycle, node)
        return scheduler_plugin_pb2.PreBindResponse(status=convert.status_message(status))

    async def EndCycle(
        self, request: scheduler_plugin_pb2.EndCycleRequest, context: Context
    ) -> scheduler_plugin_pb2.EndCycleResponse:
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        outcome = request.outcome
        await valid(context, lambda: convert.one_of(outcome, _OUTCOMES, "outcome"))
        bound_now = outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_BOUND
        verdict = session.core.end_cycle(
            pod,
            request.cycle_id,
            rejected=outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_PLUGIN,
            bound_now=bound_now,
            deleted=outcome == scheduler_plugin_pb2.CYCLE_OUTCOME_POD_DELETED,
        )
        if session.scheduler and bound_now:
            self._plugin.binder.forget(pod.uid)
        return scheduler_plugin_pb2.EndCycleResponse(verdict=_VERDICTS[verdict])

    # --- wake-ups ----------------------------------------------------------------------------------------------------

    async def WatchWakeUps(
        self, request: scheduler_plugin_pb2.WatchWakeUpsRequest, context: Context
    ) -> AsyncIterator[scheduler_plugin_pb2.WatchWakeUpsResponse]:
        session = await self._plugin.session(request.session, context)
        if not session.scheduler:
            await fail(context, grpc.StatusCode.INVALID_ARGUMENT, "session: a sandbox has no wake-ups")
        sleepers = await valid(
            context,
            lambda: [convert.pod_ref(pod, f"sleepers[{index}]") for index, pod in enumerate(request.sleepers)],
        )
        last_number = await valid(context, lambda: convert.at_least(request.last_number, 0, "last_number"))
        queue: asyncio.Queue[WakeUp] = asyncio.Queue()
        log = self._plugin.core.wake_ups
        for item in self._plugin.core.connect(last_number, sleepers):
            queue.put_nowait(item)
        log.listen(queue.put_nowait)
        self._streams += 1
        mine = self._streams
        try:
            while True:
                yield _wake_up_message(await queue.get())
        finally:
            if mine == self._streams:
                log.listen(None)


def _wake_up_message(item: WakeUp) -> scheduler_plugin_pb2.WatchWakeUpsResponse:
    return scheduler_plugin_pb2.WatchWakeUpsResponse(
        number=item.number,
        pods=[convert.pod_message(pod) for pod in item.pods],
        at_once=item.at_once,
        event=item.event,
        detail=item.detail,
    )


def _manifest(item: common_pb2.PodInput, field: str) -> objects.Pod:
    try:
        return msgspec.json.decode(item.manifest.encode(), type=objects.Pod)
    except (msgspec.DecodeError, msgspec.ValidationError) as reason:
        raise convert.InvalidField(f"{field}.manifest: {reason}") from reason


class NominationExtensionsServicer(nomination_grpc.NominationExtensionsServiceServicer):
    """NominationExtensionsService."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    async def AddNominatedPod(
        self, request: nomination_extensions_pb2.AddNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.AddNominatedPodResponse:
        plugin = self._plugin
        session = await plugin.session(request.session, context)
        cycle = await plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        if pod.uid != cycle.pod.uid:
            text = f"pod.uid: {pod.uid!r} is not the pod of the cycle, {cycle.pod.uid!r}"
            await fail(context, grpc.StatusCode.INVALID_ARGUMENT, text)
        victims = await valid(
            context,
            lambda: tuple(convert.pod_ref(item, f"victims[{index}]") for index, item in enumerate(request.victims)),
        )
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        generation = await valid(context, lambda: convert.at_least(request.generation, 1, "generation"))
        answer = session.core.add_nominated_pod(
            Proposal(
                pod=cycle.pod,
                priority=request.priority,
                node=node,
                victims=victims,
                generation=generation,
                nominated=tuple(request.nominated_pod_uids),
                at=plugin.clock.now(),
            )
        )
        text = ""
        if answer.nomination is not None and plugin.settings.nomination_persistence == "api":
            text = record.write(answer.nomination, answer.victim_claims)
        return nomination_extensions_pb2.AddNominatedPodResponse(
            status=convert.status_message(answer.status), record=text
        )

    async def ConfirmNominatedPod(
        self, request: nomination_extensions_pb2.ConfirmNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.ConfirmNominatedPodResponse:
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        generation = await valid(context, lambda: convert.at_least(request.generation, 1, "generation"))
        session.core.confirm_nominated_pod(pod.uid, generation)
        return nomination_extensions_pb2.ConfirmNominatedPodResponse()

    async def RemoveNominatedPod(
        self, request: nomination_extensions_pb2.RemoveNominatedPodRequest, context: Context
    ) -> nomination_extensions_pb2.RemoveNominatedPodResponse:
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        generation = await valid(context, lambda: convert.at_least(request.generation, 0, "generation"))
        await valid(context, lambda: convert.one_of(request.reason, _REASONS, "reason"))
        session.core.remove_nominated_pod(pod.uid, generation, Removal(request.reason), request.victims_not_deleted)
        return nomination_extensions_pb2.RemoveNominatedPodResponse()

    async def PodEligibleToPreempt(
        self, request: nomination_extensions_pb2.PodEligibleToPreemptRequest, context: Context
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        session = await self._plugin.session(request.session, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        eligible, reason = session.core.eligible_to_preempt(pod.uid, request.node_name)
        return nomination_extensions_pb2.PodEligibleToPreemptResponse(eligible=eligible, reason=reason)

    async def ListNominations(
        self, request: nomination_extensions_pb2.ListNominationsRequest, context: Context
    ) -> nomination_extensions_pb2.ListNominationsResponse:
        core = self._plugin.core
        if request.session.id:
            core = (await self._plugin.session(request.session, context)).core
        return nomination_extensions_pb2.ListNominationsResponse(
            nominations=[convert.held_message(item) for item in core.nominations()],
            victim_claims=[convert.victim_claim_message(item) for item in core.world.victim_claims.all()],
        )


class SettlementServicer(settlement_pb2_grpc.SettlementServiceServicer):
    """SettlementService."""

    def __init__(self, tracker: SettlementTracker) -> None:
        self._tracker = tracker

    async def ListSettlements(
        self, request: settlement_pb2.ListSettlementsRequest, context: Context
    ) -> settlement_pb2.ListSettlementsResponse:
        windows = [item for item in self._tracker.windows() if item.ended is None or not request.open_only]
        return settlement_pb2.ListSettlementsResponse(
            settlements=[convert.settlement_message(item) for item in windows]
        )

    async def WatchSettlements(
        self, request: settlement_pb2.WatchSettlementsRequest, context: Context
    ) -> AsyncIterator[settlement_pb2.WatchSettlementsResponse]:
        watch = self._tracker.watch()
        try:
            while True:
                window = await watch.get()
                yield settlement_pb2.WatchSettlementsResponse(settlement=convert.settlement_message(window))
        finally:
            self._tracker.unwatch(watch)
