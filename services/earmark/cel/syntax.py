"""The nodes of a parsed expression. The checker adds types and overloads to them; nothing else changes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from earmark.cel.declarations import Overload
    from earmark.cel.types import Type


class Node:
    """Base of all nodes.

    `offset` is where cel-go reports errors: the first character of names and literals, the operator or bracket of
    everything else. `depth` counts the nodes below (and with) this one that cel-go counts against its limit.
    """

    __slots__ = ("depth", "offset", "type")

    def __init__(self, offset: int, depth: int = 0) -> None:
        self.offset = offset
        self.depth = depth
        self.type: Type | None = None


class Literal(Node):
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, offset: int, value: Any) -> None:
        super().__init__(offset)
        self.value = value


class Ident(Node):
    """A name. The checker sets `constant` for names of types."""

    __slots__ = ("constant", "name")

    def __init__(self, offset: int, name: str) -> None:
        super().__init__(offset)
        self.name = name
        self.constant: Any = None


class Select(Node):
    """operand.field, or has(operand.field) if `test`. The checker sets `constant` for qualified names of types."""

    __slots__ = ("constant", "field", "operand", "test")

    def __init__(self, offset: int, operand: Node, field: str, test: bool = False) -> None:
        super().__init__(offset, operand.depth + 1)
        self.operand = operand
        self.field = field
        self.test = test
        self.constant: Any = None


class Call(Node):
    """A call of a function or operator. The checker resolves namespaced names and sets the possible overloads."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(
        self, offset: int, function: str, target: Node | None, args: list[Node], counted: bool = False
    ) -> None:
        below = max((arg.depth for arg in args), default=0)
        if target is not None:
            below = max(below, target.depth)
        super().__init__(offset, below + counted)
        self.function = function
        self.target = target
        self.args = args
        self.overloads: list[Overload] = []


class ListNode(Node):
    """A list literal; `optional` holds the indices of the elements written with `?`."""

    __slots__ = ("elements", "optional")

    def __init__(self, offset: int, elements: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(offset, max((one.depth for one in elements), default=0))
        self.elements = elements
        self.optional = optional


class MapNode(Node):
    """A map literal: keys, values and which entries are optional."""

    __slots__ = ("entries",)

    def __init__(self, offset: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(offset, max((max(key.depth, value.depth) for key, value, _ in entries), default=0))
        self.entries = entries


class StructNode(Node):
    """A message literal."""

    __slots__ = ("fields", "name")

    def __init__(self, offset: int, name: str, fields: list[tuple[int, str, Node, bool]]) -> None:
        super().__init__(offset, max((value.depth for _, _, value, _ in fields), default=0))
        self.name = name
        self.fields = fields


class Comprehension(Node):
    """A fold over a range: what the macros expand to.

    `builds` says that the accumulator is an own list or map of the macro, which may be built in place.
    """

    __slots__ = ("accu", "builds", "condition", "init", "iter_range", "iter_var", "iter_var2", "result", "step")

    def __init__(
        self,
        offset: int,
        iter_range: Node,
        iter_var: str,
        iter_var2: str,
        accu: str,
        init: Node,
        condition: Node,
        step: Node,
        result: Node,
        builds: bool = False,
    ) -> None:
        depth = max(part.depth for part in (iter_range, init, condition, step, result))
        super().__init__(offset, depth)
        self.iter_range = iter_range
        self.iter_var = iter_var
        self.iter_var2 = iter_var2
        self.accu = accu
        self.init = init
        self.condition = condition
        self.step = step
        self.result = result
        self.builds = builds


def copied(node: Node) -> Node:
    """A copy without what the checker sets, for macros that use an operand twice."""
    match node:
        case Literal():
            return Literal(node.offset, node.value)
        case Ident():
            return Ident(node.offset, node.name)
        case Select():
            return Select(node.offset, copied(node.operand), node.field, node.test)
        case Call():
            target = None if node.target is None else copied(node.target)
            call = Call(node.offset, node.function, target, [copied(arg) for arg in node.args])
            call.depth = node.depth
            return call
        case ListNode():
            return ListNode(node.offset, [copied(one) for one in node.elements], node.optional)
        case MapNode():
            return MapNode(node.offset, [(copied(key), copied(value), flag) for key, value, flag in node.entries])
        case StructNode():
            fields = [(at, name, copied(value), flag) for at, name, value, flag in node.fields]
            return StructNode(node.offset, node.name, fields)
        case Comprehension():
            return Comprehension(
                node.offset,
                copied(node.iter_range),
                node.iter_var,
                node.iter_var2,
                node.accu,
                copied(node.init),
                copied(node.condition),
                copied(node.step),
                copied(node.result),
                node.builds,
            )
        case _:
            raise TypeError(f"unknown node {node!r}")


def children(node: Node) -> list[Node]:
    """The nodes right below a node."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return ([] if node.target is None else [node.target]) + node.args
        case ListNode():
            return node.elements
        case MapNode():
            return [part for key, value, _ in node.entries for part in (key, value)]
        case StructNode():
            return [value for _, _, value, _ in node.fields]
        case Comprehension():
            return [node.iter_range, node.init, node.condition, node.step, node.result]
        case _:
            return []


def walk(root: Node) -> Iterator[Node]:
    """All nodes of a tree, parents first."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))
