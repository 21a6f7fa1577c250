"""Why preempting the pods that use a claim would not free its devices for a preemptor, in words. Pure.

What comes free is decided by releasable.py; this says for people which of its conditions does not hold, and looks at
priorities besides, which the plugin leaves to the preemption otherwise.
"""

from __future__ import annotations

from earmark.dynamicresources.claims import is_extended_resource_claim
from earmark.dynamicresources.facts import PodFacts
from earmark.dynamicresources.releasable import consumers
from earmark.dynamicresources.state import World
from earmark.kube.objects import ResourceClaim


def why_it_stays(world: World, claim: ResourceClaim, node: str, preemptor: PodFacts, *, preemption: bool) -> str:
    """Return the first reason for which no preemption on the node frees the claim's devices; "" where one would.

    preemption: whether the gate DRAPreemption is on. KEP: Simulating preemption.
    """
    if not preemption:
        return "the gate DRAPreemption is off"
    if preemptor.in_group:
        return "pods of a PodGroup get no devices by preemption"
    if is_extended_resource_claim(claim):
        return "the claim backs an extended resource, which is not preempted"
    if any(not entry.is_pod for entry in claim.status.reserved_for):
        return "the claim is used by something that is not a pod"
    return _by_devices(world, claim, node) or _by_pods(world, claim, node, preemptor)


def _by_devices(world: World, claim: ResourceClaim, node: str) -> str:
    allocation = world.allocation_of(claim)
    if allocation is None:
        return ""
    for result in allocation.devices.results:
        where = world.inventory.node_of(result.driver, result.pool, result.device)
        if where is None:
            return f"the claim has {result.pool}/{result.device}, which belongs to no single node (a network device)"
        if where != node:
            return f"the claim has {result.pool}/{result.device} on node {where} as well"
    return ""


def _by_pods(world: World, claim: ResourceClaim, node: str, preemptor: PodFacts) -> str:
    uids = consumers(world, claim)
    if not uids:
        return "no pod uses the claim: nobody can be preempted for it"
    others = len(uids) > 1
    for uid in uids:
        pod = world.pods.get(uid)
        if pod is None:
            if uid in world.deleted_pods:
                continue
            return "the claim names a pod that is not known"
        name = pod.ref.name
        if pod.going_away:
            continue
        if pod.in_group:
            return f"{name} belongs to a PodGroup"
        if pod.priority >= preemptor.priority:
            how = "is equal to" if pod.priority == preemptor.priority else "is higher than"
            shared = "the claim is shared with a pod that stays: " if others else ""
            return f"{shared}the priority of {name} ({pod.priority}) {how} that of this pod ({preemptor.priority})"
        reservation = world.reservations.get(uid)
        where = pod.node_name or (reservation.node if reservation is not None else "")
        if where not in ("", node):
            return f"{name}, which uses the claim too, is on node {where}"
    return ""
