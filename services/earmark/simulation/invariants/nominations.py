"""Every claim nomination belongs to a live pod which the nominator has on the same node, or is only proposed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from earmark.simulation.invariants.base import Broken

NOMINATION = "claim nomination has its nominated pod"


@dataclass(frozen=True, slots=True)
class ClaimNomination:
    """What the plugin holds for a pod."""

    pod: str
    uid: str
    node: str
    # Made by a cycle that has not ended: the nominator does not know of it yet.
    proposed: bool = False


def orphaned(
    nominations: Iterable[ClaimNomination],
    nominator: Mapping[str, str],
    live: Collection[str],
    in_cycle: Collection[str] = (),
) -> Iterator[Broken]:
    """Yield claim nominations without a nominated pod.

    Args: `nominator` has the node by pod UID; `live` the UIDs of pods that exist and are not finished; `in_cycle` those
    of pods that are in a scheduling or binding cycle now.
    """
    for nomination in nominations:
        subject = nomination.uid
        if nomination.uid not in live:
            yield Broken(NOMINATION, subject, f"{nomination.pod} is gone; {nomination.node} is still held for it")
        elif nomination.proposed and nomination.uid in in_cycle:
            continue
        elif (node := nominator.get(nomination.uid)) != nomination.node:
            where = f"nominated to {node}" if node else "not nominated"
            yield Broken(NOMINATION, subject, f"{nomination.pod} is {where}; {nomination.node} is held for it")
