"""The calls to the framework and to plugins with NominationExtensions, in this service's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import grpc

from earmark.preemption import wire
from earmark.preemption.dryrun import Query
from earmark.preemption.settings import PluginSettings, PreemptionSettings
from earmark.preemption.values import Candidate, PluginCycle, PodId, Preemptor, Situation, Status
from earmark.runtime.component import Channels
from earmark.v1 import (
    common_pb2,
    framework_pb2,
    framework_pb2_grpc,
    nomination_extensions_pb2,
    nomination_extensions_pb2_grpc,
)

FRAMEWORK = "framework"


class PeerError(Exception):
    """A call to another service failed; the text names the service and says how.

    `code` and `details` are the other service's, where it has answered.
    """

    def __init__(self, text: str, code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, details: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.details = details or text

    @property
    def away(self) -> bool:
        """Whether the service was not there: the same call may succeed a little later."""
        return self.code is grpc.StatusCode.UNAVAILABLE


def _failure(peer: str, error: grpc.aio.AioRpcError) -> PeerError:
    return PeerError(f"{peer}: {error.code().name}: {error.details()}", error.code(), error.details() or "")


class Framework:
    """FrameworkService. Every method raises PeerError."""

    def __init__(self, channels: Channels, settings: PreemptionSettings) -> None:
        self._stub = framework_pb2_grpc.FrameworkServiceStub(channels.to(FRAMEWORK))
        self._settings = settings
        self._timeout = settings.call_timeout_seconds

    async def dry_run_filter(self, cycle_id: str, queries: Sequence[Query]) -> tuple[Status, ...]:
        """Ask one round's questions, in one call."""
        request = wire.filter_request(cycle_id, queries)
        try:
            response = await self._stub.DryRunFilter(request, timeout=self._settings.dry_run_timeout_seconds)
            return wire.verdicts_of(response.verdicts, len(queries))
        except grpc.aio.AioRpcError as error:
            raise _failure(FRAMEWORK, error) from error
        except wire.InvalidInput as error:
            raise PeerError(f"{FRAMEWORK}: DryRunFilter: {error}") from error

    async def preempt_pod(self, victim: PodId, preemptor: PodId) -> bool:
        """Take a pod out of Permit or PreBind; False if it has to be deleted."""
        request = framework_pb2.PreemptPodRequest(pod=wire.pod_message(victim), preemptor=wire.pod_message(preemptor))
        try:
            return (await self._stub.PreemptPod(request, timeout=self._timeout)).preempted
        except grpc.aio.AioRpcError as error:
            raise _failure(FRAMEWORK, error) from error

    async def clear_nominations(self, node_name: str, below_priority: int) -> None:
        """Clear nominations of lower priority on a node."""
        request = framework_pb2.ClearNominationsRequest(node_name=node_name, below_priority=below_priority)
        try:
            await self._stub.ClearNominations(request, timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            raise _failure(FRAMEWORK, error) from error

    async def open_dry_run(self, pod: common_pb2.PodInput) -> framework_pb2.OpenDryRunResponse:
        """Open a sandbox cycle for a pod that is not being scheduled."""
        request = framework_pb2.OpenDryRunRequest(pod=pod)
        try:
            return await self._stub.OpenDryRun(request, timeout=self._settings.dry_run_timeout_seconds)
        except grpc.aio.AioRpcError as error:
            raise _failure(FRAMEWORK, error) from error

    async def close_dry_run(self, cycle_id: str) -> None:
        """Close it again."""
        try:
            await self._stub.CloseDryRun(framework_pb2.CloseDryRunRequest(cycle_id=cycle_id), timeout=self._timeout)
        except grpc.aio.AioRpcError as error:
            raise _failure(FRAMEWORK, error) from error


class NominationPlugins:
    """The plugins of the settings, in their order, as far as the cycle has them. Methods raise PeerError."""

    def __init__(self, channels: Channels, settings: PreemptionSettings) -> None:
        self._plugins: tuple[PluginSettings, ...] = settings.nomination_plugins
        self._stubs = {
            plugin.name: nomination_extensions_pb2_grpc.NominationExtensionsServiceStub(channels.to(plugin.service))
            for plugin in settings.nomination_plugins
        }
        self._timeout = settings.call_timeout_seconds

    @property
    def names(self) -> tuple[str, ...]:
        """The plugins' names."""
        return tuple(plugin.name for plugin in self._plugins)

    async def why_not_eligible(self, situation: Situation) -> str | None:
        """Ask whether the pod may preempt again; return the first objection. KEP: Deferring."""
        preemptor = situation.preemptor
        for cycle in self._cycles(situation):
            request = nomination_extensions_pb2.PodEligibleToPreemptRequest(
                session=_session(cycle),
                pod=wire.pod_message(preemptor.pod),
                node_name=preemptor.nominated_node,
            )
            try:
                answer = await self._stubs[cycle.plugin].PodEligibleToPreempt(request, timeout=self._timeout)
            except grpc.aio.AioRpcError as error:
                raise _failure(cycle.plugin, error) from error
            if not answer.eligible:
                return answer.reason
        return None

    async def add_nominated_pod(
        self, situation: Situation, chosen: Candidate, generation: int
    ) -> tuple[Status | None, Mapping[str, str]]:
        """Tell the plugins of the winner, before anything is deleted. KEP: Claim nomination.

        Returns the first status that is not a success, or None with the plugins' records by name.
        """
        records: dict[str, str] = {}
        for cycle in self._cycles(situation):
            request = _nomination_request(cycle, situation.preemptor, chosen, generation)
            try:
                answer = await self._stubs[cycle.plugin].AddNominatedPod(request, timeout=self._timeout)
            except grpc.aio.AioRpcError as error:
                raise _failure(cycle.plugin, error) from error
            status = wire.status_of(answer.status)
            if not status.success:
                return status, {}
            records[cycle.plugin] = answer.record
        return None, records

    def _cycles(self, situation: Situation) -> list[PluginCycle]:
        by_plugin = {cycle.plugin: cycle for cycle in situation.plugin_cycles}
        return [by_plugin[plugin.name] for plugin in self._plugins if plugin.name in by_plugin]


def _session(cycle: PluginCycle) -> common_pb2.SessionReference:
    return common_pb2.SessionReference(id=cycle.session_id, epoch=cycle.session_epoch)


def _nomination_request(
    cycle: PluginCycle, preemptor: Preemptor, chosen: Candidate, generation: int
) -> nomination_extensions_pb2.AddNominatedPodRequest:
    return nomination_extensions_pb2.AddNominatedPodRequest(
        session=_session(cycle),
        cycle_id=cycle.cycle_id,
        pod=wire.pod_message(preemptor.pod),
        node_name=chosen.node.name,
        victims=[wire.pod_message(victim.pod) for victim in chosen.victims],
        generation=generation,
        nominated_pod_uids=chosen.node.nominated_pod_uids,
        priority=preemptor.priority,
    )
