"""The allocator as the service uses it: Allocator -> Problem -> answers for nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.answers import Answers, Outcome, Query, Remembered
from earmark.dynamicresources.allocator.errors import AllocationError
from earmark.dynamicresources.allocator.judge import CelJudge
from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.allocator.requests import Claim, read_claims
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.allocator.signature import Interner
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, ResourceClaim

# Shapes of pods whose answers are kept, and how many answers each may have.
_SHAPES = 32
_ANSWERS = 100_000

# Numbers of content that is gone stay in the interner; beyond this many it is begun anew.
_MANY = 2_000_000


class Allocator:
    """Answers for one revision of the inventory. It keeps compiled selectors, so make the next one with `on`."""

    def __init__(self, inventory: Inventory, features: frozenset[str] = gates.DEFAULT_FEATURES, *,
                 channel: str = "", judge: Judge | None = None, interner: Interner | None = None) -> None:  # fmt: skip
        """Make an allocator.

        features: names of allocator.features. channel: force one of upstream's variants. judge: evaluates selectors; by
        default CEL does. Raises UnsupportedFeatures if no variant supports the features.
        """
        self.inventory = inventory
        self.features = frozenset(features)
        self.variant = gates.variant_for(self.features, channel)
        self._channel = channel
        self._judge = judge if judge is not None else CelJudge()
        self._interner = interner if interner is not None else Interner()
        self._remembered: dict[object, Remembered] = {}

    def on(self, inventory: Inventory) -> Allocator:
        """Return an allocator for another revision of the inventory, with what has been compiled so far."""
        fresh = len(self._interner) >= _MANY
        interner = None if fresh else self._interner
        new = Allocator(inventory, self.features, channel=self._channel, judge=self._judge, interner=interner)
        if not fresh:
            new._remembered = self._remembered
        return new

    def prepare(self, claims: Sequence[ResourceClaim]) -> Problem:
        """Read the claims that a pod still needs allocated, in the order of its spec (upstream A4.1).

        Errors in the claims are raised by the answers, since others may come before them.
        """
        read = read_claims(claims, self.inventory, self.features, self.variant)
        reads = self._interner.read_set(self._names(read), gates.DEVICE_TAINTS in self.features)
        remembered = self._recall(claims, read)
        return Problem(Answers(self.inventory, self.features, self.variant, self._judge, read, reads, remembered))

    def _recall(self, claims: Sequence[ResourceClaim], read: tuple[Claim, ...]) -> Remembered:
        """Return the answers of problems of the same shape: equal claims and classes, whatever the claims' names."""
        classes = [
            alternative.device_class.spec
            for claim in read
            for request in claim.requests
            for alternative in request.alternatives
        ]
        shape = msgspec.json.encode(([claim.spec for claim in claims], classes))
        found = self._remembered.pop(shape, None)
        if found is None or len(found) > _ANSWERS:
            found = Remembered()
        # The one that was used last is last.
        self._remembered[shape] = found
        if len(self._remembered) > _SHAPES:
            del self._remembered[next(iter(self._remembered))]
        return found

    def _names(self, claims: tuple[Claim, ...]) -> set[str] | None:
        """The attributes that selectors and constraints can read, None for all."""
        names: set[str] = set()
        for claim in claims:
            for constraint in claim.constraints:
                names.update(name for name in (constraint.match_attribute, constraint.distinct_attribute) if name)
            for request in claim.requests:
                for alternative in request.alternatives:
                    for expression in (*dict(alternative.expressions), *alternative.derived.values()):
                        read = self._judge.reads(expression)
                        if read is None:
                            return None
                        names |= read
        return names


class Problem:
    """The claims of one pod against one inventory; answers for any node and ledgers."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def allocate(
        self,
        node: NodeFacts,
        ledgers: Sequence[Ledger],
        *,
        expired: Callable[[], bool],
        share_id: Callable[[], str],
        only: Sequence[AllocationResult] | None = None,
    ) -> tuple[AllocationResult, ...] | None:
        """Return one AllocationResult per claim, or None if the claims do not fit the node.

        ledgers: a device, counter or capacity must be free in each of them (F5). expired: whether the search has used
        up its time. share_id: makes a fresh ID for every share. only: allow exactly these devices, one result per
        claim, and nothing else: stored results that may have become invalid (F22, F38, E55). They are returned
        unchanged, except that a share ID that is in use by now is replaced (F36).

        Raises AllocationError.
        """
        if only is not None:
            return self._answers.stored(node, ledgers, only, expired, share_id)
        return self._answers.outcome(node, ledgers, expired).results(share_id)

    def allocate_many(self, queries: Sequence[Query], *, expired: Callable[[], bool]) -> list[Outcome]:
        """Answer for many nodes; equal problems are solved once. Errors are in the outcomes."""
        return [self._answers.outcome(node, ledgers, expired) for node, ledgers in queries]

    def fits_many(self, queries: Sequence[Query], *, expired: Callable[[], bool]) -> list[bool | AllocationError]:
        """Answer only yes or no for many nodes, as a dry run needs it; an error takes the answer's place."""
        return [self._answers.fits(node, ledgers, expired) for node, ledgers in queries]
