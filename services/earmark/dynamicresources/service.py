"""The RPCs of SchedulerPluginService: messages in, core asked, messages out. What is decided is decided elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc

from earmark.dynamicresources import convert, handshake
from earmark.dynamicresources.hints import Hint
from earmark.dynamicresources.plugin import Context, Plugin, fail, valid
from earmark.dynamicresources.podinputs import PodInputs
from earmark.dynamicresources.reserving import read_text, write_text
from earmark.dynamicresources.sessions import StaleEpoch
from earmark.dynamicresources.statuses import SUCCESS
from earmark.dynamicresources.wakeups import WakeUp
from earmark.v1 import common_pb2, scheduler_plugin_pb2, scheduler_plugin_pb2_grpc

# Values of the contract's enums, with their names as people say them.
_KINDS: dict[int, str] = {
    scheduler_plugin_pb2.SESSION_KIND_SCHEDULER: "SCHEDULER",
    scheduler_plugin_pb2.SESSION_KIND_SANDBOX: "SANDBOX",
}
_OUTCOMES: dict[int, str] = {
    number: key.removeprefix("CYCLE_OUTCOME_") for key, number in scheduler_plugin_pb2.CycleOutcome.items()
}

_VERDICTS = {
    Hint.SKIP: scheduler_plugin_pb2.SLEEP_VERDICT_SLEEP,
    Hint.QUEUE: scheduler_plugin_pb2.SLEEP_VERDICT_QUEUE,
    Hint.ACTIVATE: scheduler_plugin_pb2.SLEEP_VERDICT_ACTIVATE,
}


class SchedulerPluginServicer(scheduler_plugin_pb2_grpc.SchedulerPluginServiceServicer):
    """SchedulerPluginService."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._pods = PodInputs(plugin)
        self._streams = 0

    # --- sessions ----------------------------------------------------------------------------------------------------

    async def Describe(
        self, request: scheduler_plugin_pb2.DescribeRequest, context: Context
    ) -> scheduler_plugin_pb2.DescribeResponse:
        """Say what the plugin is, with its gates and extension points."""
        return handshake.description(self._plugin.settings, self._plugin.instance_id)

    async def OpenSession(
        self, request: scheduler_plugin_pb2.OpenSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.OpenSessionResponse:
        """Begin the scheduler's session, with its complete nominator, or a sandbox."""
        plugin = self._plugin
        await valid(context, lambda: convert.one_of(request.kind, _KINDS, "kind"))
        difference = handshake.mismatch(request, plugin.settings)
        if difference:
            await fail(context, grpc.StatusCode.FAILED_PRECONDITION, difference)
        if not plugin.caches.synced:
            await fail(context, grpc.StatusCode.UNAVAILABLE, "caches have not synced yet")
        held: tuple[str, ...] = ()
        if request.kind == scheduler_plugin_pb2.SESSION_KIND_SCHEDULER:
            await valid(context, lambda: convert.at_least(request.epoch, 0, "epoch"))
            known = await valid(context, lambda: handshake.known_nominations(request, plugin.settings))
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

    async def KeepSession(
        self, request: scheduler_plugin_pb2.KeepSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.KeepSessionResponse:
        """Keep a sandbox from ending by silence."""
        await self._plugin.session(request.session, context)
        return scheduler_plugin_pb2.KeepSessionResponse()

    async def CloseSession(
        self, request: scheduler_plugin_pb2.CloseSessionRequest, context: Context
    ) -> scheduler_plugin_pb2.CloseSessionResponse:
        """End a session with all that is in it. Idempotent."""
        self._plugin.sessions.close(await valid(context, lambda: convert.name(request.session.id, "session.id")))
        return scheduler_plugin_pb2.CloseSessionResponse()

    # --- queue -------------------------------------------------------------------------------------------------------

    async def PreEnqueue(
        self, request: scheduler_plugin_pb2.PreEnqueueRequest, context: Context
    ) -> scheduler_plugin_pb2.PreEnqueueResponse:
        """Say for each pod whether it may enter the active queue; one that may not sleeps."""
        session = await self._plugin.session(request.session, context)
        # All are looked at before the first of them may fall asleep: nothing of a bad request is done.
        for position, item in enumerate(request.pods):
            await self._pods.check(session, item, f"pods[{position}]", context)
        statuses = []
        # One wait for all of them: pods that the cache lacks are told of together.
        deadline = self._plugin.clock.monotonic() + self._plugin.settings.state_wait_seconds
        for position, item in enumerate(request.pods):
            left = max(0.0, deadline - self._plugin.clock.monotonic())
            try:
                pod = await self._pods.find(session, item, f"pods[{position}]", left)
            except convert.InvalidField as reason:
                await fail(context, grpc.StatusCode.INVALID_ARGUMENT, str(reason))
            status = session.core.pre_enqueue(pod, convert.pod_ref(item.pod))
            statuses.append(convert.status_message(status))
        return scheduler_plugin_pb2.PreEnqueueResponse(statuses=statuses)

    # --- cycle -------------------------------------------------------------------------------------------------------

    async def PreFilter(
        self, request: scheduler_plugin_pb2.PreFilterRequest, context: Context
    ) -> scheduler_plugin_pb2.PreFilterResponse:
        """Open a cycle at the present revision, once the caches have seen what the framework has."""
        plugin = self._plugin
        session = await plugin.session(request.session, context)
        pods = await valid(
            context, lambda: convert.resource_version(request.pods_resource_version, "pods_resource_version")
        )
        nodes = await valid(
            context, lambda: convert.resource_version(request.nodes_resource_version, "nodes_resource_version")
        )
        await self._pods.check(session, request.pod, "pod", context)
        not_seen = cleaning = False
        if session.scheduler:
            wait = plugin.settings.state_wait_seconds
            not_seen = not await plugin.caches.wait_seen(pods, nodes, "", 0, wait)
            cleaning = plugin.binder.cleaning(request.pod.pod.uid)
        try:
            pod = await self._pods.find(session, request.pod, "pod", plugin.settings.state_wait_seconds)
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
        """Add a pod to one node's fork: the opposite of RemovePod."""
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        session.core.add_pod(cycle, node, pod.uid)
        return scheduler_plugin_pb2.AddPodResponse(status=convert.status_message(SUCCESS))

    async def RemovePod(
        self, request: scheduler_plugin_pb2.RemovePodRequest, context: Context
    ) -> scheduler_plugin_pb2.RemovePodResponse:
        """Take a pod away from one node's fork: the opposite of AddPod."""
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        pod = await valid(context, lambda: convert.pod_ref(request.pod))
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        session.core.remove_pod(cycle, node, pod.uid)
        return scheduler_plugin_pb2.RemovePodResponse(status=convert.status_message(SUCCESS))

    async def Filter(
        self, request: scheduler_plugin_pb2.FilterRequest, context: Context
    ) -> scheduler_plugin_pb2.FilterResponse:
        """Run both passes on many nodes and keep the results for Score and Reserve."""
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
        """Run both passes on forks of many nodes and keep nothing: one round of a dry run."""
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
        """Deallocate one of the pod's own claims that cannot be used, if there is one."""
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        status = await self._plugin.post_filter.run(cycle, session.core, write=session.scheduler)
        return scheduler_plugin_pb2.PostFilterResponse(status=convert.status_message(status))

    async def Score(
        self, request: scheduler_plugin_pb2.ScoreRequest, context: Context
    ) -> scheduler_plugin_pb2.ScoreResponse:
        """Rank nodes that passed Filter."""
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
        """Take the node's results in flight, after a look at the live ledger."""
        session = await self._plugin.session(request.session, context)
        cycle = await self._plugin.cycle(session, request.cycle_id, context)
        node = await valid(context, lambda: convert.name(request.node_name, "node_name"))
        answer = session.core.reserve(cycle, node)
        text = write_text(answer.reservation) if answer.reservation is not None else ""
        return scheduler_plugin_pb2.ReserveResponse(status=convert.status_message(answer.status), reservation=text)

    async def Unreserve(
        self, request: scheduler_plugin_pb2.UnreserveRequest, context: Context
    ) -> scheduler_plugin_pb2.UnreserveResponse:
        """Undo Reserve and, as far as it got, PreBind. Idempotent."""
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
        """Write allocations and reservations, and wait for binding conditions."""
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
        """Close a cycle and say whether the pod sleeps. Idempotent."""
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
        """Send what was missed since a number, then each wake-up as it comes."""
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
