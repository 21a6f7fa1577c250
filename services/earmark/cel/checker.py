"""The type checker: gives every node its type and every call its possible overloads, as cel-go's does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from earmark.cel.declarations import Function, Overload
from earmark.cel.errors import Fault, SourceError
from earmark.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select, StructNode, walk
from earmark.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Substitutions,
    Type,
    list_of,
    map_of,
    more_general,
    optional_of,
    param,
    signature,
    unwrapped,
)
from earmark.cel.values import TypeValue, Uint

_LITERALS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


@dataclass(frozen=True, slots=True)
class Declarations:
    """What names mean: functions, variables, names of types, and the fields of message types."""

    functions: dict[str, Function]
    variables: dict[str, Type]
    type_names: dict[str, Type]
    structs: dict[str, dict[str, Type]] = field(default_factory=dict)


def check(root: Node, declarations: Declarations) -> Type:
    """Check a tree; nodes get their types and overloads.

    Returns:
        The type of the whole expression, without type variables.

    Raises:
        SourceError: if it does not check.
    """
    checker = _Checker(declarations)
    result = checker.check(root)
    if checker.faults:
        raise SourceError(checker.faults)
    typed = [(node, node.type) for node in walk(root) if node.type is not None]
    for (node, _), known in zip(typed, checker.known.resolve_all(one for _, one in typed), strict=True):
        node.type = known
    return checker.known.resolve(result, free_to_dyn=True)


class _Checker:
    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations
        self._scopes: list[dict[str, Type]] = []
        self._variables = 0
        self.known = Substitutions()
        self.faults: list[Fault] = []

    def check(self, node: Node) -> Type:
        match node:
            case Literal():
                found = _LITERALS[node.value.__class__]
            case Ident():
                found = self._ident(node)
            case Select():
                found = self._select(node)
            case Call():
                found = self._call(node)
            case ListNode():
                found = self._list(node)
            case MapNode():
                found = self._map(node)
            case StructNode():
                found = self._struct(node)
            case Comprehension():
                found = self._comprehension(node)
            case _:
                raise TypeError(f"unknown node {node!r}")
        node.type = found
        return found

    def _fault(self, node: Node, message: str) -> None:
        self.faults.append(Fault(node.offset, message))

    def _undeclared(self, node: Node, name: str) -> Type:
        self._fault(node, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _mismatch(self, node: Node, expected: Type, found: Type) -> None:
        self._fault(node, f"expected type '{expected}' but found '{found}'")

    def _fresh(self) -> Type:
        self._variables += 1
        return param(f"_var{self._variables - 1}")

    # --- names -------------------------------------------------------------------------------------------------------

    def _local(self, name: str) -> Type | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _global(self, name: str) -> tuple[Type, Any] | None:
        """The type of a global name, and its value if it names a type."""
        variable = self._declarations.variables.get(name)
        if variable is not None:
            return variable, None
        named = self._declarations.type_names.get(name)
        return None if named is None else (named, TypeValue(named.params[0].name))

    def _ident(self, node: Ident) -> Type:
        name = node.name
        if not name.startswith("."):
            local = self._local(name)
            if local is not None:
                return local
        found = self._global(name.removeprefix("."))
        if found is None:
            return self._undeclared(node, name)
        node.constant = found[1]
        return found[0]

    def _select(self, node: Select) -> Type:
        if not node.test:
            name = qualified_name(node)
            if name is not None and self._local(name.split(".")[0]) is None:
                found = self._global(name.removeprefix("."))
                if found is not None:
                    node.constant = found[1]
                    return found[0]
        result = self._field(node, node.operand, node.field, optional=False)
        return BOOL if node.test else self.known.resolve(result)

    def _field(self, node: Node, operand: Node, name: str, optional: bool) -> Type:
        target, is_optional = unwrapped(self.known.resolve(self.check(operand)))
        result = DYN
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            found = self._declarations.structs[target.name].get(name)
            if found is None:
                self._fault(node, f"undefined field '{name}'")
            result = ERROR if found is None else found
        elif target.kind == "param":
            self.known.assign([DYN], [target])
        elif target.kind not in ("dyn", "error"):
            # Upstream declares these as messages, of which it then finds no description.
            unresolved = target.kind == "opaque" and target.name.startswith("kubernetes.")
            problem = f"type '{target}' does not support field selection"
            self._fault(node, f"unexpected failed resolution of '{target}'" if unresolved else problem)
        return optional_of(result) if is_optional or optional else result

    # --- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            return self.known.resolve(self._field(node, node.args[0], name.value, optional=True))
        args = [self.check(arg) for arg in node.args]
        functions = self._declarations.functions
        if node.target is None:
            name_of = node.function.removeprefix(".")
            function = functions.get(name_of)
            if function is None:
                return self._undeclared(node, node.function)
            node.function = name_of
            return self._resolve(node, function, args, None)
        prefix = qualified_name(node.target)
        if prefix is not None:
            namespaced = functions.get(f"{prefix}.{node.function}".removeprefix("."))
            if namespaced is not None:
                node.target, node.function = None, namespaced.name
                return self._resolve(node, namespaced, args, None)
        target = self.check(node.target)
        function = functions.get(node.function)
        if function is None:
            return self._undeclared(node, node.function)
        return self._resolve(node, function, args, target)

    def _resolve(self, node: Call, function: Function, args: list[Type], target: Type | None) -> Type:
        if function.name in ("_&&_", "_||_"):
            node.overloads = function.overloads
            faults = len(self.faults)
            for arg, found in zip(node.args, args, strict=True):
                if not self.known.assign([found], [BOOL]):
                    self._mismatch(arg, BOOL, found)
            return ERROR if len(self.faults) > faults else BOOL
        given = args if target is None else [target, *args]
        result: Type | None = None
        candidates: list[Overload] = []
        for overload in function.overloads:
            if overload.member != (target is not None):
                continue
            wanted, returned = self._instantiated(overload)
            if not self.known.assign(given, wanted):
                continue
            candidates.append(overload)
            returned = self.known.resolve(returned)
            if result is None:
                result = returned
            elif result.kind != "dyn" and returned != result:
                result = DYN
        if result is None:
            resolved = [self.known.resolve(one, free_to_dyn=True) for one in given]
            applied = signature(resolved, target is not None)
            self._fault(node, f"found no matching overload for '{function.name}' applied to '{applied}'")
            return ERROR
        node.overloads = candidates
        return result

    def _instantiated(self, overload: Overload) -> tuple[list[Type], Type]:
        """The types of an overload with new type variables."""
        if not overload.params:
            return list(overload.args), overload.result
        fresh = Substitutions()
        for name in overload.params:
            fresh.define(param(name), self._fresh())
        return [fresh.resolve(one) for one in overload.args], fresh.resolve(overload.result)

    # --- literals ----------------------------------------------------------------------------------------------------

    def _join(self, before: Type | None, found: Type) -> Type:
        """The type of elements so far. Mixed ones are dyn here; the validators refuse them outside of format()."""
        if before is None:
            return found
        if self.known.assign([before], [found]):
            return more_general(before, found)
        return DYN

    def _optional(self, node: Node, found: Type) -> Type:
        inner, is_optional = unwrapped(found)
        if not is_optional and inner.kind != "dyn":
            self._mismatch(node, optional_of(inner), inner)
        return inner

    def _list(self, node: ListNode) -> Type:
        element: Type | None = None
        for index, one in enumerate(node.elements):
            found = self.check(one)
            if index in node.optional:
                found = self._optional(one, found)
            element = self._join(element, found)
        return list_of(self._fresh() if element is None else element)

    def _map(self, node: MapNode) -> Type:
        key_type: Type | None = None
        value_type: Type | None = None
        for key, value, optional in node.entries:
            key_type = self._join(key_type, self.check(key))
            found = self.check(value)
            if optional:
                found = self._optional(value, found)
            value_type = self._join(value_type, found)
        if key_type is None or value_type is None:
            return map_of(self._fresh(), self._fresh())
        return map_of(key_type, value_type)

    def _struct(self, node: StructNode) -> Type:
        name = node.name.removeprefix(".")
        fields = self._declarations.structs.get(name)
        if fields is None:
            if self._global(name) is not None and name in self._declarations.type_names:
                self._fault(node, f"'{self._declarations.type_names[name].params[0]}' is not a message type")
            else:
                self._undeclared(node, node.name)
        node.name = name
        for offset, field_name, value, optional in node.fields:
            found = self.check(value)
            if optional:
                found = self._optional(value, found)
            if fields is None:
                continue
            wanted = fields.get(field_name)
            if wanted is None:
                self.faults.append(Fault(offset, f"undefined field '{field_name}'"))
            elif not self.known.assign([wanted], [found]):
                message = f"expected type of field '{field_name}' is '{wanted}' but provided type is '{found}'"
                self.faults.append(Fault(offset, message))
        return ERROR if fields is None else Type("struct", name)

    # --- folds -------------------------------------------------------------------------------------------------------

    def _comprehension(self, node: Comprehension) -> Type:
        given = self.check(node.iter_range)
        accu = self.check(node.init)
        ranged = self.known.resolve(given)
        self._scopes.append({node.accu: accu})
        first, second = self._iteration(node, ranged)
        variables = {node.iter_var: first}
        if node.iter_var2:
            variables[node.iter_var2] = second
        self._scopes.append(variables)
        self._assert(node.condition, BOOL)
        self._assert(node.step, accu)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self.known.resolve(result)

    def _iteration(self, node: Comprehension, ranged: Type) -> tuple[Type, Type]:
        """The types of the two iteration variables."""
        if ranged.kind == "list":
            element = ranged.params[0]
            return (INT, element) if node.iter_var2 else (element, DYN)
        if ranged.kind == "map":
            return ranged.params[0], ranged.params[1]
        if ranged.kind in ("dyn", "error", "param"):
            self.known.assign([DYN], [ranged])
            return DYN, DYN
        message = f"expression of type '{ranged}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._fault(node.iter_range, message)
        return ERROR, ERROR

    def _assert(self, node: Node, wanted: Type) -> None:
        found = self.check(node)
        if not self.known.assign([wanted], [found]):
            self._mismatch(node, wanted, found)


def qualified_name(node: Node) -> str | None:
    """a.b.c for a chain of selections from a name, else None."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))
