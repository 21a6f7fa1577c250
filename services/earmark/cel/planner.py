"""From a checked tree to closures: every node becomes a function of the frame; what is constant is computed now."""

from __future__ import annotations

from typing import Any, Final

from earmark.cel.attributes import Attribute, Computed, Constant, lazy, local, read_local, variable
from earmark.cel.calls import call, equals, sequential_call
from earmark.cel.checker import Declarations
from earmark.cel.cost import LIST, MAP, STRUCT, call_cost
from earmark.cel.declarations import Function
from earmark.cel.errors import CompileError
from earmark.cel.folds import fold, mapping, quantifier
from earmark.cel.frames import Frame, Run
from earmark.cel.membership import membership
from earmark.cel.regex import Pattern, compile_pattern
from earmark.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from earmark.cel.values import (
    NO_OVERLOAD,
    Failure,
    ListBuilder,
    MapBuilder,
    MapValue,
    OptionalValue,
    Uint,
    check_hashable,
    go_name,
    map_key,
    shown,
)

_VARIABLE: Final = object()
_CONVERSIONS: Final = frozenset(
    ("bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint")
)
_QUALIFIERS: Final = frozenset({str, int, Uint, bool, float})


class Step:
    """A planned node: how to run it, its value if it is constant, its attribute if it is one."""

    __slots__ = ("attribute", "constant", "run")

    def __init__(self, run: Run, constant: Any = _VARIABLE, attribute: Attribute | None = None) -> None:
        self.run = run
        self.constant = constant
        self.attribute = attribute

    @property
    def is_constant(self) -> bool:
        return self.constant is not _VARIABLE


def plan(root: Node, declarations: Declarations) -> tuple[Run, int]:
    """The closure of a tree, and how many local slots it needs.

    Raises:
        CompileError: if a constant part fails ("program instantiation failed: ...").
    """
    planner = _Planner(declarations)
    step = planner.plan(root)
    return step.run, planner.slots


def _constant(value: Any) -> Step:
    def run(_: Frame) -> Any:
        return value

    return Step(run, value)


def _reading(attribute: Attribute) -> Step:
    return Step(attribute.read(), attribute=attribute)


def _failed(failure: Failure) -> CompileError:
    return CompileError(f"program instantiation failed: {failure.text}")


