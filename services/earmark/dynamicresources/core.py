"""One session's view of the plugin: the state, the cycles over it, and everything the RPCs ask for, without any I/O.

The scheduler's core lives as long as the process and is fed by the informers. A sandbox has a core of its own over the
same state as it was: what it does stays in it. All methods are synchronous; each leaves a consistent state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from earmark.dynamicresources.claims import UnresolvedClaim, resolve
from earmark.dynamicresources.cycles import Cycle, ForkShape, open_cycle
from earmark.dynamicresources.eligibility import eligible_to_preempt
from earmark.dynamicresources.facts import PodFacts, PodRef
from earmark.dynamicresources.filtering import NodeCheck, Verdict, run_filter
from earmark.dynamicresources.happened import Happened, PodChanged
from earmark.dynamicresources.hints import Hint, hint
from earmark.dynamicresources.nominating import (
    Known,
    Proposal,
    Proposed,
    Removal,
    add_nominated_pod,
    confirm_nominated_pod,
    drop_proposal,
    reconcile,
    remove_nominated_pod,
    results_free,
)
from earmark.dynamicresources.nominations import ClaimNomination, Phase
from earmark.dynamicresources.reserving import Reserved, bound, pre_bound, reserve, unreserve
from earmark.dynamicresources.scoring import score
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.solving import Solver
from earmark.dynamicresources.state import Change, World
from earmark.dynamicresources.statuses import CLEANING_UP, STATE_NOT_SEEN, SUCCESS, Status, unresolvable, unschedulable
from earmark.dynamicresources.wakeups import WakeUp, WakeUpLog

Listener = Callable[[World, tuple[Happened, ...]], None]

# Verdicts of cycles that have ended; a call is repeated within seconds, if at all.
KEPT_VERDICTS = 1024


_log = logging.getLogger(__name__)


class UnknownCycle(Exception):
    """A cycle that this session does not have: never opened, ended, or lost with an earlier process."""

    def __init__(self, cycle_id: str) -> None:
        super().__init__(f"unknown cycle {cycle_id!r}")


class Core:
    """State and cycles of one session (or of the scheduler, over all its sessions)."""

    def __init__(self, world: World, settings: Settings, solver: Solver, new_id: Callable[[], str]) -> None:
        """Start from a state. `new_id` names cycles."""
        self.world = world
        self.wake_ups = WakeUpLog()
        self._settings = settings
        self._solver = solver
        self._new_id = new_id
        self._cycles: dict[str, Cycle] = {}
        # By cycle: what EndCycle has answered, for calls that are repeated.
        self._verdicts: dict[str, Hint] = {}
        self._listeners: list[Listener] = []
        # UIDs of pods that sleep only because the caches were behind what the framework has seen of them.
        self._unseen: dict[str, None] = {}

    # --- state -------------------------------------------------------------------------------------------------------

    def listen(self, listener: Listener) -> None:
        """Call `listener` with each change, after the state has it and before anybody is woken."""
        self._listeners.append(listener)

    def commit(self, change: Change) -> None:
        """Take a new state over: ledger and latches are in it, then listeners hear of it, then pods wake (F34)."""
        self.world, happened = change
        for listener in self._listeners:
            listener(self.world, happened)
        if not happened:
            return
        for event in happened:
            self.wake_ups.happened(self.world.revision, event, self._judge)
            if isinstance(event, PodChanged) and event.new is None:
                self._unseen.pop(_about(event), None)
        self._prune()

    def _judge(self, pod_uid: str, event: Happened) -> Hint:
        if isinstance(event, PodChanged) and pod_uid in self._unseen and _about(event) == pod_uid:
            # It was not tried, so there is nothing to back off from.
            return Hint.ACTIVATE
        return hint(
            self.world,
            pod_uid,
            event,
            preemption=self._settings.preemption,
            results_free=lambda world, nomination: results_free(world, nomination, self._solver),
        )

    def _prune(self) -> None:
        waiting = [cycle.world.revision for cycle in self._cycles.values() if not cycle.reserved]
        self.wake_ups.prune(min(waiting, default=None))

    # --- cycles ------------------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: PodFacts | None, ref: PodRef) -> Status:
        """Say whether a pod may enter the active queue; one that may not sleeps (upstream B5)."""
        if pod is None:
            self.wake_ups.sleep(ref)
            self._unseen[ref.uid] = None
            return unresolvable(STATE_NOT_SEEN)
        self._unseen.pop(ref.uid, None)
        try:
            resolve(pod, self.world.claim)
        except UnresolvedClaim as reason:
            self.wake_ups.sleep(ref)
            return unresolvable(str(reason))
        self.wake_ups.forget(ref.uid)
        return SUCCESS

    def pre_filter(self, pod: PodFacts, *, not_seen: bool = False, cleaning: bool = False) -> Cycle:
        """Open a cycle at the present revision.

        not_seen: the caches lack what the framework has: the pod is tried again. cleaning: what an earlier attempt has
        written is being taken back: the pod sleeps until that is done.
        """
        # A pod has one attempt at a time: what an earlier one left open was lost with its caller.
        for cycle_id in [cycle.id for cycle in self._cycles.values() if cycle.pod.uid == pod.uid]:
            del self._cycles[cycle_id]
        self.wake_ups.forget(pod.uid)
        if not_seen:
            cycle = Cycle(self._new_id(), pod, self.world, unschedulable(STATE_NOT_SEEN), retry=True)
        elif cleaning:
            cycle = Cycle(self._new_id(), pod, self.world, unschedulable(CLEANING_UP))
        else:
            cycle = open_cycle(self._new_id(), self.world, pod, self._settings, self._solver)
        self._cycles[cycle.id] = cycle
        return cycle

    def cycle(self, cycle_id: str) -> Cycle:
        """Return an open cycle. Raises UnknownCycle."""
        found = self._cycles.get(cycle_id)
        if found is None:
            raise UnknownCycle(cycle_id)
        return found

    def open_cycles(self) -> tuple[Cycle, ...]:
        """Return all open cycles."""
        return tuple(self._cycles.values())

    def filter(self, cycle: Cycle, checks: Sequence[NodeCheck], now: datetime) -> list[Verdict]:
        """Run both passes and keep the results."""
        verdicts = run_filter(cycle, checks, self._settings, self._solver, now, keep=True)
        for item in cycle.ignored_holds.values():
            _log.warning("the hold of %s on node %s conflicts with an earlier one", item.pod.name, item.node)
        cycle.ignored_holds.clear()
        return verdicts

    def filter_forks(self, cycle: Cycle, checks: Sequence[NodeCheck], now: datetime) -> list[Verdict]:
        """Run both passes on forks and keep nothing."""
        shaped = [self._shaped(cycle, check) for check in checks]
        return run_filter(cycle, shaped, self._settings, self._solver, now, keep=False)

    @staticmethod
    def _shaped(cycle: Cycle, check: NodeCheck) -> NodeCheck:
        """A query that names no pods looks at the fork as unary calls have left it."""
        shape = cycle.forks.get(check.node)
        if shape is None or check.removed or check.nominated:
            return check
        return NodeCheck(check.node, tuple(shape.removed), tuple(shape.nominated))

    @staticmethod
    def add_pod(cycle: Cycle, node: str, pod_uid: str) -> None:
        """AddPod: take RemovePod back, or apply a nominated pod's hold."""
        shape = cycle.forks.setdefault(node, ForkShape())
        if pod_uid in shape.removed:
            del shape.removed[pod_uid]
        else:
            shape.nominated[pod_uid] = None

    @staticmethod
    def remove_pod(cycle: Cycle, node: str, pod_uid: str) -> None:
        """RemovePod: take AddPod back, or take the pod away."""
        shape = cycle.forks.setdefault(node, ForkShape())
        if pod_uid in shape.nominated:
            del shape.nominated[pod_uid]
        else:
            shape.removed[pod_uid] = None

    @staticmethod
    def score(cycle: Cycle, nodes: Sequence[str]) -> list[int]:
        """Score nodes that passed Filter."""
        return score(cycle, nodes)

    def end_cycle(self, ref: PodRef, cycle_id: str, *, rejected: bool, bound_now: bool, deleted: bool) -> Hint:
        """Close a cycle. A pod that this plugin rejected sleeps unless something happened since its revision.

        Works without the cycle: then nobody knows what has happened since, and the pod is queued. A repeated call gets
        the first one's verdict and changes nothing: what has happened in between went out as a wake-up.
        """
        cycle = self._cycles.pop(cycle_id, None)
        if not any(other.pod.uid == ref.uid for other in self._cycles.values()):
            # A late call for an earlier cycle must not touch what the present one has proposed.
            self.commit(drop_proposal(self.world, ref.uid))
        if bound_now:
            self.commit((bound(self.world, ref.uid), ()))
            self.remove_nominated_pod(ref.uid, None, Removal.BOUND, ())
        verdict = Hint.SKIP
        if rejected:
            known = self._verdicts.get(cycle_id) if cycle is None else None
            verdict = self._verdict(ref, cycle) if known is None else known
            if cycle is not None:
                self._remember(cycle_id, verdict)
            if verdict is Hint.SKIP and known is None:
                self.wake_ups.sleep(ref)
        if deleted or bound_now:
            self.wake_ups.forget(ref.uid)
        self._prune()
        return verdict

    def _remember(self, cycle_id: str, verdict: Hint) -> None:
        self._verdicts[cycle_id] = verdict
        if len(self._verdicts) > KEPT_VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]

    def _verdict(self, ref: PodRef, cycle: Cycle | None) -> Hint:
        events = None if cycle is None else self.wake_ups.since(cycle.world.revision)
        if cycle is None or events is None or cycle.retry:
            return Hint.QUEUE
        return max((self._judge(ref.uid, event) for event in events), default=Hint.SKIP)

    def abandon_cycles(self) -> None:
        """A new scheduler session: no cycle of an earlier one will be named again."""
        self._cycles.clear()
        self.wake_ups.forget_all()
        self._prune()

    def connect(self, last_number: int, sleepers: Iterable[PodRef]) -> tuple[WakeUp, ...]:
        """Return what a framework that connects has missed. Preemptors whose wait is over are retried at once (F31)."""
        return self.wake_ups.connect(last_number, sleepers, self._wait_is_over)

    def _wait_is_over(self, pod_uid: str) -> bool:
        nomination = self.world.nominations.live.get(pod_uid)
        if nomination is None or nomination.phase is Phase.ASSIGNED:
            return False
        if not self.world.victim_claims.on(nomination.node):
            return True
        return bool(nomination.results) and results_free(self.world, nomination, self._solver)

    # --- reserve -----------------------------------------------------------------------------------------------------

    def reserve(self, cycle: Cycle, node: str) -> Reserved:
        """Take the node's results in flight."""
        answer = reserve(self.world, cycle, node, self._solver)
        if answer.status.success:
            # What other nodes would have given is not needed while the pod is being bound.
            cycle.results = {name: fit for name, fit in cycle.results.items() if name == node}
        self.commit((answer.world, answer.happened))
        return answer

    def pre_bound(self, pod_uid: str) -> None:
        """PreBind has written everything."""
        self.commit((pre_bound(self.world, pod_uid), ()))

    def unreserve(self, pod_uid: str, uncertain: Iterable[str] = ()) -> None:
        """Give back what the pod has in flight."""
        self.commit(unreserve(self.world, pod_uid, self._solver, uncertain=tuple(uncertain)))

    # --- nominations -------------------------------------------------------------------------------------------------

    def add_nominated_pod(self, proposal: Proposal) -> Proposed:
        """Propose a nomination; without the gate nothing is recorded."""
        if not self._settings.preemption:
            return Proposed(self.world, SUCCESS)
        answer = add_nominated_pod(self.world, proposal, self._solver)
        self.commit((answer.world, ()))
        return answer

    def confirm_nominated_pod(self, pod_uid: str, generation: int) -> None:
        """Make a proposal the nomination."""
        self.commit(confirm_nominated_pod(self.world, pod_uid, generation, self._solver))

    def remove_nominated_pod(
        self, pod_uid: str, generation: int | None, reason: Removal, victims_not_deleted: Iterable[str]
    ) -> None:
        """Remove a nomination; wakes whom its hold was against if its capacity is free."""
        self.commit(
            remove_nominated_pod(self.world, pod_uid, generation, reason, frozenset(victims_not_deleted), self._solver)
        )

    def eligible_to_preempt(self, pod_uid: str, node: str) -> tuple[bool, str]:
        """Say whether a nominated pod may preempt again."""
        if not self._settings.preemption:
            return True, ""
        return eligible_to_preempt(
            self.world, pod_uid, node, defer_pods_without_claims=self._settings.defer_pods_without_claims
        )

    def reconcile(self, known: Iterable[Known]) -> tuple[str, ...]:
        """Take over the framework's nominator; return the UIDs of the pods whose nomination is held now."""
        self.commit(reconcile(self.world, known if self._settings.preemption else (), self._solver))
        return tuple(sorted(self.world.nominations.live))

    def nominations(self) -> tuple[ClaimNomination, ...]:
        """Return every nomination that is held or proposed."""
        return self.world.nominations.all()


def _about(event: PodChanged) -> str:
    pod = event.new if event.new is not None else event.old
    return pod.uid if pod is not None else ""
