"""Every RPC of every service, one class a service.

Generated from protos/earmark/v1 by earmark.client.generate. Never edited.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from google.protobuf import duration_pb2

from earmark.client.calls import Rpcs, new_request
from earmark.v1 import (
    claim_controller_pb2,
    common_pb2,
    explanation_pb2,
    framework_pb2,
    nodes_pb2,
    nomination_extensions_pb2,
    preemption_pb2,
    scheduler_plugin_pb2,
    settlement_pb2,
)


class ClaimControllerRpcs(Rpcs):
    """ClaimControllerService steers the emulated resourceclaim controller."""

    async def get_status(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.GetStatusResponse:
        """Call GetStatus."""
        fields: dict[str, Any] = {}
        request = new_request(claim_controller_pb2.GetStatusRequest, fields)
        return await self._caller.unary(
            "ClaimControllerService", "GetStatus", request, claim_controller_pb2.GetStatusResponse, timeout
        )

    async def pause(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.PauseResponse:
        """Pause stops all work; what happens meanwhile is done after Resume."""
        fields: dict[str, Any] = {}
        request = new_request(claim_controller_pb2.PauseRequest, fields)
        return await self._caller.unary(
            "ClaimControllerService", "Pause", request, claim_controller_pb2.PauseResponse, timeout
        )

    async def resume(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.ResumeResponse:
        """Call Resume."""
        fields: dict[str, Any] = {}
        request = new_request(claim_controller_pb2.ResumeRequest, fields)
        return await self._caller.unary(
            "ClaimControllerService", "Resume", request, claim_controller_pb2.ResumeResponse, timeout
        )

    async def set_delays(
        self,
        *,
        deallocation: duration_pb2.Duration | None = None,
        timeout: float | None = None,
    ) -> claim_controller_pb2.SetDelaysResponse:
        """Call SetDelays.

        Args:
            deallocation: From the end of each consumer to its release.
        """
        fields: dict[str, Any] = {
            "deallocation": deallocation,
        }
        request = new_request(claim_controller_pb2.SetDelaysRequest, fields)
        return await self._caller.unary(
            "ClaimControllerService", "SetDelays", request, claim_controller_pb2.SetDelaysResponse, timeout
        )


class ExplanationRpcs(Rpcs):
    """ExplanationService says what stands between a pod and the devices that it asks for. It changes nothing."""

    async def explain_devices(
        self,
        *,
        pod: common_pb2.PodReference | None = None,
        nodes: Iterable[str] = (),
        timeout: float | None = None,
    ) -> explanation_pb2.ExplainDevicesResponse:
        """ExplainDevices looks at each device of each node: which selector it fails, who holds it, what is awaited
        there.

        Args:
            pod: The pod, by its UID.
            nodes: The nodes to look at; empty stands for all.
        """
        fields: dict[str, Any] = {
            "pod": pod,
            "nodes": nodes,
        }
        request = new_request(explanation_pb2.ExplainDevicesRequest, fields)
        return await self._caller.unary(
            "ExplanationService", "ExplainDevices", request, explanation_pb2.ExplainDevicesResponse, timeout
        )


class FrameworkRpcs(Rpcs):
    """FrameworkService is what the scheduling framework does for the preemption service and for people."""

    async def dry_run_filter(
        self,
        *,
        cycle_id: str = "",
        queries: Iterable[common_pb2.NodeQuery] = (),
        timeout: float | None = None,
    ) -> framework_pb2.DryRunFilterResponse:
        """DryRunFilter runs all filters, both passes, for many nodes with pods taken away. One round of a dry run.

        Args:
            queries: Indices are those of the PreemptionInput's tables. `nominated` is left empty: the framework
                fills it.
        """
        fields: dict[str, Any] = {
            "cycle_id": cycle_id,
            "queries": queries,
        }
        request = new_request(framework_pb2.DryRunFilterRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "DryRunFilter", request, framework_pb2.DryRunFilterResponse, timeout
        )

    async def open_dry_run(
        self,
        *,
        pod: common_pb2.PodInput | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.OpenDryRunResponse:
        """OpenDryRun opens a cycle for a pod that is not being scheduled, in a sandbox."""
        fields: dict[str, Any] = {
            "pod": pod,
        }
        request = new_request(framework_pb2.OpenDryRunRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "OpenDryRun", request, framework_pb2.OpenDryRunResponse, timeout
        )

    async def close_dry_run(
        self,
        *,
        cycle_id: str = "",
        timeout: float | None = None,
    ) -> framework_pb2.CloseDryRunResponse:
        """CloseDryRun ends what OpenDryRun opened. Idempotent."""
        fields: dict[str, Any] = {
            "cycle_id": cycle_id,
        }
        request = new_request(framework_pb2.CloseDryRunRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "CloseDryRun", request, framework_pb2.CloseDryRunResponse, timeout
        )

    async def preempt_pod(
        self,
        *,
        pod: common_pb2.PodReference | None = None,
        preemptor: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.PreemptPodResponse:
        """PreemptPod takes a pod out of Permit or PreBind, where it can be preempted without deleting it."""
        fields: dict[str, Any] = {
            "pod": pod,
            "preemptor": preemptor,
        }
        request = new_request(framework_pb2.PreemptPodRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "PreemptPod", request, framework_pb2.PreemptPodResponse, timeout
        )

    async def clear_nominations(
        self,
        *,
        node_name: str = "",
        below_priority: int = 0,
        timeout: float | None = None,
    ) -> framework_pb2.ClearNominationsResponse:
        """ClearNominations clears nominations of lower priority on a node.

        Args:
            below_priority: Nominated pods with a lower priority than this lose their nomination.
        """
        fields: dict[str, Any] = {
            "node_name": node_name,
            "below_priority": below_priority,
        }
        request = new_request(framework_pb2.ClearNominationsRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "ClearNominations", request, framework_pb2.ClearNominationsResponse, timeout
        )

    async def activate_pods(
        self,
        *,
        pods: Iterable[common_pb2.PodReference] = (),
        timeout: float | None = None,
    ) -> framework_pb2.ActivatePodsResponse:
        """ActivatePods moves pods to the active queue, without backoff."""
        fields: dict[str, Any] = {
            "pods": pods,
        }
        request = new_request(framework_pb2.ActivatePodsRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "ActivatePods", request, framework_pb2.ActivatePodsResponse, timeout
        )

    async def explain_pod(
        self,
        *,
        pod: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.ExplainPodResponse:
        """ExplainPod says why a pod is where it is."""
        fields: dict[str, Any] = {
            "pod": pod,
        }
        request = new_request(framework_pb2.ExplainPodRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "ExplainPod", request, framework_pb2.ExplainPodResponse, timeout
        )

    async def list_queue(
        self,
        *,
        timeout: float | None = None,
    ) -> framework_pb2.ListQueueResponse:
        """Call ListQueue."""
        fields: dict[str, Any] = {}
        request = new_request(framework_pb2.ListQueueRequest, fields)
        return await self._caller.unary(
            "FrameworkService", "ListQueue", request, framework_pb2.ListQueueResponse, timeout
        )


class NodesRpcs(Rpcs):
    """NodesService steers the emulated kubelets and device drivers."""

    async def get_nodes_status(
        self,
        *,
        timeout: float | None = None,
    ) -> nodes_pb2.GetNodesStatusResponse:
        """Call GetNodesStatus."""
        fields: dict[str, Any] = {}
        request = new_request(nodes_pb2.GetNodesStatusRequest, fields)
        return await self._caller.unary(
            "NodesService", "GetNodesStatus", request, nodes_pb2.GetNodesStatusResponse, timeout
        )

    async def hold(
        self,
        *,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nodes_pb2.HoldResponse:
        """Hold stops a node's kubelet: pods neither start nor finish terminating."""
        fields: dict[str, Any] = {
            "node_name": node_name,
        }
        request = new_request(nodes_pb2.HoldRequest, fields)
        return await self._caller.unary("NodesService", "Hold", request, nodes_pb2.HoldResponse, timeout)

    async def release(
        self,
        *,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nodes_pb2.ReleaseResponse:
        """Call Release."""
        fields: dict[str, Any] = {
            "node_name": node_name,
        }
        request = new_request(nodes_pb2.ReleaseRequest, fields)
        return await self._caller.unary("NodesService", "Release", request, nodes_pb2.ReleaseResponse, timeout)

    async def attach(
        self,
        *,
        namespace: str = "",
        claim: str = "",
        condition: str = "",
        status: str = "",
        reason: str = "",
        message: str = "",
        timeout: float | None = None,
    ) -> nodes_pb2.AttachResponse:
        """Attach sets a condition on all allocated devices of a claim, as a device driver does.

        Args:
            claim: Name of the claim.
            status: "True", "False" or "Unknown"; empty is "True".
        """
        fields: dict[str, Any] = {
            "namespace": namespace,
            "claim": claim,
            "condition": condition,
            "status": status,
            "reason": reason,
            "message": message,
        }
        request = new_request(nodes_pb2.AttachRequest, fields)
        return await self._caller.unary("NodesService", "Attach", request, nodes_pb2.AttachResponse, timeout)

    async def set_startup_delay(
        self,
        *,
        startup: duration_pb2.Duration | None = None,
        timeout: float | None = None,
    ) -> nodes_pb2.SetStartupDelayResponse:
        """Call SetStartupDelay."""
        fields: dict[str, Any] = {
            "startup": startup,
        }
        request = new_request(nodes_pb2.SetStartupDelayRequest, fields)
        return await self._caller.unary(
            "NodesService", "SetStartupDelay", request, nodes_pb2.SetStartupDelayResponse, timeout
        )


class NominationExtensionsRpcs(Rpcs):
    """NominationExtensionsService is the KEP's NominationExtensions interface, optional for a plugin."""

    async def add_nominated_pod(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        pod: common_pb2.PodReference | None = None,
        node_name: str = "",
        victims: Iterable[common_pb2.PodReference] = (),
        generation: int = 0,
        nominated_pod_uids: Iterable[str] = (),
        priority: int = 0,
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.AddNominatedPodResponse:
        """AddNominatedPod is called when preemption has selected a candidate, before anything is deleted. The plugin
        records the nomination as a proposal: it holds at once, and is dropped if the cycle ends without
        ConfirmNominatedPod. A status other than success stops the preemption.

        Args:
            nominated_pod_uids: UIDs of other pods nominated on the node with equal or higher priority, in the order
                of application.
            priority: Value of pod.spec.priority of the nominated pod.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "pod": pod,
            "node_name": node_name,
            "victims": victims,
            "generation": generation,
            "nominated_pod_uids": nominated_pod_uids,
            "priority": priority,
        }
        request = new_request(nomination_extensions_pb2.AddNominatedPodRequest, fields)
        return await self._caller.unary(
            "NominationExtensionsService",
            "AddNominatedPod",
            request,
            nomination_extensions_pb2.AddNominatedPodResponse,
            timeout,
        )

    async def confirm_nominated_pod(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        generation: int = 0,
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.ConfirmNominatedPodResponse:
        """ConfirmNominatedPod is called when the nomination is written to the API; the proposal becomes the
        nomination.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "generation": generation,
        }
        request = new_request(nomination_extensions_pb2.ConfirmNominatedPodRequest, fields)
        return await self._caller.unary(
            "NominationExtensionsService",
            "ConfirmNominatedPod",
            request,
            nomination_extensions_pb2.ConfirmNominatedPodResponse,
            timeout,
        )

    async def remove_nominated_pod(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        generation: int = 0,
        reason: nomination_extensions_pb2.RemoveReason.ValueType | None = None,
        victims_not_deleted: Iterable[str] = (),
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.RemoveNominatedPodResponse:
        """RemoveNominatedPod is called when a nomination is cleared or superseded. Idempotent; works without a
        cycle.

        Args:
            generation: Nothing newer than this generation is removed.
            victims_not_deleted: UIDs of victims that were not deleted: their claims are no longer awaited.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "generation": generation,
            "reason": reason,
            "victims_not_deleted": victims_not_deleted,
        }
        request = new_request(nomination_extensions_pb2.RemoveNominatedPodRequest, fields)
        return await self._caller.unary(
            "NominationExtensionsService",
            "RemoveNominatedPod",
            request,
            nomination_extensions_pb2.RemoveNominatedPodResponse,
            timeout,
        )

    async def pod_eligible_to_preempt(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        """PodEligibleToPreempt says whether a pod with a nomination may preempt again."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "node_name": node_name,
        }
        request = new_request(nomination_extensions_pb2.PodEligibleToPreemptRequest, fields)
        return await self._caller.unary(
            "NominationExtensionsService",
            "PodEligibleToPreempt",
            request,
            nomination_extensions_pb2.PodEligibleToPreemptResponse,
            timeout,
        )

    async def list_nominations(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.ListNominationsResponse:
        """ListNominations lists what is held, for people and for checks.

        Args:
            session: Optional: a sandbox sees its own nominations too.
        """
        fields: dict[str, Any] = {
            "session": session,
        }
        request = new_request(nomination_extensions_pb2.ListNominationsRequest, fields)
        return await self._caller.unary(
            "NominationExtensionsService",
            "ListNominations",
            request,
            nomination_extensions_pb2.ListNominationsResponse,
            timeout,
        )


class PreemptionRpcs(Rpcs):
    """PreemptionService decides which pods have to go, and makes them go."""

    async def preempt(
        self,
        *,
        input: framework_pb2.PreemptionInput | None = None,
        generation: int = 0,
        timeout: float | None = None,
    ) -> preemption_pb2.PreemptResponse:
        """Preempt decides and proposes. Nothing is written to the API.

        Args:
            generation: The generation that the nomination gets.
        """
        fields: dict[str, Any] = {
            "input": input,
            "generation": generation,
        }
        request = new_request(preemption_pb2.PreemptRequest, fields)
        return await self._caller.unary(
            "PreemptionService", "Preempt", request, preemption_pb2.PreemptResponse, timeout
        )

    async def execute(
        self,
        *,
        nomination: common_pb2.Nomination | None = None,
        timeout: float | None = None,
    ) -> preemption_pb2.ExecuteResponse:
        """Execute makes a confirmed proposal happen. Idempotent by preemptor UID and generation.

        Args:
            nomination: The confirmed nomination.
        """
        fields: dict[str, Any] = {
            "nomination": nomination,
        }
        request = new_request(preemption_pb2.ExecuteRequest, fields)
        return await self._caller.unary(
            "PreemptionService", "Execute", request, preemption_pb2.ExecuteResponse, timeout
        )

    async def dry_run(
        self,
        *,
        pod: common_pb2.PodInput | None = None,
        timeout: float | None = None,
    ) -> preemption_pb2.DryRunResponse:
        """DryRun decides for a pod that is not being scheduled. Nothing is proposed, nothing changes."""
        fields: dict[str, Any] = {
            "pod": pod,
        }
        request = new_request(preemption_pb2.DryRunRequest, fields)
        return await self._caller.unary("PreemptionService", "DryRun", request, preemption_pb2.DryRunResponse, timeout)


class SchedulerPluginRpcs(Rpcs):
    """SchedulerPluginService is a scheduler plugin that runs in a process of its own. Order of calls in a cycle:
    PreFilter opens it; Filter, FilterForks, AddPod, RemovePod, PostFilter, Score, Reserve and PreBind name it;
    EndCycle closes it. Unreserve and EndCycle work without the cycle and may be repeated. An unknown cycle is
    FAILED_PRECONDITION.
    """

    async def describe(
        self,
        *,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.DescribeResponse:
        """Describe says what the plugin is and what it wants to be called for."""
        fields: dict[str, Any] = {}
        request = new_request(scheduler_plugin_pb2.DescribeRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "Describe", request, scheduler_plugin_pb2.DescribeResponse, timeout
        )

    async def open_session(
        self,
        *,
        kind: scheduler_plugin_pb2.SessionKind.ValueType | None = None,
        epoch: int = 0,
        protocol_version: str = "",
        feature_gates: Mapping[str, bool] | None = None,
        configuration: Mapping[str, str] | None = None,
        nominations: Iterable[common_pb2.Nomination] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.OpenSessionResponse:
        """OpenSession starts the one scheduler session, or a sandbox. A mismatch of gates, version or configuration
        is FAILED_PRECONDITION and names both values.

        Args:
            epoch: Scheduler sessions only: must not be lower than any that the plugin has seen.
            nominations: Scheduler sessions only: the complete nominator. The plugin drops what is not in it and
                restores what is.
        """
        fields: dict[str, Any] = {
            "kind": kind,
            "epoch": epoch,
            "protocol_version": protocol_version,
            "feature_gates": feature_gates,
            "configuration": configuration,
            "nominations": nominations,
        }
        request = new_request(scheduler_plugin_pb2.OpenSessionRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "OpenSession", request, scheduler_plugin_pb2.OpenSessionResponse, timeout
        )

    async def keep_session(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.KeepSessionResponse:
        """KeepSession keeps a sandbox that would be gone after 60 s without a call."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
        }
        request = new_request(scheduler_plugin_pb2.KeepSessionRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "KeepSession", request, scheduler_plugin_pb2.KeepSessionResponse, timeout
        )

    async def close_session(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.CloseSessionResponse:
        """CloseSession ends a session with all its cycles, forks and sandbox nominations."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
        }
        request = new_request(scheduler_plugin_pb2.CloseSessionRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "CloseSession", request, scheduler_plugin_pb2.CloseSessionResponse, timeout
        )

    async def pre_enqueue(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pods: Iterable[common_pb2.PodInput] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PreEnqueueResponse:
        """PreEnqueue says for each pod whether it may enter the active queue. A rejected pod is remembered as a
        sleeper.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pods": pods,
        }
        request = new_request(scheduler_plugin_pb2.PreEnqueueRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "PreEnqueue", request, scheduler_plugin_pb2.PreEnqueueResponse, timeout
        )

    async def pre_filter(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodInput | None = None,
        pods_resource_version: str = "",
        nodes_resource_version: str = "",
        nominated_node_name: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PreFilterResponse:
        """PreFilter opens a cycle that is pinned to the present revision of the plugin's state.

        Args:
            pods_resource_version: The newest resourceVersions in the framework's snapshot. The plugin waits up to
                200 ms until it has seen as much.
            nominated_node_name: The node of the pod's nomination as the framework has it in memory; empty if none.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "pods_resource_version": pods_resource_version,
            "nodes_resource_version": nodes_resource_version,
            "nominated_node_name": nominated_node_name,
        }
        request = new_request(scheduler_plugin_pb2.PreFilterRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "PreFilter", request, scheduler_plugin_pb2.PreFilterResponse, timeout
        )

    async def add_pod(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        pod: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.AddPodResponse:
        """AddPod adds a pod to one node's fork: takes back what RemovePod released, or applies a nominated pod's
        hold.

        Args:
            node_name: Names the fork.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "node_name": node_name,
            "pod": pod,
        }
        request = new_request(scheduler_plugin_pb2.AddPodRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "AddPod", request, scheduler_plugin_pb2.AddPodResponse, timeout
        )

    async def remove_pod(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        pod: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.RemovePodResponse:
        """RemovePod releases in one node's fork what only this pod and pods already removed hold.

        Args:
            node_name: Names the fork.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "node_name": node_name,
            "pod": pod,
        }
        request = new_request(scheduler_plugin_pb2.RemovePodRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "RemovePod", request, scheduler_plugin_pb2.RemovePodResponse, timeout
        )

    async def filter(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        nodes: Iterable[str] = (),
        pod_uids: Iterable[str] = (),
        queries: Iterable[common_pb2.NodeQuery] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.FilterResponse:
        """Filter runs both passes for many nodes and keeps the results for Score and Reserve.

        Args:
            queries: Queries with `removed` are INVALID_ARGUMENT here.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "nodes": nodes,
            "pod_uids": pod_uids,
            "queries": queries,
        }
        request = new_request(scheduler_plugin_pb2.FilterRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "Filter", request, scheduler_plugin_pb2.FilterResponse, timeout
        )

    async def filter_forks(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        nodes: Iterable[str] = (),
        pod_uids: Iterable[str] = (),
        queries: Iterable[common_pb2.NodeQuery] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.FilterForksResponse:
        """FilterForks runs both passes for many nodes on forks; nothing of it is kept in the cycle. One round of a
        dry run.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "nodes": nodes,
            "pod_uids": pod_uids,
            "queries": queries,
        }
        request = new_request(scheduler_plugin_pb2.FilterForksRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "FilterForks", request, scheduler_plugin_pb2.FilterForksResponse, timeout
        )

    async def post_filter(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PostFilterResponse:
        """PostFilter runs when no node fits, before preemption."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
        }
        request = new_request(scheduler_plugin_pb2.PostFilterRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "PostFilter", request, scheduler_plugin_pb2.PostFilterResponse, timeout
        )

    async def score(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        nodes: Iterable[str] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.ScoreResponse:
        """Score ranks nodes that passed Filter, 0 to 100."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "nodes": nodes,
        }
        request = new_request(scheduler_plugin_pb2.ScoreRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "Score", request, scheduler_plugin_pb2.ScoreResponse, timeout
        )

    async def reserve(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.ReserveResponse:
        """Reserve checks the node's result against the live state and takes it in flight."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "node_name": node_name,
        }
        request = new_request(scheduler_plugin_pb2.ReserveRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "Reserve", request, scheduler_plugin_pb2.ReserveResponse, timeout
        )

    async def unreserve(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        node_name: str = "",
        reservation: str = "",
        preempted: bool = False,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.UnreserveResponse:
        """Unreserve undoes Reserve and, as far as it got, PreBind. Idempotent.

        Args:
            reservation: From ReserveResponse; may be empty if Reserve was never answered.
            preempted: The binding was given up because another pod preempts this one.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "node_name": node_name,
            "reservation": reservation,
            "preempted": preempted,
        }
        request = new_request(scheduler_plugin_pb2.UnreserveRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "Unreserve", request, scheduler_plugin_pb2.UnreserveResponse, timeout
        )

    async def pre_bind(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PreBindResponse:
        """PreBind writes what the pod needs into the API and waits for what must become true before binding."""
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "cycle_id": cycle_id,
            "node_name": node_name,
        }
        request = new_request(scheduler_plugin_pb2.PreBindRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "PreBind", request, scheduler_plugin_pb2.PreBindResponse, timeout
        )

    async def end_cycle(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        cycle_id: str = "",
        outcome: scheduler_plugin_pb2.CycleOutcome.ValueType | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.EndCycleResponse:
        """EndCycle closes a cycle and says whether the pod should sleep. Idempotent.

        Args:
            cycle_id: Empty if PreFilter was never answered.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "pod": pod,
            "cycle_id": cycle_id,
            "outcome": outcome,
        }
        request = new_request(scheduler_plugin_pb2.EndCycleRequest, fields)
        return await self._caller.unary(
            "SchedulerPluginService", "EndCycle", request, scheduler_plugin_pb2.EndCycleResponse, timeout
        )

    async def watch_wake_ups(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        last_number: int = 0,
        sleepers: Iterable[common_pb2.PodReference] = (),
        timeout: float | None = None,
    ) -> AsyncIterator[scheduler_plugin_pb2.WatchWakeUpsResponse]:
        """WatchWakeUps streams which pods may have become schedulable, numbered, from last_number on.

        Args:
            last_number: The last number that the framework has handled; 0 on its first connection.
            sleepers: Pods that the framework holds as rejected by this plugin.
        """
        fields: dict[str, Any] = {
            "session": session or await self._caller.session(),
            "last_number": last_number,
            "sleepers": sleepers,
        }
        request = new_request(scheduler_plugin_pb2.WatchWakeUpsRequest, fields)
        async for answer in self._caller.stream(
            "SchedulerPluginService", "WatchWakeUps", request, scheduler_plugin_pb2.WatchWakeUpsResponse, timeout
        ):
            yield answer


class SettlementRpcs(Rpcs):
    """SettlementService shows the settling windows: from t0 (victims deleted) to t4 (preemptor scheduled)."""

    async def list_settlements(
        self,
        *,
        open_only: bool = False,
        timeout: float | None = None,
    ) -> settlement_pb2.ListSettlementsResponse:
        """Call ListSettlements.

        Args:
            open_only: Only windows that are open.
        """
        fields: dict[str, Any] = {
            "open_only": open_only,
        }
        request = new_request(settlement_pb2.ListSettlementsRequest, fields)
        return await self._caller.unary(
            "SettlementService", "ListSettlements", request, settlement_pb2.ListSettlementsResponse, timeout
        )

    async def watch_settlements(
        self,
        *,
        timeout: float | None = None,
    ) -> AsyncIterator[settlement_pb2.WatchSettlementsResponse]:
        """WatchSettlements sends every window that is open, then each that changes. A watcher that is slow gets the
        newest state of a window and may miss states in between.
        """
        fields: dict[str, Any] = {}
        request = new_request(settlement_pb2.WatchSettlementsRequest, fields)
        async for answer in self._caller.stream(
            "SettlementService", "WatchSettlements", request, settlement_pb2.WatchSettlementsResponse, timeout
        ):
            yield answer