class _Planner:
    def __init__(self, declarations: Declarations) -> None:
        self._functions = declarations.functions
        # How a local is read: without and with the cost of it.
        self._scopes: list[dict[str, tuple[Run, Run | None]]] = []
        self.slots = 0

    def plan(self, node: Node) -> Step:
        match node:
            case Literal():
                return _constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListNode():
                return self._list(node)
            case MapNode():
                return self._map(node)
            case StructNode():
                return self._struct(node)
            case Comprehension():
                return self._comprehension(node)
            case _:
                raise TypeError(f"unknown node {node!r}")

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    # --- attributes --------------------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Step:
        if node.constant is not None:
            return _constant(node.constant)
        if not node.name.startswith("."):
            for scope in reversed(self._scopes):
                if node.name in scope:
                    base, counted = scope[node.name]
                    attribute = Attribute(base)
                    return _reading(attribute) if counted is None else Step(counted, attribute=attribute)
        return _reading(Attribute(variable(node.name.removeprefix("."))))

    def _attribute(self, step: Step) -> Attribute:
        """The attribute of a step, to be selected from; made of its value if it is none."""
        return Attribute(step.run) if step.attribute is None else step.attribute

    def _select(self, node: Select) -> Step:
        if node.constant is not None:
            return _constant(node.constant)
        attribute = self._attribute(self.plan(node.operand))
        if node.test:
            attribute.add_test(node.field)
            return Step(attribute.resolve(), attribute=attribute)
        attribute.add(Constant(node.field, False))
        return _reading(attribute)

    def _index(self, operand: Step, index: Step, optional: bool) -> Step:
        attribute = self._attribute(operand)
        if index.is_constant:
            if index.constant.__class__ not in _QUALIFIERS:
                raise CompileError(f"program instantiation failed: invalid qualifier type: {go_name(index.constant)}")
            attribute.add(Constant(index.constant, optional))
        elif index.attribute is not None:
            attribute.add(Computed(index.attribute.resolve(), optional))
        else:
            attribute.add(Computed(index.run, optional))
        return _reading(attribute)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Step:
        args = [self.plan(arg) for arg in ([] if node.target is None else [node.target]) + node.args]
        runs = [arg.run for arg in args]
        match node.function:
            case "_&&_":
                return Step(_conjunction(*runs))
            case "_||_":
                return Step(_disjunction(*runs))
            case "_?_:_":
                condition, truthy, falsy = args
                choice = (condition.run, self._attribute(truthy), self._attribute(falsy))
                return _reading(Attribute(None, choice))
            case "_==_":
                return Step(equals(runs[0], runs[1]))
            case "_!=_":
                return Step(equals(runs[0], runs[1], negated=True))
            case "_[_]":
                return self._index(args[0], args[1], optional=False)
            case "_[?_]" | "_?._":
                return self._index(args[0], args[1], optional=True)
            case "@not_strictly_false":
                return Step(_not_strictly_false(runs[0]))
            case "or" | "orValue" if len(args) == 2:
                return Step(_alternative(runs[0], runs[1], node.function == "orValue"))
        return self._function(node, args)

    def _function(self, node: Call, args: list[Step]) -> Step:
        function = self._functions[node.function]
        runs = [arg.run for arg in args]
        single = node.overloads[0] if len(node.overloads) == 1 else None
        cost = call_cost(node.function, "" if single is None else single.id)
        if node.function in ("matches", "find", "findAll"):
            optimized = self._pattern(node.function, args)
            if optimized is not None:
                return Step(sequential_call(optimized, runs, cost))
        if single is not None and single.id == "in_list" and args[1].is_constant:
            test = membership(runs[0], args[1].constant)
            if test is not None:
                return _constant(False) if test is False else Step(test)
        if node.function in _CONVERSIONS and len(args) == 1 and args[0].is_constant:
            value = _converted(function, args[0].constant)
            if value.__class__ is Failure:
                raise _failed(value)
            return _constant(value)
        return Step(call(function, single, runs, cost))

    def _pattern(self, function: str, args: list[Step]) -> Any:
        """The implementation of a regex function whose pattern is known."""
        if len(args) < 2 or args[1].constant.__class__ is not str:
            return None
        compiled = compile_pattern(args[1].constant)
        if isinstance(compiled, Failure):
            raise _failed(compiled)
        return _regex(function, compiled)

    # --- literals ----------------------------------------------------------------------------------------------------

    def _list(self, node: ListNode) -> Step:
        elements = [self.plan(one) for one in node.elements]
        run = _list_of([one.run for one in elements], node.optional)
        if all(one.is_constant for one in elements):
            return _constant(run(Frame({}, 0, 1 << 62)))
        return Step(run)

    def _map(self, node: MapNode) -> Step:
        entries = [(self.plan(key), self.plan(value), optional) for key, value, optional in node.entries]
        run = _map_of([(key.run, value.run, optional) for key, value, optional in entries])
        if all(key.is_constant and value.is_constant for key, value, _ in entries):
            return _constant(run(Frame({}, 0, 1 << 62)))
        return Step(run)

    def _struct(self, node: StructNode) -> Step:
        fields = [self.plan(value).run for _, _, value, _ in node.fields]
        failure = Failure(f"unknown type '{node.name}'")

        def run(frame: Frame) -> Any:
            result: Any = failure
            for one in fields:
                value = one(frame)
                if value.__class__ is Failure:
                    result = value
                    break
            _charge(frame, STRUCT)
            return result

        return Step(run)

    # --- folds -------------------------------------------------------------------------------------------------------

    def _comprehension(self, node: Comprehension) -> Step:
        initial = self.plan(node.init).run
        if node.builds:
            initial = _map_builder if isinstance(node.init, MapNode) else _list_builder
        iter_range = self.plan(node.iter_range).run
        accu, first = self._slot(), self._slot()
        second = self._slot() if node.iter_var2 else None
        self._scopes.append({node.accu: (lazy(accu, initial), None)})
        variables: dict[str, tuple[Run, Run | None]] = {node.iter_var: (local(first), read_local(first))}
        if second is not None:
            variables[node.iter_var2] = (local(second), read_local(second))
        self._scopes.append(variables)
        slots = (accu, first, second)
        if _is_quantifier(node):
            assert isinstance(node.step, Call)
            predicate = self.plan(node.step.args[1]).run
            self._scopes = self._scopes[:-2]
            return Step(quantifier(iter_range, slots, predicate, ends_at=node.step.function == "_||_"))
        condition = self.plan(node.condition)
        if node.builds and isinstance(node.step, Call) and node.step.function == "_+_":
            added = node.step.args[1]
            assert isinstance(added, ListNode)
            element = self.plan(added.elements[0])
            self._scopes = self._scopes[:-2]
            return Step(mapping(iter_range, slots, element.run, 2 if element.is_constant else 2 + LIST))
        step = self.plan(node.step).run
        self._scopes.pop()
        result = self.plan(node.result).run
        self._scopes.pop()
        return Step(fold(iter_range, slots, None if condition.constant is True else condition.run, step, result))


