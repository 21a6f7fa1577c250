"""All seeded faults, and the scenario that is expected to catch each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from support import mutants_actuating as actuating
from support import mutants_holding as holding
from support import mutants_simulating as simulating
from support.mutants_patching import Patches


@dataclass(frozen=True, slots=True)
class Fault:
    """One wrong version of the core; `likely` is the scenario that is tried first."""

    apply: Callable[[Patches], None]
    likely: str

    @property
    def name(self) -> str:
        """What the fault is called."""
        return self.apply.__name__.replace("_", "-")

    @property
    def text(self) -> str:
        """What is wrong, in a sentence."""
        return (self.apply.__doc__ or "").strip()


FAULTS = (
    Fault(holding.no_deferral, "no-second-victim-before-the-first-is-free"),
    Fault(holding.no_hold, "an-equal-rival-that-comes-first-does-not-get-it"),
    Fault(holding.hold_the_victims_claims, "the-surplus-is-nobodys-until-it-is-free"),
    Fault(holding.hold_bare_devices, "forty-and-forty-of-eighty"),
    Fault(holding.proposals_are_not_recomputed, "window"),
    Fault(holding.second_pass_computes_its_own, "the-device-that-is-free-in-both-passes"),
    Fault(holding.no_second_pass, "the-surplus-is-nobodys-until-it-is-free"),
    Fault(holding.literal_second_pass, "a-device-free-in-both-passes-beats-the-surplus"),
    Fault(holding.victim_claims_not_subtracted, "forty-and-forty-of-eighty"),
    Fault(holding.subtracted_once_per_nominated_pod, "one-victim-for-two"),
    Fault(simulating.no_reprieve, "only-the-share-that-is-needed"),
    Fault(simulating.a_reprieved_share_counts_twice, "only-the-share-that-is-needed"),
    Fault(simulating.a_shared_claim_goes_with_its_first_user, "survivor-keeps-the-claim"),
    Fault(simulating.a_terminating_user_stays, "a-sharer-that-terminates-already-does-not-stay"),
    Fault(simulating.network_devices_are_freed, "a-claim-with-a-network-device-stays"),
    Fault(simulating.group_members_are_freed, "group-members-are-left-alone"),
    Fault(simulating.extended_resources_are_freed, "a-claim-of-an-extended-resource-stays"),
    Fault(simulating.policy_never_is_ignored, "never-preempts"),
    Fault(simulating.budgets_are_ignored, "budgets-count-for-devices-too"),
    Fault(simulating.equals_are_evicted, "equals-are-not-evicted-for-a-device"),
    Fault(simulating.device_taints_are_ignored, "a-tainted-device-is-no-reason-to-evict"),
    Fault(actuating.holds_stop_higher_priorities, "a-greater-rival-takes-it-and-the-preemptor-preempts-again"),
    Fault(actuating.lower_nominations_stay, "a-lesser-nomination-goes-when-a-greater-preempts"),
    Fault(actuating.a_pod_update_loses_the_nomination, "updates-of-the-preemptor-keep-its-hold"),
    Fault(actuating.a_refused_deletion_keeps_the_nomination, "all-deletions-are-refused-for-a-while"),
    Fault(holding.victim_claims_dropped_with_their_preemptor, "what-a-deleted-preemptor-had-freed-is-still-awaited"),
    Fault(holding.a_settled_claim_unsettles, "a-claim-that-is-allocated-again-is-not-awaited-again"),
    Fault(holding.expiry_after_five_minutes, "a-stuck-controller-costs-nobody-else"),
    Fault(actuating.no_wake_up_at_the_end_of_a_hold, "a-hold-that-ends-wakes-who-waited-for-it"),
    Fault(actuating.wake_ups_withheld_too_widely, "a-stuck-claim-does-not-blind-the-preemptor"),
    Fault(actuating.wake_ups_not_withheld, "sleeps-until-the-last-of-two-claims"),
    Fault(holding.nothing_restored, "window-dynamicresources-restarts"),
)
