"""Sandboxes, cycles and forks: what-ifs over a frozen state, which leave nothing behind.

A sandbox sees the state as it was when it was opened. Whatever is reserved or nominated in it is only there, and ends
with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType

from earmark.client.calls import Caller
from earmark.client.errors import PreconditionFailed, ServiceUnavailable, TimedOut
from earmark.client.pods import PodLike, pod_input, pod_reference
from earmark.client.rpcs import NominationExtensionsRpcs, SchedulerPluginRpcs
from earmark.v1 import common_pb2, nomination_extensions_pb2, scheduler_plugin_pb2

# A sandbox is gone after 60 s of silence.
KEEP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the filter says of one node."""

    node: str
    code: common_pb2.StatusCode.ValueType
    reasons: tuple[str, ...] = ()
    with_nominated: bool = False
    """It is the status of pass 1, in which nominated pods are added."""

    @property
    def fits(self) -> bool:
        """Whether the pod can get its devices there."""
        return self.code == common_pb2.STATUS_CODE_SUCCESS

    def __str__(self) -> str:
        if self.fits:
            return f"{self.node}: fits"
        name = common_pb2.StatusCode.Name(self.code).removeprefix("STATUS_CODE_")
        return f"{self.node}: {name}: {'; '.join(self.reasons)}"


