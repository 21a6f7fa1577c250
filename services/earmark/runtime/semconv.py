"""The names of all spans and their attributes, with what they mean. Nothing else may be emitted: a test checks it.

Span names of RPCs are the method's ("earmark.v1.FrameworkService/DryRunFilter") and need no entry.
"""

from __future__ import annotations

from collections.abc import Iterable

# One trace a settling window: its trace id and root span id are derived (earmark.runtime.settling_trace).
SETTLING = "settling"
SETTLING_STARTED = "settling.started"
VICTIM_TERMINATING = "victim.terminating"
CLAIM_DEALLOCATING = "claim.deallocating"
CAPACITY_HELD = "capacity.held"
PREEMPTION_DRY_RUN = "preemption.dry_run"
PREEMPTION_EXECUTE = "preemption.execute"
SCHEDULING_ATTEMPT = "scheduling.attempt"
SCHEDULING_BINDING = "scheduling.binding"
CLAIM_CONTROLLER_DEALLOCATE = "claimcontroller.deallocate"
NODE_TERMINATE = "nodes.terminate"

SPANS: dict[str, str] = {
    SETTLING: "the whole settling window, t0 to t4: from the deletion of the victims to the preemptor being scheduled",
    SETTLING_STARTED: "t0: the victims are deleted and the nomination stands; short, so that an open window is visible",
    VICTIM_TERMINATING: "t0 to t1: one victim from its deletion until it has disappeared",
    CLAIM_DEALLOCATING: "t1 to t3: one victim claim from the end of its last pod until its allocation is cleared",
    CAPACITY_HELD: "t3 to t4: the devices are free and held for the preemptor",
    PREEMPTION_DRY_RUN: "which node and victims preemption would choose: rounds of filters on forks",
    PREEMPTION_EXECUTE: "conditions set and victims deleted, after the nomination was written",
    SCHEDULING_ATTEMPT: "one scheduling cycle of a pod; a waiting preemptor's stand in its window's trace too",
    SCHEDULING_BINDING: "one binding cycle of a pod: PreBind and bind",
    CLAIM_CONTROLLER_DEALLOCATE: "the emulated claim controller clears one allocation",
    NODE_TERMINATE: "the emulated kubelet ends one pod",
}

POD_NAMESPACE = "k8s.namespace.name"
POD_NAME = "k8s.pod.name"
POD_UID = "k8s.pod.uid"
NODE_NAME = "k8s.node.name"

ATTRIBUTES: dict[str, str] = {
    POD_NAMESPACE: "namespace of the pod or claim that the span is about",
    POD_NAME: "name of the pod that the span is about",
    POD_UID: "UID of the pod that the span is about",
    NODE_NAME: "node of the nomination, the victim or the decision",
    "earmark.generation": "generation of the nomination; rises with every nomination of the deployment",
    "earmark.preemptor": "namespace/name of the preemptor",
    "earmark.preemptor.uid": "UID of the preemptor",
    "earmark.victims": "namespace/name of the victims in the order of their deletion, of many the first ones",
    "earmark.victims.count": "number of victims",
    "earmark.victim.outcome": "what became of one victim: deleted, gone, failed ...",
    "earmark.claim": "namespace/name of a claim",
    "earmark.claim.uid": "UID of a claim",
    "earmark.claims": "namespace/name of the victim claims, of many the first ones",
    "earmark.claims.count": "number of victim claims",
    "earmark.devices": "DRIVER/POOL/DEVICE held for the preemptor",
    "earmark.outcome": "how it ended: scheduled, cleared, deleted, failed; for attempts the result",
    "earmark.reason": "why, in words",
    "earmark.candidates": "number of candidate nodes",
    "earmark.nodes": "number of nodes looked at",
    "earmark.rounds": "rounds of a dry run: calls of DryRunFilter",
    "earmark.attempt": "number of the pod's scheduling attempt",
    "earmark.priority": "priority of the pod that the span is about",
    "earmark.cycle": "id of the cycle",
    "rpc.system": "grpc",
    "rpc.service": "full name of the RPC service",
    "rpc.method": "name of the RPC",
}

# Events inside spans.
EVENTS: dict[str, str] = {
    "victim.deleted": "the API accepted the deletion of one victim",
    "victim.gone": "one victim was gone already, or was taken out of memory before it was bound",
    "victim.failed": "the API refused the deletion of one victim",
}


def undeclared(span: str, attributes: Iterable[str], events: Iterable[str] = ()) -> list[str]:
    """Return what of a span is not declared here, in words."""
    problems = [] if span in SPANS or "/" in span else [f"span {span!r}"]
    problems += [f"attribute {name!r} of span {span!r}" for name in attributes if name not in ATTRIBUTES]
    problems += [f"event {name!r} of span {span!r}" for name in events if name not in EVENTS]
    return problems
