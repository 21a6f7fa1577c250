"""Seeded faults of actuating and waking: the framework's nominator, the execution, queueing hints."""

from __future__ import annotations

from typing import Any

from earmark.dynamicresources import hints
from earmark.dynamicresources.hints import Hint
from earmark.framework.filtering import NodeFilter
from earmark.framework.nominator import Nominator
from earmark.framework.preempting import Preempting
from earmark.preemption.execute import Executor
from support.mutants_patching import Patches


def holds_stop_higher_priorities(patches: Patches) -> None:
    """Pass 1 adds every nominated pod, whatever its priority."""

    def nominated(self: NodeFilter, node: str) -> tuple[str, ...]:
        return tuple(item.uid for item in self._nominator.on_node(node) if item.uid != self._pod.uid)

    patches.replace(NodeFilter, "nominated", lambda _: nominated)


def lower_nominations_stay(patches: Patches) -> None:
    """Nominations of lower priority on the chosen node are not cleared."""

    async def nothing(self: Any, order: Any) -> None:
        """Clear nothing."""

    patches.replace(Executor, "_clear_lower_nominations", lambda _: nothing)


def a_pod_update_loses_the_nomination(patches: Patches) -> None:
    """Every update of the preemptor deletes its nomination, and adds it again only if the update carries it."""

    def make(original: Any) -> Any:
        def seen(self: Nominator, old: Any, new: Any) -> Any:
            change = original(self, old, new)
            if old is not None and old.metadata.labels != new.metadata.labels:
                return self.clear(new.metadata.uid)
            return change

        return seen

    patches.replace(Nominator, "pod_seen", make)


def a_refused_deletion_keeps_the_nomination(patches: Patches) -> None:
    """Victims were not deleted, and the preemptor waits for them."""

    async def nothing(self: Any, nomination: Any, not_deleted: Any) -> None:
        """Give nothing up."""

    patches.replace(Preempting, "give_up", lambda _: nothing)


def no_wake_up_at_the_end_of_a_hold(patches: Patches) -> None:
    """Who was kept away by a hold is not told that it has ended."""
    patches.replace(hints, "_after_hold", lambda _: lambda *_: Hint.SKIP)


def wake_ups_withheld_too_widely(patches: Patches) -> None:
    """While any claim of the node is awaited no release wakes the preemptor."""

    def make(original: Any) -> Any:
        def after(world: Any, pod: Any, *rest: Any) -> Hint:
            nomination = world.nominations.get(pod.uid)
            if nomination is not None and world.victim_claims.on(nomination.node):
                return Hint.SKIP
            return Hint(original(world, pod, *rest))

        return after

    patches.replace(hints, "_after_deallocation", make)


def wake_ups_not_withheld(patches: Patches) -> None:
    """Each released claim of the node wakes the preemptor."""
    patches.replace(hints, "_after_deallocation", lambda _: lambda *_: Hint.QUEUE)
