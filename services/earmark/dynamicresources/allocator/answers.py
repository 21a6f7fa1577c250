"""Answers of one problem for many nodes, remembered by what the problem can see of a node and its ledgers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.building import make_skeleton
from earmark.dynamicresources.allocator.compile import compile_task
from earmark.dynamicresources.allocator.decode import decode
from earmark.dynamicresources.allocator.errors import NODE, TIMEOUT, AllocationError
from earmark.dynamicresources.allocator.integers import Expired, Landmine, Solution, Task
from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.allocator.nodeview import NodeView, view_node
from earmark.dynamicresources.allocator.only import kept, restrict
from earmark.dynamicresources.allocator.orderfree import order_free_key
from earmark.dynamicresources.allocator.quick import Quick
from earmark.dynamicresources.allocator.requests import Claim
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.allocator.signature import ReadSet
from earmark.dynamicresources.allocator.skeleton import Skeleton
from earmark.dynamicresources.allocator.solve import solve
from earmark.dynamicresources.allocator.usage import Merged, PoolState
from earmark.dynamicresources.allocator.witness import Witness
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult

Query = tuple[NodeFacts, Sequence[Ledger]]

_Key = tuple[object, ...]
_INVALID = "invalid resource pools were encountered"
_UNREAD: Any = object()


class Outcome:
    """The answer for one node: an error, "does not fit", or results that are made when they are asked for."""

    __slots__ = ("_answers", "_node", "_solution", "_view", "error", "fits")

    def __init__(
        self,
        error: AllocationError | None = None,
        answers: Answers | None = None,
        view: NodeView | None = None,
        node: str = "",
        solution: Solution | None = None,
    ) -> None:
        self.error = error
        self.fits = solution is not None
        self._answers = answers
        self._view = view
        self._node = node
        self._solution = solution

    def results(self, share_id: Callable[[], str]) -> tuple[AllocationResult, ...] | None:
        """Return one result per claim, None if they do not fit. Raises AllocationError."""
        if self.error is not None:
            raise self.error.again()
        if self._solution is None or self._answers is None or self._view is None:
            return None
        return self._answers.decoded(self._view, self._node, self._solution, share_id)


_DOES_NOT_FIT = Outcome()


class Remembered:
    """Answers by signature, for all problems with the same claims but for their names."""

    __slots__ = ("fits", "solutions", "witnesses")

    def __init__(self) -> None:
        self.solutions: dict[_Key, Solution | None] = {}
        self.fits: dict[_Key, bool] = {}
        self.witnesses: dict[int, Witness] = {}

    def __len__(self) -> int:
        return len(self.solutions) + len(self.fits)


class Answers:
    """The problem itself, with its skeletons and what has been answered."""

    def __init__(self, inventory: Inventory, features: frozenset[str], variant: str, judge: Judge,
                 claims: tuple[Claim, ...], reads: ReadSet, remembered: Remembered) -> None:  # fmt: skip
        self._inventory = inventory
        self._features = features
        self._variant = variant
        self._judge = judge
        self._claims = claims
        self._reads = reads
        self._groups = gates.COMPATIBILITY_GROUPS in features
        self._skeletons: dict[int, Skeleton] = {}
        self._solutions = remembered.solutions
        self._fits = remembered.fits
        self._witnesses = remembered.witnesses
        self._quick: dict[int, Quick | None] = {}
        self._views: dict[str, tuple[NodeFacts, NodeView]] = {}
        self._local_only = not inventory.shared_slices()
        alternatives = [
            alternative for claim in claims for request in claim.requests for alternative in request.alternatives
        ]
        # Yes or no does not depend on the order of devices, except where order or use can be seen otherwise.
        self._order_free = not any(
            alternative.all_devices or alternative.admin or alternative.derived for alternative in alternatives
        )

    def outcome(self, node: NodeFacts, ledgers: Sequence[Ledger], expired: Callable[[], bool]) -> Outcome:
        """Answer for a node."""
        try:
            view = self._view(node)
            solution = self._solution(view, node, view.states(ledgers), expired)
            if solution is None:
                return _DOES_NOT_FIT
            many_terms = self._skeletons[view.signature].many_terms
            if many_terms and _touches(solution, many_terms):
                self.decoded(view, node.name, solution, str)
        except AllocationError as error:
            return Outcome(error)
        return Outcome(None, self, view, node.name, solution)

    def decoded(
        self, view: NodeView, node: str, solution: Solution, share_id: Callable[[], str]
    ) -> tuple[AllocationResult, ...]:
        """Return a solution as results. Raises AllocationError."""
        skeleton = self._skeletons[view.signature]
        return decode(self._claims, skeleton, view.numbering, node, solution, self._features, self._variant, share_id)

    def fits(self, node: NodeFacts, ledgers: Sequence[Ledger], expired: Callable[[], bool]) -> bool | AllocationError:
        """Answer yes or no for a node."""
        try:
            view = self._view(node)
            states = view.states(ledgers)
            signature = view.signature
            quick: Quick | None = self._quick.get(signature, _UNREAD)
            if quick is _UNREAD:
                quick = self._quick[signature] = Quick.of(self._skeleton(view, node))
            if quick is not None:
                answer = quick.fits(states)
                if answer is not None:
                    if not answer and view.broken:
                        return AllocationError(NODE, _INVALID)
                    return answer
            return self._searched(view, node, ledgers, states, expired)
        except AllocationError as error:
            return error

    def _searched(self, view: NodeView, node: NodeFacts, ledgers: Sequence[Ledger], states: list[list[PoolState]],
                  expired: Callable[[], bool]) -> bool | AllocationError:  # fmt: skip
        """Answer yes or no where counting does not do. Raises AllocationError."""
        key = _key(view, states)
        known = self._fits.get(key)
        if known is not None:
            return known
        free = order_free_key(view, states, self._reads) if self._order_free else None
        if free is not None:
            known = self._fits.get(free)
            if known is not None:
                return known
        skeleton = self._skeleton(view, node)
        if skeleton.many_terms:
            outcome = self.outcome(node, ledgers, expired)
            return outcome.error or outcome.fits
        witness = self._witnesses.get(view.signature)
        if witness is not None and witness.holds(states):
            answer = True
        else:
            solution = self._solution(view, node, states, expired)
            answer = solution is not None
            if solution is not None:
                self._witnesses[view.signature] = Witness(skeleton, solution)
        self._fits[key] = answer
        if free is not None and not skeleton.mine_errors:
            self._fits[free] = answer
        return answer

    def _view(self, node: NodeFacts) -> NodeView:
        """Return the node's view, which is the same one for all questions of a problem. Raises AllocationError."""
        if self._local_only:
            local = self._inventory.local(node.name)
            kept: NodeView | None = local.views.get(self._reads) if local is not None else None
            if kept is not None:
                return kept
        known = self._views.get(node.name)
        if known is not None and known[0] is node:
            return known[1]
        view = view_node(self._inventory, node, self._features, self._reads)
        self._views[node.name] = node, view
        return view

    def stored(
        self,
        node: NodeFacts,
        ledgers: Sequence[Ledger],
        only: Sequence[AllocationResult],
        expired: Callable[[], bool],
        share_id: Callable[[], str],
    ) -> tuple[AllocationResult, ...] | None:
        """Return the stored results if they can be had now, else None. Raises AllocationError."""
        view = self._view(node)
        skeleton = self._skeleton(view, node)
        task = self._task(skeleton, view, view.states(ledgers))
        restricted = restrict(task, skeleton, view.numbering, only)
        if restricted is None:
            return None
        task, limited = restricted
        solution = self._solve(task, skeleton, view, expired)
        if solution is None:
            return None
        now = decode(
            self._claims, limited, view.numbering, node.name, solution, self._features, self._variant, share_id
        )
        return kept(only, now, ledgers, share_id)

    def _skeleton(self, view: NodeView, node: NodeFacts) -> Skeleton:
        found = self._skeletons.get(view.signature)
        if found is None:
            found = make_skeleton(
                self._claims, self._features, self._variant, self._judge, node, view.pools, view.numbering
            )
            # An error may name a pool or device of this node, so it is not shared.
            found.raise_error(view.numbering)
            self._skeletons[view.signature] = found
        return found

    def _task(self, skeleton: Skeleton, view: NodeView, states: list[list[PoolState]]) -> Task:
        return compile_task(skeleton, Merged(skeleton.firsts, states), with_groups=self._groups)

    def _solution(
        self, view: NodeView, node: NodeFacts, states: list[list[PoolState]], expired: Callable[[], bool]
    ) -> Solution | None:
        skeleton = self._skeletons.get(view.signature) or self._skeleton(view, node)
        key = _key(view, states)
        solution: Solution | None = self._solutions.get(key, _UNREAD)
        if solution is not _UNREAD:
            if solution is None and skeleton.invalid_pools:
                raise AllocationError(NODE, _INVALID)
            return solution
        task = self._task(skeleton, view, states)
        try:
            solution = self._solve(task, skeleton, view, expired)
        except AllocationError as error:
            if error.kind == NODE:
                self._solutions[key] = None
            raise
        self._solutions[key] = solution
        return solution

    def _solve(self, task: Task, skeleton: Skeleton, view: NodeView, expired: Callable[[], bool]) -> Solution | None:
        try:
            solution = solve(task, expired)
        except Expired:
            raise AllocationError(TIMEOUT, "filter operation aborted: context deadline exceeded") from None
        except Landmine as mine:
            raise self._mine_error(skeleton, view, mine) from None
        if solution is None and skeleton.invalid_pools:
            raise AllocationError(NODE, _INVALID)
        return solution

    def _mine_error(self, skeleton: Skeleton, view: NodeView, mine: Landmine) -> AllocationError:
        if mine.reason == "refused":
            return skeleton.refusal(mine.choice).raised(view.numbering, mine.device)
        if mine.reason == "derived":
            error = skeleton.derive_errors[mine.choice, mine.constraint, mine.device]
        else:
            error = skeleton.mine_errors[mine.choice, mine.device]
        return error.raised(view.numbering, mine.device)


def _key(view: NodeView, states: list[list[PoolState]]) -> _Key:
    if len(states) == 1 and len(states[0]) == 1:
        return (view.signature, states[0][0].key)
    return (view.signature, *[tuple([state.key for state in ledger]) for ledger in states])


def _touches(solution: Solution, mask: int) -> bool:
    return any(mask >> device & 1 for _, *devices in solution for device in devices)
