"""The macros: calls that are rewritten while parsing, most of them to a fold."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from earmark.cel.errors import Fault, SourceError
from earmark.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, copied, walk

ACCUMULATOR: Final = "@result"
UNUSED: Final = "#unused"
_RESERVED: Final = frozenset({ACCUMULATOR, "__result__"})
MAP_INSERT: Final = "cel.@mapInsert"
_COPYING: Final = frozenset({"optMap", "optFlatMap"})
_MAX_COPIED: Final = 4_000

Expander = Callable[[int, Node | None, list[Node]], Node | None]


class Copies:
    """How many nodes the macros of one expression may still copy. Two of them use their target twice, so that a chain
    of them doubles with every link."""

    def __init__(self) -> None:
        self._left = _MAX_COPIED

    def count(self, target: Node) -> None:
        """Count a target before it is copied.

        Raises:
            SourceError: if the expression becomes too large.
        """
        self._left -= sum(1 for _ in islice(walk(target), self._left + 1))
        if self._left < 0:
            raise _fail(target, "the macros of this expression expand to too many parts")


def expand(offset: int, function: str, target: Node | None, args: list[Node], copies: Copies) -> Node | None:
    """The expansion of a call, None if it is no macro.

    Args:
        offset: where the call is reported.

    Raises:
        SourceError: if it is a macro with wrong arguments.
    """
    expander = _MACROS.get((function, len(args), target is not None))
    if expander is None:
        return None
    if function in _COPYING and target is not None:
        copies.count(target)
    return expander(offset, target, args)


def _fail(node: Node, message: str) -> SourceError:
    return SourceError([Fault(node.offset, message)])


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise _fail(node, message)
    return node.name


def _iteration(node: Node, message: str) -> str:
    name = _variable(node, message)
    if name in _RESERVED:
        raise _fail(node, "iteration variable overwrites accumulator variable")
    return name


def _two_variables(first: Node, second: Node) -> tuple[str, str]:
    one = _variable(first, "argument must be a simple name")
    two = _variable(second, "argument must be a simple name")
    if one == two:
        raise _fail(second, f"duplicate variable name: {one}")
    for node, name in ((first, one), (second, two)):
        if name in _RESERVED:
            raise _fail(node, "iteration variable overwrites accumulator variable")
    return one, two


def _call(offset: int, function: str, *args: Node) -> Call:
    return Call(offset, function, None, list(args))


def _accu(offset: int) -> Ident:
    return Ident(offset, ACCUMULATOR)


def _fold(
    offset: int,
    target: Node,
    variables: tuple[str, str],
    init: Node,
    condition: Node,
    step: Node,
    result: Node | None = None,
    builds: bool = False,
) -> Comprehension:
    return Comprehension(
        offset,
        target,
        variables[0],
        variables[1],
        ACCUMULATOR,
        init,
        condition,
        step,
        _accu(offset) if result is None else result,
        builds,
    )


def _all(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    condition = _call(at, "@not_strictly_false", _accu(at))
    return _fold(at, target, variables, Literal(at, True), condition, _call(at, "_&&_", _accu(at), predicate))


def _exists(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    condition = _call(at, "@not_strictly_false", _call(at, "!_", _accu(at)))
    return _fold(at, target, variables, Literal(at, False), condition, _call(at, "_||_", _accu(at), predicate))


def _exists_one(at: int, target: Node, variables: tuple[str, str], predicate: Node) -> Node:
    step = _call(at, "_?_:_", predicate, _call(at, "_+_", _accu(at), Literal(at, 1)), _accu(at))
    result = _call(at, "_==_", _accu(at), Literal(at, 1))
    return _fold(at, target, variables, Literal(at, 0), Literal(at, True), step, result)


def _build(at: int, target: Node, variables: tuple[str, str], init: Node, step: Node, condition: Node | None) -> Node:
    if condition is not None:
        step = _call(at, "_?_:_", condition, step, _accu(at))
    return _fold(at, target, variables, init, Literal(at, True), step, builds=True)


def _append(at: int, element: Node) -> Node:
    return _call(at, "_+_", _accu(at), ListNode(at, [element]))


def _has(at: int, _: Node | None, args: list[Node]) -> Node:
    operand = args[0]
    if not isinstance(operand, Select) or operand.test:
        raise _fail(operand, "invalid argument to has() macro")
    return Select(at, operand.operand, operand.field, test=True)


_Quantifier = Callable[[int, Node, tuple[str, str], Node], Node]


def _one_variable(quantifier: _Quantifier) -> Expander:
    def expander(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        return quantifier(at, target, (_iteration(args[0], "argument must be a simple name"), ""), args[1])

    return expander


def _with_two(quantifier: _Quantifier) -> Expander:
    def expander(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        return quantifier(at, target, _two_variables(args[0], args[1]), args[2])

    return expander


def _map(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    name = _iteration(args[0], "argument is not an identifier")
    condition = args[1] if len(args) == 3 else None
    return _build(at, target, (name, ""), ListNode(at, []), _append(at, args[-1]), condition)


def _filter(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    name = _iteration(args[0], "argument is not an identifier")
    return _build(at, target, (name, ""), ListNode(at, []), _append(at, args[0]), args[1])


def _transform_list(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    return _build(at, target, variables, ListNode(at, []), _append(at, args[-1]), condition)


def _transform_map(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    step = _call(at, MAP_INSERT, _accu(at), Ident(at, variables[0]), args[-1])
    return _build(at, target, variables, MapNode(at, []), step, condition)


def _transform_map_entry(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    variables = _two_variables(args[0], args[1])
    condition = args[2] if len(args) == 4 else None
    step = _call(at, MAP_INSERT, _accu(at), args[-1])
    return _build(at, target, variables, MapNode(at, []), step, condition)


def _binding(at: int, name: str, value: Node, result: Node) -> Comprehension:
    """A fold over nothing: its accumulator is the variable, and it is evaluated when it is first read."""
    return Comprehension(at, ListNode(at, []), UNUSED, "", name, value, Literal(at, False), Ident(at, name), result)


def _bind(at: int, target: Node | None, args: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name = _variable(args[0], "cel.bind() variable names must be simple identifiers")
    return _binding(at, name, args[1], args[2])


def _optional_map(function: str, wrap: bool) -> Expander:
    def expander(at: int, target: Node | None, args: list[Node]) -> Node:
        assert target is not None
        name = _variable(args[0], f"{function}() variable name must be a simple identifier")
        value = Call(at, "value", copied(target), [])
        mapped: Node = _binding(at, name, value, args[1])
        if wrap:
            mapped = _call(at, "optional.of", mapped)
        present = Call(at, "hasValue", target, [])
        return _call(at, "_?_:_", present, mapped, _call(at, "optional.none"))

    return expander


def _sort_by(at: int, target: Node | None, args: list[Node]) -> Node:
    assert target is not None
    if isinstance(target, Literal | MapNode) or not isinstance(
        target, ListNode | Select | Ident | Comprehension | Call
    ):
        raise _fail(
            target, "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        )
    name = "@__sortBy_input__"
    keys = _map(at, Ident(at, name), args)
    return _binding(at, name, target, Call(at, "@sortByAssociatedKeys", Ident(at, name), [keys]))


_MACROS: Final[dict[tuple[str, int, bool], Expander]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _one_variable(_all),
    ("exists", 2, True): _one_variable(_exists),
    ("exists_one", 2, True): _one_variable(_exists_one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _with_two(_all),
    ("exists", 3, True): _with_two(_exists),
    ("exists_one", 3, True): _with_two(_exists_one),
    ("existsOne", 3, True): _with_two(_exists_one),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map_entry,
    ("transformMapEntry", 4, True): _transform_map_entry,
    ("bind", 3, True): _bind,
    ("optMap", 2, True): _optional_map("optMap", wrap=True),
    ("optFlatMap", 2, True): _optional_map("optFlatMap", wrap=False),
    ("sortBy", 2, True): _sort_by,
}