class Sandbox:
    """An async context manager: entering opens a sandbox session and keeps it alive, leaving closes it."""

    def __init__(self, caller: Caller) -> None:
        self.plugin = SchedulerPluginRpcs(caller)
        self.nominations = NominationExtensionsRpcs(caller)
        self._session: common_pb2.SessionReference | None = None
        self._generation = 0
        self._keeper: asyncio.Task[None] | None = None
        self._lost: PreconditionFailed | None = None

    async def __aenter__(self) -> Sandbox:
        """Open. Raises CallFailed."""
        answer = await self.plugin.open_session(kind=scheduler_plugin_pb2.SESSION_KIND_SANDBOX)
        self._session = answer.session
        self._generation = answer.highest_generation
        self._keeper = asyncio.create_task(self._keep(), name="keep sandbox")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._keeper
        if self._lost is not None or self._session is None:
            return
        # Who is gone has no sandboxes any more.
        with contextlib.suppress(ServiceUnavailable, TimedOut):
            await self.plugin.close_session(session=self._session)

    @property
    def session(self) -> common_pb2.SessionReference:
        """The session. Raises PreconditionFailed where it was lost, for example by a restart of the service."""
        if self._lost is not None:
            raise self._lost
        if self._session is None:
            raise RuntimeError("the sandbox is not open: use it with `async with`")
        return self._session

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            try:
                await self.plugin.keep_session(session=self.session)
            except (ServiceUnavailable, TimedOut):
                # The next turn shows whether it is a matter of moments.
                continue
            except PreconditionFailed as error:
                self._lost = error
                return

    @property
    def newest_generation(self) -> int:
        """The highest generation that has been given or seen here."""
        return self._generation

    def next_generation(self) -> int:
        """Return a generation that no nomination of this sandbox has."""
        self._generation += 1
        return self._generation

    def cycle(self, pod: PodLike, *, nominated_node_name: str = "") -> Cycle:
        """Return a scheduling cycle of a pod, to be entered with `async with`."""
        return Cycle(self, pod_input(pod), nominated_node_name)

    async def pod_eligible_to_preempt(
        self, pod: PodLike, node_name: str
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        """Return whether a pod that is nominated to a node may preempt again, and why not."""
        return await self.nominations.pod_eligible_to_preempt(
            session=self.session, pod=pod_reference(pod), node_name=node_name
        )

    async def remove_nominated_pod(
        self,
        pod: PodLike,
        reason: nomination_extensions_pb2.RemoveReason.ValueType = nomination_extensions_pb2.REMOVE_REASON_CLEARED,
        *,
        generation: int = 0,
        victims_not_deleted: Iterable[str] = (),
    ) -> None:
        """Remove a pod's nomination; `generation` 0 takes the newest that this sandbox can know."""
        await self.nominations.remove_nominated_pod(
            session=self.session,
            pod=pod_reference(pod),
            generation=generation or self.newest_generation,
            reason=reason,
            victims_not_deleted=victims_not_deleted,
        )

    async def held(self) -> nomination_extensions_pb2.ListNominationsResponse:
        """Return what is held in this sandbox."""
        return await self.nominations.list_nominations(session=self.session)


class Cycle:
    """A scheduling cycle. An async context manager: entering is PreFilter, leaving is EndCycle."""

    def __init__(self, sandbox: Sandbox, pod: common_pb2.PodInput, nominated_node_name: str = "") -> None:
        self.sandbox = sandbox
        self.pod = pod
        self.id = ""
        self.revision = 0
        """The revision of the plugin's state that the cycle sees."""
        self.status = common_pb2.Status()
        """What PreFilter said."""
        self.outcome: scheduler_plugin_pb2.CycleOutcome.ValueType = (
            scheduler_plugin_pb2.CYCLE_OUTCOME_REJECTED_BY_OTHERS
        )
        """What EndCycle says of the attempt."""
        self._nominated_node_name = nominated_node_name

    async def __aenter__(self) -> Cycle:
        answer = await self.sandbox.plugin.pre_filter(
            session=self.sandbox.session, pod=self.pod, nominated_node_name=self._nominated_node_name
        )
        self.id, self.revision, self.status = answer.cycle_id, answer.revision, answer.status
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Without the service or the session the cycle is gone as well.
        with contextlib.suppress(ServiceUnavailable, TimedOut, PreconditionFailed):
            await self.sandbox.plugin.end_cycle(
                session=self.sandbox.session, pod=self.pod.pod, cycle_id=self.id, outcome=self.outcome
            )

    async def filter(self, nodes: Sequence[str], *, nominated: Iterable[PodLike] = ()) -> tuple[Verdict, ...]:
        """Run both filter passes; `nominated` are the pods that pass 1 adds on every node."""
        uids = [pod_reference(pod).uid for pod in nominated]
        queries = [common_pb2.NodeQuery(node=index, nominated=range(len(uids))) for index in range(len(nodes))]
        answer = await self.sandbox.plugin.filter(
            session=self.sandbox.session, cycle_id=self.id, nodes=nodes, pod_uids=uids, queries=queries
        )
        return verdicts(nodes, answer.verdicts)

    def fork(self, node_name: str) -> Fork:
        """Return the fork of one node, to be entered with `async with`."""
        return Fork(self, node_name)

    async def reserve(self, node_name: str) -> scheduler_plugin_pb2.ReserveResponse:
        """Take the node's result in flight, in this sandbox."""
        return await self.sandbox.plugin.reserve(
            session=self.sandbox.session, cycle_id=self.id, node_name=node_name
        )  # fmt: skip

    async def add_nominated_pod(
        self, node_name: str, victims: Iterable[PodLike], *, generation: int = 0, nominated: Iterable[PodLike] = ()
    ) -> nomination_extensions_pb2.AddNominatedPodResponse:
        """Propose the cycle's pod for a node whose victims have to go; the answer has the status and the record.

        Without a `generation` the sandbox takes the next one. Leaving the cycle drops a proposal that was not
        confirmed. `nominated`: other pods that are nominated there with at least this priority.
        """
        return await self.sandbox.nominations.add_nominated_pod(
            session=self.sandbox.session,
            cycle_id=self.id,
            pod=self.pod.pod,
            node_name=node_name,
            victims=[pod_reference(victim) for victim in victims],
            generation=generation or self.sandbox.next_generation(),
            nominated_pod_uids=[pod_reference(pod).uid for pod in nominated],
            priority=self.pod.priority,
        )

    async def confirm_nominated_pod(self, generation: int = 0) -> None:
        """Confirm a proposal, by default the newest, so that it outlives the cycle."""
        await self.sandbox.nominations.confirm_nominated_pod(
            session=self.sandbox.session, pod=self.pod.pod, generation=generation or self.sandbox.newest_generation
        )


class Fork:
    """One node with pods taken away or nominated pods added.

    An async context manager: leaving takes everything back, in the reverse order.
    """

    def __init__(self, cycle: Cycle, node_name: str) -> None:
        self.cycle = cycle
        self.node_name = node_name
        self._done: list[tuple[bool, common_pb2.PodReference]] = []

    async def __aenter__(self) -> Fork:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with contextlib.suppress(ServiceUnavailable, TimedOut, PreconditionFailed):
            for added, pod in reversed(self._done):
                await (self._remove(pod) if added else self._add(pod))
        self._done.clear()

    async def add_pod(self, pod: PodLike) -> None:
        """Take RemovePod back, or apply what is held for a nominated pod."""
        await self._add(pod_reference(pod))
        self._done.append((True, pod_reference(pod)))

    async def remove_pod(self, pod: PodLike) -> None:
        """Release what only this pod, and pods that were removed before, hold."""
        await self._remove(pod_reference(pod))
        self._done.append((False, pod_reference(pod)))

    async def filter(self) -> Verdict:
        """Run both filter passes on the fork as it is now."""
        answer = await self.cycle.sandbox.plugin.filter_forks(
            session=self.cycle.sandbox.session,
            cycle_id=self.cycle.id,
            nodes=[self.node_name],
            queries=[common_pb2.NodeQuery(node=0)],
        )
        return verdicts([self.node_name], answer.verdicts)[0]

    async def _add(self, pod: common_pb2.PodReference) -> None:
        cycle = self.cycle
        await cycle.sandbox.plugin.add_pod(
            session=cycle.sandbox.session, cycle_id=cycle.id, node_name=self.node_name, pod=pod
        )

    async def _remove(self, pod: common_pb2.PodReference) -> None:
        cycle = self.cycle
        await cycle.sandbox.plugin.remove_pod(
            session=cycle.sandbox.session, cycle_id=cycle.id, node_name=self.node_name, pod=pod
        )


def verdicts(nodes: Sequence[str], answer: common_pb2.NodeVerdicts) -> tuple[Verdict, ...]:
    """Return NodeVerdicts, one for each node, with their statuses looked up."""
    found = []
    for position, (node, index) in enumerate(zip(nodes, answer.verdicts, strict=True)):
        status = answer.statuses[index]
        code = status.code or common_pb2.STATUS_CODE_SUCCESS
        found.append(Verdict(node, code, tuple(status.reasons), bool(answer.with_nominated[position])))
    return tuple(found)
