"""Every RPC for callers without an event loop.

Generated from protos/earmark/v1 by earmark.client.generate. Never edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from google.protobuf import duration_pb2

from earmark.client.portal import Portal
from earmark.client.rpcs import (
    ClaimControllerRpcs,
    ExplanationRpcs,
    FrameworkRpcs,
    NodesRpcs,
    NominationExtensionsRpcs,
    PreemptionRpcs,
    SchedulerPluginRpcs,
    SettlementRpcs,
)
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


class BlockingClaimControllerRpcs:
    """ClaimControllerService steers the emulated resourceclaim controller."""

    def __init__(self, portal: Portal, rpcs: ClaimControllerRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def get_status(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.GetStatusResponse:
        """Call GetStatus."""
        return self._portal.call(self._rpcs.get_status(timeout=timeout))

    def pause(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.PauseResponse:
        """Pause stops all work; what happens meanwhile is done after Resume."""
        return self._portal.call(self._rpcs.pause(timeout=timeout))

    def resume(
        self,
        *,
        timeout: float | None = None,
    ) -> claim_controller_pb2.ResumeResponse:
        """Call Resume."""
        return self._portal.call(self._rpcs.resume(timeout=timeout))

    def set_delays(
        self,
        *,
        deallocation: duration_pb2.Duration | None = None,
        timeout: float | None = None,
    ) -> claim_controller_pb2.SetDelaysResponse:
        """Call SetDelays.

        Args:
            deallocation: From the end of each consumer to its release.
        """
        return self._portal.call(self._rpcs.set_delays(deallocation=deallocation, timeout=timeout))


class BlockingExplanationRpcs:
    """ExplanationService says what stands between a pod and the devices that it asks for. It changes nothing."""

    def __init__(self, portal: Portal, rpcs: ExplanationRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def explain_devices(
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
        return self._portal.call(self._rpcs.explain_devices(pod=pod, nodes=nodes, timeout=timeout))


class BlockingFrameworkRpcs:
    """FrameworkService is what the scheduling framework does for the preemption service and for people."""

    def __init__(self, portal: Portal, rpcs: FrameworkRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def dry_run_filter(
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
        return self._portal.call(self._rpcs.dry_run_filter(cycle_id=cycle_id, queries=queries, timeout=timeout))

    def open_dry_run(
        self,
        *,
        pod: common_pb2.PodInput | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.OpenDryRunResponse:
        """OpenDryRun opens a cycle for a pod that is not being scheduled, in a sandbox."""
        return self._portal.call(self._rpcs.open_dry_run(pod=pod, timeout=timeout))

    def close_dry_run(
        self,
        *,
        cycle_id: str = "",
        timeout: float | None = None,
    ) -> framework_pb2.CloseDryRunResponse:
        """CloseDryRun ends what OpenDryRun opened. Idempotent."""
        return self._portal.call(self._rpcs.close_dry_run(cycle_id=cycle_id, timeout=timeout))

    def preempt_pod(
        self,
        *,
        pod: common_pb2.PodReference | None = None,
        preemptor: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.PreemptPodResponse:
        """PreemptPod takes a pod out of Permit or PreBind, where it can be preempted without deleting it."""
        return self._portal.call(self._rpcs.preempt_pod(pod=pod, preemptor=preemptor, timeout=timeout))

    def clear_nominations(
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
        return self._portal.call(
            self._rpcs.clear_nominations(node_name=node_name, below_priority=below_priority, timeout=timeout)
        )

    def activate_pods(
        self,
        *,
        pods: Iterable[common_pb2.PodReference] = (),
        timeout: float | None = None,
    ) -> framework_pb2.ActivatePodsResponse:
        """ActivatePods moves pods to the active queue, without backoff."""
        return self._portal.call(self._rpcs.activate_pods(pods=pods, timeout=timeout))

    def explain_pod(
        self,
        *,
        pod: common_pb2.PodReference | None = None,
        timeout: float | None = None,
    ) -> framework_pb2.ExplainPodResponse:
        """ExplainPod says why a pod is where it is."""
        return self._portal.call(self._rpcs.explain_pod(pod=pod, timeout=timeout))

    def list_queue(
        self,
        *,
        timeout: float | None = None,
    ) -> framework_pb2.ListQueueResponse:
        """Call ListQueue."""
        return self._portal.call(self._rpcs.list_queue(timeout=timeout))


class BlockingNodesRpcs:
    """NodesService steers the emulated kubelets and device drivers."""

    def __init__(self, portal: Portal, rpcs: NodesRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def get_nodes_status(
        self,
        *,
        timeout: float | None = None,
    ) -> nodes_pb2.GetNodesStatusResponse:
        """Call GetNodesStatus."""
        return self._portal.call(self._rpcs.get_nodes_status(timeout=timeout))

    def hold(
        self,
        *,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nodes_pb2.HoldResponse:
        """Hold stops a node's kubelet: pods neither start nor finish terminating."""
        return self._portal.call(self._rpcs.hold(node_name=node_name, timeout=timeout))

    def release(
        self,
        *,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nodes_pb2.ReleaseResponse:
        """Call Release."""
        return self._portal.call(self._rpcs.release(node_name=node_name, timeout=timeout))

    def attach(
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
        return self._portal.call(
            self._rpcs.attach(
                namespace=namespace,
                claim=claim,
                condition=condition,
                status=status,
                reason=reason,
                message=message,
                timeout=timeout,
            )
        )

    def set_startup_delay(
        self,
        *,
        startup: duration_pb2.Duration | None = None,
        timeout: float | None = None,
    ) -> nodes_pb2.SetStartupDelayResponse:
        """Call SetStartupDelay."""
        return self._portal.call(self._rpcs.set_startup_delay(startup=startup, timeout=timeout))


class BlockingNominationExtensionsRpcs:
    """NominationExtensionsService is the KEP's NominationExtensions interface, optional for a plugin."""

    def __init__(self, portal: Portal, rpcs: NominationExtensionsRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def add_nominated_pod(
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
        return self._portal.call(
            self._rpcs.add_nominated_pod(
                session=session,
                cycle_id=cycle_id,
                pod=pod,
                node_name=node_name,
                victims=victims,
                generation=generation,
                nominated_pod_uids=nominated_pod_uids,
                priority=priority,
                timeout=timeout,
            )
        )

    def confirm_nominated_pod(
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
        return self._portal.call(
            self._rpcs.confirm_nominated_pod(session=session, pod=pod, generation=generation, timeout=timeout)
        )

    def remove_nominated_pod(
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
        return self._portal.call(
            self._rpcs.remove_nominated_pod(
                session=session,
                pod=pod,
                generation=generation,
                reason=reason,
                victims_not_deleted=victims_not_deleted,
                timeout=timeout,
            )
        )

    def pod_eligible_to_preempt(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pod: common_pb2.PodReference | None = None,
        node_name: str = "",
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.PodEligibleToPreemptResponse:
        """PodEligibleToPreempt says whether a pod with a nomination may preempt again."""
        return self._portal.call(
            self._rpcs.pod_eligible_to_preempt(session=session, pod=pod, node_name=node_name, timeout=timeout)
        )

    def list_nominations(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> nomination_extensions_pb2.ListNominationsResponse:
        """ListNominations lists what is held, for people and for checks.

        Args:
            session: Optional: a sandbox sees its own nominations too.
        """
        return self._portal.call(self._rpcs.list_nominations(session=session, timeout=timeout))


class BlockingPreemptionRpcs:
    """PreemptionService decides which pods have to go, and makes them go."""

    def __init__(self, portal: Portal, rpcs: PreemptionRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def preempt(
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
        return self._portal.call(self._rpcs.preempt(input=input, generation=generation, timeout=timeout))

    def execute(
        self,
        *,
        nomination: common_pb2.Nomination | None = None,
        timeout: float | None = None,
    ) -> preemption_pb2.ExecuteResponse:
        """Execute makes a confirmed proposal happen. Idempotent by preemptor UID and generation.

        Args:
            nomination: The confirmed nomination.
        """
        return self._portal.call(self._rpcs.execute(nomination=nomination, timeout=timeout))

    def dry_run(
        self,
        *,
        pod: common_pb2.PodInput | None = None,
        timeout: float | None = None,
    ) -> preemption_pb2.DryRunResponse:
        """DryRun decides for a pod that is not being scheduled. Nothing is proposed, nothing changes."""
        return self._portal.call(self._rpcs.dry_run(pod=pod, timeout=timeout))


class BlockingSchedulerPluginRpcs:
    """SchedulerPluginService is a scheduler plugin that runs in a process of its own. Order of calls in a cycle:
    PreFilter opens it; Filter, FilterForks, AddPod, RemovePod, PostFilter, Score, Reserve and PreBind name it;
    EndCycle closes it. Unreserve and EndCycle work without the cycle and may be repeated. An unknown cycle is
    FAILED_PRECONDITION.
    """

    def __init__(self, portal: Portal, rpcs: SchedulerPluginRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def describe(
        self,
        *,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.DescribeResponse:
        """Describe says what the plugin is and what it wants to be called for."""
        return self._portal.call(self._rpcs.describe(timeout=timeout))

    def open_session(
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
        return self._portal.call(
            self._rpcs.open_session(
                kind=kind,
                epoch=epoch,
                protocol_version=protocol_version,
                feature_gates=feature_gates,
                configuration=configuration,
                nominations=nominations,
                timeout=timeout,
            )
        )

    def keep_session(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.KeepSessionResponse:
        """KeepSession keeps a sandbox that would be gone after 60 s without a call."""
        return self._portal.call(self._rpcs.keep_session(session=session, timeout=timeout))

    def close_session(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.CloseSessionResponse:
        """CloseSession ends a session with all its cycles, forks and sandbox nominations."""
        return self._portal.call(self._rpcs.close_session(session=session, timeout=timeout))

    def pre_enqueue(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        pods: Iterable[common_pb2.PodInput] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PreEnqueueResponse:
        """PreEnqueue says for each pod whether it may enter the active queue. A rejected pod is remembered as a
        sleeper.
        """
        return self._portal.call(self._rpcs.pre_enqueue(session=session, pods=pods, timeout=timeout))

    def pre_filter(
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
        return self._portal.call(
            self._rpcs.pre_filter(
                session=session,
                pod=pod,
                pods_resource_version=pods_resource_version,
                nodes_resource_version=nodes_resource_version,
                nominated_node_name=nominated_node_name,
                timeout=timeout,
            )
        )

    def add_pod(
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
        return self._portal.call(
            self._rpcs.add_pod(session=session, cycle_id=cycle_id, node_name=node_name, pod=pod, timeout=timeout)
        )

    def remove_pod(
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
        return self._portal.call(
            self._rpcs.remove_pod(session=session, cycle_id=cycle_id, node_name=node_name, pod=pod, timeout=timeout)
        )

    def filter(
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
        return self._portal.call(
            self._rpcs.filter(
                session=session, cycle_id=cycle_id, nodes=nodes, pod_uids=pod_uids, queries=queries, timeout=timeout
            )
        )

    def filter_forks(
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
        return self._portal.call(
            self._rpcs.filter_forks(
                session=session, cycle_id=cycle_id, nodes=nodes, pod_uids=pod_uids, queries=queries, timeout=timeout
            )
        )

    def post_filter(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PostFilterResponse:
        """PostFilter runs when no node fits, before preemption."""
        return self._portal.call(self._rpcs.post_filter(session=session, cycle_id=cycle_id, timeout=timeout))

    def score(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        nodes: Iterable[str] = (),
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.ScoreResponse:
        """Score ranks nodes that passed Filter, 0 to 100."""
        return self._portal.call(self._rpcs.score(session=session, cycle_id=cycle_id, nodes=nodes, timeout=timeout))

    def reserve(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.ReserveResponse:
        """Reserve checks the node's result against the live state and takes it in flight."""
        return self._portal.call(
            self._rpcs.reserve(session=session, cycle_id=cycle_id, node_name=node_name, timeout=timeout)
        )

    def unreserve(
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
        return self._portal.call(
            self._rpcs.unreserve(
                session=session,
                pod=pod,
                node_name=node_name,
                reservation=reservation,
                preempted=preempted,
                timeout=timeout,
            )
        )

    def pre_bind(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        cycle_id: str = "",
        node_name: str = "",
        timeout: float | None = None,
    ) -> scheduler_plugin_pb2.PreBindResponse:
        """PreBind writes what the pod needs into the API and waits for what must become true before binding."""
        return self._portal.call(
            self._rpcs.pre_bind(session=session, cycle_id=cycle_id, node_name=node_name, timeout=timeout)
        )

    def end_cycle(
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
        return self._portal.call(
            self._rpcs.end_cycle(session=session, pod=pod, cycle_id=cycle_id, outcome=outcome, timeout=timeout)
        )

    def watch_wake_ups(
        self,
        *,
        session: common_pb2.SessionReference | None = None,
        last_number: int = 0,
        sleepers: Iterable[common_pb2.PodReference] = (),
        timeout: float | None = None,
    ) -> Iterator[scheduler_plugin_pb2.WatchWakeUpsResponse]:
        """WatchWakeUps streams which pods may have become schedulable, numbered, from last_number on.

        Args:
            last_number: The last number that the framework has handled; 0 on its first connection.
            sleepers: Pods that the framework holds as rejected by this plugin.
        """
        return self._portal.iterate(
            self._rpcs.watch_wake_ups(session=session, last_number=last_number, sleepers=sleepers, timeout=timeout)
        )


class BlockingSettlementRpcs:
    """SettlementService shows the settling windows: from t0 (victims deleted) to t4 (preemptor scheduled)."""

    def __init__(self, portal: Portal, rpcs: SettlementRpcs) -> None:
        self._portal = portal
        self._rpcs = rpcs

    def list_settlements(
        self,
        *,
        open_only: bool = False,
        timeout: float | None = None,
    ) -> settlement_pb2.ListSettlementsResponse:
        """Call ListSettlements.

        Args:
            open_only: Only windows that are open.
        """
        return self._portal.call(self._rpcs.list_settlements(open_only=open_only, timeout=timeout))

    def watch_settlements(
        self,
        *,
        timeout: float | None = None,
    ) -> Iterator[settlement_pb2.WatchSettlementsResponse]:
        """WatchSettlements sends every window that is open, then each that changes. A watcher that is slow gets the
        newest state of a window and may miss states in between.
        """
        return self._portal.iterate(self._rpcs.watch_settlements(timeout=timeout))
