"""How the plugin asks the allocator: one place that knows its interface, its error kinds and its results.

What a node's ledgers are is forks.py's; what the answer means as a status is filtering.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.allocator import AllocationError, Allocator, NodeFacts, Outcome, Problem
from earmark.dynamicresources.allocator import features as names
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, ResourceClaim

# Which gate turns which feature of the allocator on (upstream A0.2, AllocatorFeatures).
_FEATURES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (names.ADMIN_ACCESS, ("DRAAdminAccess",)),
    (names.PRIORITIZED_LIST, ("DRAPrioritizedList",)),
    (names.PARTITIONABLE_DEVICES, ("DRAPartitionableDevices",)),
    (names.DEVICE_TAINTS, ("DRADeviceTaints",)),
    (names.DEVICE_BINDING_AND_STATUS, ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")),
    (names.CONSUMABLE_CAPACITY, ("DRAConsumableCapacity",)),
    (names.FRACTIONAL_CAPACITY_RANGE, ("DRAFractionalCapacityRange",)),
    (names.LIST_TYPE_ATTRIBUTES, ("DRAListTypeAttributes",)),
    (names.OPTIONAL_NODE_OPERATIONS, ("DRAOptionalNodeOperations",)),
    (names.DERIVED_ATTRIBUTES, ("DRADerivedAttributes",)),
    (names.COMPATIBILITY_GROUPS, ("DRADeviceCompatibilityGroups",)),
    (names.LATER_FIXES, ("EarmarkFixesAfter137",)),
)


def allocator_features(gate: Callable[[str], bool]) -> frozenset[str]:
    """Return the allocator's features for the feature gates."""
    return frozenset(feature for feature, gates in _FEATURES if all(gate(name) for name in gates))


@dataclass(frozen=True, slots=True)
class Question:
    """One node with the ledgers in which a device must be free, all of them."""

    node: NodeFacts
    ledgers: tuple[Ledger, ...]


Answer = tuple[AllocationResult, ...] | AllocationError | None
"""Results per claim, in order; None where they do not fit; or why there is no answer."""


class Fit:
    """Results by claim UID, made when somebody wants them: of a thousand feasible nodes one is reserved."""

    __slots__ = ("_claims", "_made", "_make")

    def __init__(self, claims: Sequence[ResourceClaim], make: Callable[[], Sequence[AllocationResult]]) -> None:
        self._claims = tuple(claims)
        self._make = make
        self._made: Mapping[str, AllocationResult] | None = None

    @property
    def results(self) -> Mapping[str, AllocationResult]:
        """The results, the same ones every time. By UID, so that no position can be mixed up (upstream B8.6)."""
        if self._made is None:
            self._made = {claim.metadata.uid: result for claim, result in zip(self._claims, self._make(), strict=True)}
        return self._made


Searching = Callable[[str], Callable[[int, int, int], None]]
"""Called with a kind of search as it begins; what it returns is called with the numbers of nodes at its end: those
with an answer, without one, and with an error."""


def _not_measured(_found: int, _none: int, _errors: int) -> None:
    """Nobody measures."""


class Solver:
    """Asks the allocator, and keeps it for as long as the inventory is the same."""

    def __init__(
        self,
        features: frozenset[str],
        share_id: Callable[[], str],
        deadline: Callable[[], Callable[[], bool]],
        judge: Judge | None = None,
        searching: Searching = lambda _kind: _not_measured,
    ) -> None:
        """`share_id()` gives fresh share IDs; `deadline()` starts the time for one call and says when it is over.

        judge: evaluates selectors; by default CEL does. searching: hears of each call, for whoever measures.
        """
        self._searching = searching
        self._judge = judge
        self._features = features
        self._share_id = share_id
        self._deadline = deadline
        self._allocator: Allocator | None = None

    def prepare(self, inventory: Inventory, claims: Sequence[ResourceClaim]) -> Problem:
        """Read claims; what is wrong with them is told by the answers."""
        if self._allocator is None:
            self._allocator = Allocator(inventory, self._features, judge=self._judge)
        elif self._allocator.inventory is not inventory:
            self._allocator = self._allocator.on(inventory)
        return self._allocator.prepare(tuple(claims))

    def ask(
        self,
        problem: Problem,
        question: Question,
        only: Sequence[AllocationResult] | None = None,
    ) -> Answer:
        """Answer for one node; with `only`, whether exactly these results can be had."""
        ended = self._searching("one")
        try:
            answer = problem.allocate(
                question.node,
                question.ledgers,
                expired=self._deadline(),
                share_id=self._share_id,
                only=None if only is None else tuple(only),
            )
        except AllocationError as error:
            ended(0, 0, 1)
            return error
        ended(int(answer is not None), int(answer is None), 0)
        return answer

    def ask_many(
        self, problem: Problem, claims: Sequence[ResourceClaim], questions: Sequence[Question]
    ) -> list[Fit | AllocationError | None]:
        """Answer for many nodes, in order; equal problems are solved once."""
        ended = self._searching("filter")
        outcomes = problem.allocate_many(
            [(question.node, question.ledgers) for question in questions], expired=self._deadline()
        )
        errors = sum(outcome.error is not None for outcome in outcomes)
        found = sum(outcome.error is None and outcome.fits for outcome in outcomes)
        ended(found, len(outcomes) - found - errors, errors)
        return [self._fit(claims, outcome) for outcome in outcomes]

    def fit_many(self, problem: Problem, questions: Sequence[Question]) -> list[bool | AllocationError]:
        """Answer only yes or no for many nodes, in order."""
        ended = self._searching("dry_run")
        queries = [(question.node, question.ledgers) for question in questions]
        answers = problem.fits_many(queries, expired=self._deadline())
        found, none = answers.count(True), answers.count(False)
        ended(found, none, len(answers) - found - none)
        return answers

    def _fit(self, claims: Sequence[ResourceClaim], outcome: Outcome) -> Fit | AllocationError | None:
        if outcome.error is not None:
            return outcome.error
        return Fit(claims, lambda: outcome.results(self._share_id) or ()) if outcome.fits else None