def _is_quantifier(node: Comprehension) -> bool:
    """Whether this is the fold of all() or exists(): nothing else tests its accumulator this way."""
    return isinstance(node.condition, Call) and node.condition.function == "@not_strictly_false"


def _list_builder(_: Frame) -> Any:
    return ListBuilder()


def _map_builder(_: Frame) -> Any:
    return MapBuilder({})


def _charge(frame: Frame, cost: int) -> None:
    frame.cost += cost
    if frame.cost > frame.limit:
        raise frame.exceeded()


def _conjunction(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Any:
        one = left(frame)
        if one is False:
            return False
        other = right(frame)
        if one is True and (other is True or other is False):
            return other
        if other is False:
            return False
        wrong = other if one is True else one
        return wrong if wrong.__class__ is Failure else NO_OVERLOAD

    return run


def _disjunction(left: Run, right: Run) -> Run:
    def run(frame: Frame) -> Any:
        one = left(frame)
        if one is True:
            return True
        other = right(frame)
        if one is False and (other is True or other is False):
            return other
        if other is True:
            return True
        wrong = other if one is False else one
        return wrong if wrong.__class__ is Failure else NO_OVERLOAD

    return run


def _not_strictly_false(operand: Run) -> Run:
    def run(frame: Frame) -> Any:
        value = operand(frame)
        frame.cost += 1
        if frame.cost > frame.limit:
            raise frame.exceeded()
        return value is not False

    return run


def _alternative(left: Run, right: Run, unwrap: bool) -> Run:
    """`or` and `orValue`: the right side is evaluated only if needed, and the call itself is free."""

    def run(frame: Frame) -> Any:
        value = left(frame)
        if value.__class__ is OptionalValue:
            if not value.value:
                return right(frame)
            return value.value[0] if unwrap else value
        return value if value.__class__ is Failure else NO_OVERLOAD

    return run


def _converted(function: Function, value: Any) -> Any:
    return function.dispatch(value) if function.singleton is None else function.singleton(value)


def _regex(function: str, pattern: Pattern) -> Any:
    def matches(text: Any, _: Any) -> Any:
        return pattern.matches(text) if text.__class__ is str else NO_OVERLOAD

    def find(text: Any, _: Any) -> Any:
        return pattern.find(text) if text.__class__ is str else NO_OVERLOAD

    def find_all(text: Any, _: Any, count: Any = -1) -> Any:
        if text.__class__ is not str or count.__class__ is not int:
            return NO_OVERLOAD
        return pattern.find_all(text, count)

    return {"matches": matches, "find": find, "findAll": find_all}[function]


def _list_of(elements: list[Run], optional: frozenset[int]) -> Run:
    if not optional:

        def plain(frame: Frame) -> Any:
            values = []
            for one in elements:
                value = one(frame)
                if value.__class__ is Failure:
                    _charge(frame, LIST)
                    return value
                values.append(value)
            _charge(frame, LIST)
            return tuple(values)

        return plain

    def run(frame: Frame) -> Any:
        values: list[Any] = []
        result: Any = None
        for index, one in enumerate(elements):
            value = one(frame)
            if value.__class__ is Failure:
                result = value
                break
            if index not in optional:
                values.append(value)
            elif value.__class__ is OptionalValue:
                values.extend(value.value)
            else:
                result = Failure(f"cannot initialize optional list element from non-optional value {shown(value)}")
                break
        _charge(frame, LIST)
        return tuple(values) if result is None else result

    return run


def _map_of(entries: list[tuple[Run, Run, bool]]) -> Run:
    def run(frame: Frame) -> Any:
        result = _entries(frame, entries)
        _charge(frame, MAP)
        return result

    return run


def _entries(frame: Frame, entries: list[tuple[Run, Run, bool]]) -> Any:
    values: dict[Any, Any] = {}
    for key_run, value_run, optional in entries:
        key = key_run(frame)
        if key.__class__ is Failure:
            return key
        value = value_run(frame)
        if value.__class__ is Failure:
            return value
        if optional:
            if value.__class__ is not OptionalValue:
                return Failure(
                    f"cannot initialize optional entry '{shown(key)}' from non-optional value {shown(value)}"
                )
            if not value.value:
                values.pop(map_key(key), None)
                continue
            value = value.value[0]
        if key.__class__ not in _QUALIFIERS:
            check_hashable(key)
        values[map_key(key)] = value
    return MapValue(values)
