"""The allocator as the service uses it: Allocator -> Problem -> answers for nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.compile import Compiled, Compiler
from earmark.dynamicresources.allocator.decode import decode
from earmark.dynamicresources.allocator.errors import FATAL, NODE, TIMEOUT, AllocationError
from earmark.dynamicresources.allocator.integers import Expired, Landmine, Solution
from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.allocator.only import kept, restrict
from earmark.dynamicresources.allocator.pools import gather_pools
from earmark.dynamicresources.allocator.requests import Claim, read_claims
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.allocator.solve import solve
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, ResourceClaim

Query = tuple[NodeFacts, Sequence[Ledger]]


class Allocator:
    """Answers for one revision of the inventory. It keeps compiled selectors, so make the next one with `on`."""

    def __init__(self, inventory: Inventory, features: frozenset[str] = gates.DEFAULT_FEATURES, *,
                 channel: str = "", judge: Judge | None = None) -> None:  # fmt: skip
        """Make an allocator.

        features: names of allocator.features. channel: force one of upstream's variants.
        Raises UnsupportedFeatures if no variant supports the features.
        """
        self.inventory = inventory
        self.features = frozenset(features)
        self.variant = gates.variant_for(self.features, channel)
        self._channel = channel
        self._judge = judge if judge is not None else _cel_judge()

    def on(self, inventory: Inventory) -> Allocator:
        """Return an allocator for another revision of the inventory, with the same compiled selectors."""
        return Allocator(inventory, self.features, channel=self._channel, judge=self._judge)

    def prepare(self, claims: Sequence[ResourceClaim]) -> Problem:
        """Read the claims that a pod still needs allocated, in the order of its spec (upstream A4.1).

        Errors in the claims are raised by the answers, since others may come before them.
        """
        read = read_claims(claims, self.inventory, self.features, self.variant)
        return Problem(self.inventory, self.features, self.variant, self._judge, read)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for one node: an error, "does not fit", or results that are made when they are asked for."""

    error: AllocationError | None
    _decode: Callable[[Callable[[], str]], tuple[AllocationResult, ...]] | None

    @property
    def fits(self) -> bool:
        """Whether all claims can be allocated."""
        return self._decode is not None

    def results(self, share_id: Callable[[], str]) -> tuple[AllocationResult, ...] | None:
        """Return one result per claim, None if they do not fit. Raises AllocationError."""
        if self.error is not None:
            raise self.error.again()
        return None if self._decode is None else self._decode(share_id)


class Problem:
    """The claims of one pod against one inventory; answers for any node and ledgers."""

    def __init__(self, inventory: Inventory, features: frozenset[str], variant: str, judge: Judge,
                 claims: tuple[Claim, ...]) -> None:  # fmt: skip
        self._inventory = inventory
        self._features = features
        self._variant = variant
        self._judge = judge
        self._claims = claims

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
            return self._stored(node, ledgers, only, expired, share_id)
        return self._outcome(node, ledgers, expired).results(share_id)

    def allocate_many(self, queries: Sequence[Query], *, expired: Callable[[], bool]) -> list[Outcome]:
        """Answer for many nodes; equal problems are solved once. Errors are in the outcomes."""
        return [self._outcome(node, ledgers, expired) for node, ledgers in queries]

    def fits_many(self, queries: Sequence[Query], *, expired: Callable[[], bool]) -> list[bool | AllocationError]:
        """Answer only yes or no for many nodes, as a dry run needs it; an error takes the answer's place."""
        outcomes = self.allocate_many(queries, expired=expired)
        return [outcome.fits if outcome.error is None else outcome.error for outcome in outcomes]

    def _compile(self, node: NodeFacts, ledgers: Sequence[Ledger]) -> Compiled:
        pools = gather_pools(self._inventory, node, self._features)
        return Compiler(self._claims, self._features, self._variant, self._judge, node, pools, ledgers).compile()

    def _outcome(self, node: NodeFacts, ledgers: Sequence[Ledger], expired: Callable[[], bool]) -> Outcome:
        try:
            compiled = self._compile(node, ledgers)
            solution = _search(self._claims, compiled, expired)
        except AllocationError as error:
            return Outcome(error, None)
        if solution is None:
            return Outcome(None, None)
        found = solution

        def decoded(share_id: Callable[[], str]) -> tuple[AllocationResult, ...]:
            return decode(self._claims, compiled, found, self._features, self._variant, share_id)

        try:
            decoded(lambda: "")
        except AllocationError as error:
            return Outcome(error, None)
        return Outcome(None, decoded)

    def _stored(
        self,
        node: NodeFacts,
        ledgers: Sequence[Ledger],
        only: Sequence[AllocationResult],
        expired: Callable[[], bool],
        share_id: Callable[[], str],
    ) -> tuple[AllocationResult, ...] | None:
        compiled = self._compile(node, ledgers)
        if not restrict(compiled, only):
            return None
        solution = _search(self._claims, compiled, expired)
        if solution is None:
            return None
        now = decode(self._claims, compiled, solution, self._features, self._variant, share_id)
        return kept(only, now, ledgers, share_id)


def _search(claims: tuple[Claim, ...], compiled: Compiled, expired: Callable[[], bool]) -> Solution | None:
    try:
        solution = solve(compiled.task, expired)
    except Expired:
        text = "filter operation aborted: context deadline exceeded"
        raise AllocationError(TIMEOUT, text) from None
    except Landmine as mine:
        raise AllocationError(FATAL, _mine_text(claims, compiled, mine)) from None
    if solution is None and compiled.invalid_pools:
        raise AllocationError(NODE, "invalid resource pools were encountered")
    return solution


def _mine_text(claims: tuple[Claim, ...], compiled: Compiled, mine: Landmine) -> str:
    alternative = compiled.alternatives[mine.choice]
    row, position = compiled.locate(mine.device)
    device = f"{row.view.driver}/{row.view.pool[1]}/{row.view.devices[position].name}"
    if mine.reason == "refused":
        return f"{alternative.place}: cannot add device {device} because a claim constraint would not be satisfied"
    if mine.reason == "derived":
        constraint = claims[alternative.claim].constraints[mine.constraint]
        name = constraint.match_attribute or constraint.distinct_attribute
        text = compiled.derive_texts[mine.choice, mine.constraint, mine.device]
        return f"evaluate derived attribute {name} on device {device} failed: {text}"
    return compiled.mine_texts[mine.choice, mine.device]


def _cel_judge() -> Judge:
    from earmark.dynamicresources.allocator.judge import CelJudge

    return CelJudge()
