"""Bad input is INVALID_ARGUMENT (or NOT_FOUND) with the name of the field, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from earmark.v1 import common_pb2, framework_pb2
from support.contract_plugin import Scheduler
from support.contract_rpcs import RPCS
from support.contract_stack import Stack

POD = common_pb2.PodReference(namespace="default", name="p", uid="uid-p")
NO_UID = common_pb2.PodReference(namespace="default", name="p")
NO_NAME = common_pb2.PodReference(namespace="default", uid="uid-p")


@dataclass(frozen=True)
class Bad:
    """One call that must be refused."""

    rpc: str
    request: Mapping[str, Any]
    # How the text begins: the field.
    names: str
    code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT
    # What the plugin's calls name besides.
    known: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.rpc.partition('/')[2]} {self.names}"


def _plugin(method: str, names: str, *known: str, **request: Any) -> Bad:
    return Bad(f"SchedulerPluginService/{method}", request, names, known=("session", *known))


def _nomination(method: str, names: str, *known: str, **request: Any) -> Bad:
    return Bad(f"NominationExtensionsService/{method}", request, names, known=("session", *known))


def _query(**fields: Any) -> dict[str, Any]:
    return {"nodes": ["n1"], "pod_uids": ["uid-v"], "queries": [common_pb2.NodeQuery(**fields)]}


PLUGIN = [
    Bad("SchedulerPluginService/OpenSession", {"kind": 0}, "kind"),
    Bad("SchedulerPluginService/OpenSession", {"kind": 77}, "kind"),
    Bad(
        "SchedulerPluginService/OpenSession",
        {"kind": 1, "epoch": -1, "feature_gates": {"DRAPreemption": True}},
        "epoch",
    ),
    Bad(
        "SchedulerPluginService/OpenSession",
        {
            "kind": 1,
            "epoch": 9,
            "feature_gates": {"DRAPreemption": True},
            "nominations": [common_pb2.Nomination(pod=NO_UID, node_name="n1", generation=1)],
        },
        "nominations[0].pod.uid",
    ),
    Bad(
        "SchedulerPluginService/OpenSession",
        {
            "kind": 1,
            "epoch": 9,
            "feature_gates": {"DRAPreemption": True},
            "nominations": [common_pb2.Nomination(pod=POD, node_name="n1", generation=1, victims=[POD, NO_UID])],
        },
        "nominations[0].victims[1].uid",
    ),
    Bad(
        "SchedulerPluginService/OpenSession",
        {
            "kind": 1,
            "epoch": 9,
            "feature_gates": {"DRAPreemption": True},
            "nominations": [common_pb2.Nomination(pod=POD, generation=1)],
        },
        "nominations[0].node_name",
    ),
    Bad(
        "SchedulerPluginService/OpenSession",
        {
            "kind": 1,
            "epoch": 9,
            "feature_gates": {"DRAPreemption": True},
            "nominations": [common_pb2.Nomination(pod=POD, node_name="n1", generation=-2)],
        },
        "nominations[0].generation",
    ),
    Bad("SchedulerPluginService/CloseSession", {}, "session.id"),
    _plugin("PreEnqueue", "pods[0].pod.uid", pods=[common_pb2.PodInput(pod=NO_UID)]),
    _plugin("PreEnqueue", "pods[1].pod.uid", pods=[common_pb2.PodInput(pod=POD), common_pb2.PodInput()]),
    _plugin("PreEnqueue", "pods[0].resource_version", pods=[common_pb2.PodInput(pod=POD, resource_version="x")]),
    _plugin("PreFilter", "pod.pod.uid", pod=common_pb2.PodInput(pod=NO_UID)),
    _plugin("PreFilter", "pod.manifest", pod=common_pb2.PodInput(pod=POD, manifest="{}")),
    _plugin("PreFilter", "pod.resource_version", pod=common_pb2.PodInput(pod=POD, resource_version="-4")),
    _plugin("PreFilter", "pods_resource_version", pod=common_pb2.PodInput(pod=POD), pods_resource_version="²"),
    _plugin("PreFilter", "nodes_resource_version", pod=common_pb2.PodInput(pod=POD), nodes_resource_version="1e3"),
    _plugin("AddPod", "pod.uid", "cycle_id", node_name="n1", pod=NO_UID),
    _plugin("AddPod", "node_name", "cycle_id", pod=POD),
    _plugin("RemovePod", "pod.uid", "cycle_id", node_name="n1"),
    _plugin("RemovePod", "node_name", "cycle_id", pod=POD),
    _plugin("Filter", "queries[0].node", "cycle_id", **_query(node=1)),
    _plugin("Filter", "queries[0].removed", "cycle_id", **_query(removed=[0])),
    _plugin("Filter", "queries[0].nominated", "cycle_id", **_query(nominated=[1])),
    _plugin("Filter", "nodes[0]", "cycle_id", nodes=[""], queries=[common_pb2.NodeQuery()]),
    _plugin("Filter", "queries[0].node", "cycle_id", queries=[common_pb2.NodeQuery()]),
    _plugin("FilterForks", "queries[0].node", "cycle_id", **_query(node=4)),
    _plugin("FilterForks", "queries[0].removed", "cycle_id", **_query(removed=[0, 3])),
    _plugin("FilterForks", "queries[0].nominated", "cycle_id", **_query(nominated=[9])),
    _plugin("FilterForks", "pod_uids[0]", "cycle_id", nodes=["n1"], pod_uids=[""]),
    _plugin("Score", "nodes[1]", "cycle_id", nodes=["n1", ""]),
    _plugin("Reserve", "node_name", "cycle_id"),
    _plugin("PreBind", "node_name", "cycle_id"),
    _plugin("Unreserve", "pod.uid", pod=NO_UID),
    _plugin("EndCycle", "pod.uid", outcome=1),
    _plugin("EndCycle", "outcome", pod=POD),
    _plugin("EndCycle", "outcome", pod=POD, outcome=42),
    _plugin("WatchWakeUps", "sleepers[0].uid", sleepers=[NO_UID]),
    _plugin("WatchWakeUps", "last_number", last_number=-1),
    _nomination("AddNominatedPod", "pod.uid", "cycle_id", node_name="n1", generation=1),
    _nomination("AddNominatedPod", "pod.uid", "cycle_id", pod=POD, node_name="n1", generation=1),
    _nomination("AddNominatedPod", "node_name", "cycle_id", "pod", generation=1),
    _nomination("AddNominatedPod", "generation", "cycle_id", "pod", node_name="n1"),
    _nomination("AddNominatedPod", "generation", "cycle_id", "pod", node_name="n1", generation=-1),
    _nomination(
        "AddNominatedPod", "victims[1].uid", "cycle_id", "pod", node_name="n1", generation=1, victims=[POD, NO_UID]
    ),
    _nomination("ConfirmNominatedPod", "pod.uid", pod=NO_UID, generation=1),
    _nomination("ConfirmNominatedPod", "generation", pod=POD),
    _nomination("RemoveNominatedPod", "pod.uid", generation=1, reason=4),
    _nomination("RemoveNominatedPod", "generation", pod=POD, generation=-1, reason=4),
    _nomination("RemoveNominatedPod", "reason", pod=POD, generation=1),
    _nomination("RemoveNominatedPod", "reason", pod=POD, generation=1, reason=42),
    _nomination("PodEligibleToPreempt", "pod.uid", node_name="n1"),
]

_INPUT = framework_pb2.PreemptionInput(
    cycle_id="none", preemptor=common_pb2.PodInput(pod=POD, priority=1), statuses=[common_pb2.Status()]
)


def _input(**fields: Any) -> framework_pb2.PreemptionInput:
    message = framework_pb2.PreemptionInput(**fields)
    merged = framework_pb2.PreemptionInput()
    merged.CopyFrom(_INPUT)
    merged.MergeFrom(message)
    return merged


def _nominated(**fields: Any) -> dict[str, Any]:
    return {"nomination": common_pb2.Nomination(**{"pod": POD, "node_name": "n1", "generation": 1, **fields})}


UNKNOWN: Any = 99
NOT_FOUND = grpc.StatusCode.NOT_FOUND
OTHERS = [
    Bad("PreemptionService/Preempt", {"generation": 1}, "input.cycle_id"),
    Bad("PreemptionService/Preempt", {"input": _input(), "generation": 0}, "generation"),
    Bad("PreemptionService/Preempt", {"input": _input(), "generation": -3}, "generation"),
    Bad(
        "PreemptionService/Preempt",
        {
            "input": framework_pb2.PreemptionInput(cycle_id="c", preemptor=common_pb2.PodInput(pod=NO_UID)),
            "generation": 1,
        },
        "input.preemptor.pod.uid",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(nodes=[framework_pb2.CandidateNode(name="n1", status=1)]), "generation": 1},
        "input.nodes[0].status",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(nodes=[framework_pb2.CandidateNode(name="n1", pods=[0])]), "generation": 1},
        "input.nodes[0].pods",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(nodes=[framework_pb2.CandidateNode()]), "generation": 1},
        "input.nodes[0].name",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(pods=[framework_pb2.CandidatePod(pod=NO_UID)]), "generation": 1},
        "input.pods[0].pod.uid",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(statuses=[common_pb2.Status(code=UNKNOWN)]), "generation": 1},
        "input.statuses[1].code",
    ),
    Bad(
        "PreemptionService/Preempt",
        {"input": _input(preemption_policy="Sometimes"), "generation": 1},
        "input.preemption_policy",
    ),
    Bad("PreemptionService/Execute", {}, "nomination.node_name"),
    Bad("PreemptionService/Execute", _nominated(generation=-1), "nomination.generation"),
    Bad("PreemptionService/Execute", _nominated(pod=NO_UID), "nomination.pod.uid"),
    Bad("PreemptionService/Execute", _nominated(victims=[POD, NO_UID]), "nomination.victims[1].uid"),
    Bad("PreemptionService/Execute", _nominated(victims=[NO_NAME]), "nomination.victims[0].name"),
    Bad("PreemptionService/DryRun", {}, "pod.pod.name"),
    Bad("PreemptionService/DryRun", {"pod": common_pb2.PodInput(pod=POD)}, "pod.pod", NOT_FOUND),
    Bad("PreemptionService/DryRun", {"pod": common_pb2.PodInput(manifest="{")}, "pod.manifest"),
    Bad("FrameworkService/DryRunFilter", {}, "cycle_id"),
    Bad("FrameworkService/OpenDryRun", {}, "pod.pod.name"),
    Bad("FrameworkService/OpenDryRun", {"pod": common_pb2.PodInput(pod=POD)}, "pod.pod", NOT_FOUND),
    Bad("FrameworkService/OpenDryRun", {"pod": common_pb2.PodInput(manifest="[1]")}, "pod.manifest"),
    Bad("FrameworkService/OpenDryRun", {"pod": common_pb2.PodInput(manifest="{nonsense")}, "pod.manifest"),
    Bad(
        "FrameworkService/OpenDryRun",
        {
            "pod": common_pb2.PodInput(
                manifest='{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1x"}}}]}}'
            )
        },
        "pod.manifest",
    ),
    Bad("FrameworkService/CloseDryRun", {}, "cycle_id"),
    Bad("FrameworkService/PreemptPod", {"preemptor": POD}, "pod.uid"),
    Bad("FrameworkService/ClearNominations", {}, "node_name"),
    Bad("FrameworkService/ActivatePods", {"pods": [POD, common_pb2.PodReference()]}, "pods[1]"),
    Bad("FrameworkService/ExplainPod", {}, "pod.name"),
    Bad("ClaimControllerService/SetDelays", {}, "deallocation"),
    Bad("ClaimControllerService/SetDelays", {"deallocation": Duration(seconds=-1)}, "deallocation"),
    Bad("ClaimControllerService/SetDelays", {"deallocation": Duration(seconds=2**62)}, "deallocation"),
    Bad("NodesService/Hold", {}, "node_name"),
    Bad("NodesService/Hold", {"node_name": "n9"}, "node_name", NOT_FOUND),
    Bad("NodesService/Release", {}, "node_name"),
    Bad("NodesService/Attach", {"claim": "c", "condition": "Ready"}, "namespace"),
    Bad("NodesService/Attach", {"namespace": "default", "condition": "Ready"}, "claim"),
    Bad("NodesService/Attach", {"namespace": "default", "claim": "c"}, "condition"),
    Bad("NodesService/Attach", {"namespace": "default", "claim": "c", "condition": "Ready", "status": "yes"}, "status"),
    Bad("NodesService/Attach", {"namespace": "default", "claim": "c", "condition": "Ready"}, "claim", NOT_FOUND),
    Bad("ExplanationService/ExplainDevices", {}, "pod.uid"),
    Bad("ExplanationService/ExplainDevices", {"pod": POD, "nodes": ["n1", ""]}, "nodes[1]"),
    Bad("ExplanationService/ExplainDevices", {"pod": POD}, "pod.uid", code=grpc.StatusCode.NOT_FOUND),
    Bad("NodesService/SetStartupDelay", {}, "startup"),
    Bad("NodesService/SetStartupDelay", {"startup": Duration(seconds=-1)}, "startup"),
    Bad("NodesService/SetStartupDelay", {"startup": Duration(seconds=2**62)}, "startup"),
]

# Their requests have no field that could be wrong.
TAKE_ANYTHING = {
    "ClaimControllerService/GetStatus",
    "ClaimControllerService/Pause",
    "ClaimControllerService/Resume",
    "FrameworkService/ListQueue",
    "NodesService/GetNodesStatus",
    "SchedulerPluginService/Describe",
    "SettlementService/ListSettlements",
    "SettlementService/WatchSettlements",
}
# The only field is session or cycle: see test_preconditions.py.
ONLY_PRECONDITIONS = {
    "NominationExtensionsService/ListNominations",
    "SchedulerPluginService/KeepSession",
    "SchedulerPluginService/PostFilter",
}


def test_every_rpc_is_here() -> None:
    assert {bad.rpc for bad in (*PLUGIN, *OTHERS)} | TAKE_ANYTHING | ONLY_PRECONDITIONS == set(RPCS)


async def test_the_plugin_names_the_field(scheduler: Scheduler) -> None:
    wrong = []
    channel = scheduler.stack.channel("dynamicresources")
    cycle_id = await scheduler.pre_filter("p")
    for bad in PLUGIN:
        before = _state(scheduler)
        context = {"session": scheduler.session, "cycle_id": cycle_id, "pod": await scheduler.ref("p")}
        rpc = RPCS[bad.rpc]
        request = rpc.request(**{name: context[name] for name in bad.known}, **bad.request)
        code, text = await _refusal(rpc.on(channel)(request, timeout=5))
        if code is not bad.code or not text.startswith(f"{bad.names}: "):
            wrong.append(f"{bad}: {code} {text!r}")
        if _state(scheduler) != before:
            wrong.append(f"{bad}: has left something behind")
    assert not wrong, "\n".join(wrong)


async def test_the_other_services_name_the_field(services: Stack) -> None:
    wrong = []
    for bad in OTHERS:
        rpc = RPCS[bad.rpc]
        code, text = await _refusal(rpc.on(services.channel(rpc.process))(rpc.request(**bad.request), timeout=5))
        if code is not bad.code or bad.names + ": " not in text:
            wrong.append(f"{bad}: {code} {text!r}")
    assert not wrong, "\n".join(wrong)


async def _refusal(call: Any) -> tuple[grpc.StatusCode, str]:
    try:
        await (call.read() if hasattr(call, "read") else call)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def _state(scheduler: Scheduler) -> Any:
    core = scheduler.component.core
    return core.world, core.wake_ups.sleepers, tuple(cycle.id for cycle in core.open_cycles())
