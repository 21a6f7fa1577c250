"""Forks: what a node's ledger looks like with pods taken away and with nominated pods added.

A fork is computed from the complete set of pods that count as removed, so it has no history: removing twice, adding
twice, or removing and adding again cannot leave a trace (E14 to E16, F19). Nothing here changes the plugin's state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.nominations import ClaimNomination
from earmark.dynamicresources.releasable import Releases, released
from earmark.dynamicresources.state import World


@dataclass(frozen=True, slots=True)
class Passes:
    """The ledgers of both filter passes on one node (KEP: Holding capacity).

    without: pass 2, as it is. with_nominated: pass 1, with nominated pods added; None where nobody holds anything.
    """

    without: Ledger
    with_nominated: Ledger | None = None
    released: tuple[str, ...] = ()
    ignored: tuple[ClaimNomination, ...] = ()

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """What a device must be free in: every one of these (F5)."""
        if self.with_nominated is None:
            return (self.without,)
        return (self.with_nominated, self.without)


def passes(
    world: World,
    node: str,
    *,
    removed: Sequence[str] = (),
    nominated: Iterable[str] = (),
    pod_uid: str = "",
    own_claims: Collection[str] = (),
    releases: Releases | None = None,
) -> Passes:
    """Return a node's ledgers for a pod.

    removed: UIDs of pods taken away (RemovePod). nominated: UIDs of pods that pass 1 adds (AddPod), in any order.
    own_claims: UIDs of the claims of the pod `pod_uid`. releases: of this world, if it is asked more than once.
    """
    freed = released(world, node, removed, own_claims, releases) if removed else ()
    base = world.ledger.release_all(freed) if freed else world.ledger
    holders = holding(world, node, nominated, pod_uid) if nominated else ()
    if not holders:
        return Passes(base, None, freed)
    ledger, ignored = with_holds(world, node, base, holders, own_claims)
    return Passes(base, ledger if ledger is not base else None, freed, ignored)


def holding(world: World, node: str, nominated: Iterable[str], pod_uid: str) -> tuple[ClaimNomination, ...]:
    """Return the nominations that hold on the node, in the order of application: priority, then generation (F6).

    A nominated pod without a nomination of ours (an external nominatedNodeName, F30) has none.
    """
    found: dict[str, ClaimNomination] = {}
    for uid in nominated:
        nomination = world.nominations.holding(uid, node)
        if nomination is not None and uid != pod_uid:
            found[uid] = nomination
    return tuple(sorted(found.values(), key=lambda item: (-item.priority, item.generation, item.pod.uid)))


def with_holds(
    world: World, node: str, base: Ledger, holders: Sequence[ClaimNomination], own_claims: Collection[str] = ()
) -> tuple[Ledger, tuple[ClaimNomination, ...]]:
    """Apply AddPod of nominated pods: take off the node's victim claims once, then add every stored result.

    All subtractions come before all additions (E60 to E62, F6), so that no hold is taken off again by a later pod's
    victim claims. A nomination that wants a device which an earlier one holds is ignored; those are returned.
    """
    ledger = base.release_all([item.uid for item in world.victim_claims.on(node)])
    taken: dict[tuple[str, str, str], None] = {}
    ignored: list[ClaimNomination] = []
    for nomination in holders:
        # A claim that is allocated or in flight by now counts as what it is (F25).
        results = [
            held for held in nomination.results if not base.holds(held.claim_uid) and held.claim_uid not in own_claims
        ]
        devices = [
            (item.driver, item.pool, item.device)
            for held in results
            for item in held.allocation.devices.results
            if not item.admin_access and item.share_id is None
        ]
        if any(device in taken for device in devices):
            ignored.append(nomination)
            continue
        taken.update(dict.fromkeys(devices))
        for held in results:
            ledger = ledger.charge(held.claim_uid, held.allocation)
    return ledger, tuple(ignored)
