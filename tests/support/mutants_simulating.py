"""Seeded faults of simulating and choosing: what a dry run frees, and who may go for whom."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from earmark.dynamicresources import component as plugin_component
from earmark.dynamicresources import filtering, releasable
from earmark.dynamicresources.allocator import features
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.state import World
from earmark.framework import dry_runs
from earmark.preemption import dryrun, eligibility
from earmark.preemption.dryrun import DryRun
from support.mutants_patching import Patches


class _Anywhere(str):
    """The name of every node."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    __hash__ = str.__hash__


def no_reprieve(patches: Patches) -> None:
    """All potential victims of the chosen node go."""
    trial = dryrun._Trial
    patches.replace(trial, "after", lambda original: lambda self, fits: original(self, False))


def a_reprieved_share_counts_twice(patches: Patches) -> None:
    """AddPod of a spared victim takes what RemovePod has not given back."""
    removed_before: dict[tuple[int, str, str], set[str]] = {}

    def make(original: Any) -> Any:
        def passes(world: World, node: str, *, removed: Sequence[str] = (), pod_uid: str = "", **rest: Any) -> Any:
            answer = original(world, node, removed=removed, pod_uid=pod_uid, **rest)
            if not removed:
                return answer
            seen = removed_before.setdefault((world.revision, node, pod_uid), set())
            spared = seen - set(removed)
            seen |= set(removed)
            base = answer.without
            for uid in sorted(spared):
                for claim_uid in world.claims_of_consumer(uid):
                    claim = world.claim_by_uid(claim_uid)
                    allocation = world.allocation_of(claim) if claim is not None else None
                    if allocation is not None:
                        base = base.charge(f"again/{claim_uid}", allocation)
            return replace(answer, without=base)

        return passes

    patches.replace(filtering, "passes", make)


def a_shared_claim_goes_with_its_first_user(patches: Patches) -> None:
    """One removed user is enough for a claim to be free."""
    patches.replace(releasable, "_goes", lambda _: lambda *_: True)


def a_terminating_user_stays(patches: Patches) -> None:
    """A user that terminates already keeps the claim."""

    def make(original: Any) -> Any:
        def goes(world: World, pod_uid: str, node: str, removed: Collection[str]) -> bool:
            pod = world.pods.get(pod_uid)
            if pod is not None and pod.going_away and pod_uid not in removed:
                return False
            return bool(original(world, pod_uid, node, removed))

        return goes

    patches.replace(releasable, "_goes", make)


def network_devices_are_freed(patches: Patches) -> None:
    """Devices that other nodes reach too come free like those of the node."""

    def make(original: Any) -> Any:
        def node_of(self: Inventory, driver: str, pool: str, device: str) -> str:
            return original(self, driver, pool, device) or _Anywhere("")

        return node_of

    patches.replace(Inventory, "node_of", make)


def group_members_are_freed(patches: Patches) -> None:
    """A member of a PodGroup is removed like any pod."""

    def make(original: Any) -> Any:
        def goes(world: World, pod_uid: str, node: str, removed: Collection[str]) -> bool:
            pod = world.pods.get(pod_uid)
            if pod is not None and pod.in_group:
                world = replace(world, pods=world.pods.with_item(pod_uid, replace(pod, in_group=False)))
            return bool(original(world, pod_uid, node, removed))

        return goes

    patches.replace(releasable, "_goes", make)


def extended_resources_are_freed(patches: Patches) -> None:
    """The claim behind an extended resource comes free like any."""
    patches.replace(releasable, "is_extended_resource_claim", lambda _: lambda _claim: False)


def policy_never_is_ignored(patches: Patches) -> None:
    """Pods whose policy is Never preempt."""
    patches.replace(eligibility, "POLICY_NEVER", lambda _: "nobody's policy")


def budgets_are_ignored(patches: Patches) -> None:
    """No disruption violates a budget."""
    patches.replace(dryrun, "split_by_budgets", lambda _: lambda victims, _budgets: ((), tuple(victims)))


def equals_are_evicted(patches: Patches) -> None:
    """Pods of the same priority are potential victims."""

    def make(original: Any) -> Any:
        def init(self: DryRun, nodes: Any, priority: int, budgets: Any, wanted: int) -> None:
            original(self, nodes, priority + 1, budgets, wanted)

        return init

    patches.replace(DryRun, "__init__", make)
    patches.replace(dry_runs, "_lower", lambda original: lambda info, priority: original(info, priority + 1))


def device_taints_are_ignored(patches: Patches) -> None:
    """Tainted devices are used."""

    def make(original: Any) -> Any:
        return lambda gate: original(gate) - {features.DEVICE_TAINTS}

    patches.replace(plugin_component, "allocator_features", make)
