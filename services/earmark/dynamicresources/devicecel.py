"""Device selectors: devices prepared for their CEL expressions, and compiled selectors.

The expression language itself is earmark.cel, with the environment of selectors in earmark.cel.devices. What the
allocator makes of an error is its own affair; the texts here are those that it appends to the selector's place
(upstream A5.4, A5.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from earmark.cel import CompileError, Outcome, Program
from earmark.cel.devices import environment, refusal
from earmark.cel.semver import parse_semver
from earmark.cel.syntax import Call, Ident, Literal, Node, Select, children
from earmark.cel.values import DefaultMap, NativeMap, OptionalValue, QuantityValue, type_name
from earmark.kube.objects import Device, DeviceAttribute
from earmark.kube.quantity import QuantityError, parse_quantity

_HINT: Final = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)
# resource.CELSelectorExpressionMaxLength; the API server refuses longer ones, so none can come from a cluster.
MAX_LENGTH: Final = 10 * 1024
# Functions that show how a quantity is held; comparing can change that (see earmark.cel.values.QuantityValue).
_SHOWS_FORM: Final = frozenset({"isInteger", "asInteger", "add", "sub"})

Read = tuple[str, str, str]


class SelectorCompileError(Exception):
    """An expression does not compile. The text is upstream's, without "CEL compile error: "."""


class SelectorRuntimeError(Exception):
    """An evaluation failed. The text is upstream's with its hint, without "CEL runtime error: "."""


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """A device as selectors see it. `error` is what converting it gave; every evaluation fails with it then."""

    variables: dict[str, Any]
    error: str | None = None

    def unshared(self) -> PreparedDevice:
        """A copy with quantities of its own, for expressions that can see what comparing does to them."""
        device = self.variables["device"].entries
        capacity = {
            domain: NativeMap({name: QuantityValue(value.original) for name, value in inner.entries.items()})
            for domain, inner in device["capacity"].entries.items()
        }
        return PreparedDevice({"device": NativeMap({**device, "capacity": DefaultMap(capacity)})}, self.error)


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled device selector."""

    program: Program
    _shows_form: bool

    def evaluate(self, prepared: PreparedDevice) -> Outcome:
        """The raw outcome, with the cost; for tools. Device errors and hints are not applied."""
        device = prepared.unshared() if self._shows_form else prepared
        return self.program.evaluate(device.variables)

    def matches(self, prepared: PreparedDevice) -> bool:
        """Whether the device matches (upstream A5.5).

        Raises:
            SelectorRuntimeError: if the device cannot be converted, the evaluation fails or gives no bool.
        """
        if prepared.error is not None:
            raise SelectorRuntimeError(prepared.error)
        outcome = self.evaluate(prepared)
        value = outcome.value
        while value.__class__ is OptionalValue and value.value:
            # The conversion to a bool looks into optionals.
            value = value.value[0]
        if value is True or value is False:
            return bool(value)
        raise SelectorRuntimeError(runtime_error(outcome))

    def reads(self) -> frozenset[Read] | None:
        """What the expression can read of a device: (kind, domain, name), None for anything.

        The kinds are attribute, capacity, driver and allowMultipleAllocations; the latter two without domain and name.
        """
        found: set[Read] = set()
        return frozenset(found) if _reads(self.program.root, found) else None


@lru_cache(maxsize=4096)
def compile_selector(expression: str) -> Selector:
    """Compile a selector; remembered.

    Raises:
        SelectorCompileError: if it does not compile or cannot give a bool.
    """
    if len(expression.encode("utf-8", "surrogatepass")) > MAX_LENGTH:
        raise SelectorCompileError(f"the expression is longer than {MAX_LENGTH} bytes")
    try:
        program = environment().compile(expression, refusal)
    except CompileError as error:
        raise SelectorCompileError(str(error)) from error
    return Selector(program, _calls_any(program.root, _SHOWS_FORM))


def prepare_device(driver: str, device: Device) -> PreparedDevice:
    """Convert a device for selectors.

    Names without a domain are filed under the driver (upstream A5.6). A value that cannot be converted is kept as the
    error of every evaluation (upstream A5.8).

    Args:
        driver: the name of the driver whose slice the device is in.
    """
    attributes: dict[str, NativeMap] = {}
    for name, attribute in device.attributes.items():
        try:
            value = _attribute(attribute)
        except ValueError as error:
            return PreparedDevice({}, f"attribute {name}: {error}")
        _file(attributes, name, driver, value)
    capacity: dict[str, NativeMap] = {}
    for name, amount in device.capacity.items():
        try:
            value = QuantityValue(parse_quantity(amount.value))
        except QuantityError as error:
            return PreparedDevice({}, f"capacity {name}: {error}")
        _file(capacity, name, driver, value)
    fields = {
        "driver": driver,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "attributes": DefaultMap(attributes),
        "capacity": DefaultMap(capacity),
    }
    return PreparedDevice({"device": NativeMap(fields)})


def runtime_error(outcome: Outcome) -> str:
    """The text of an outcome that is no bool, with upstream's hint."""
    if outcome.error is not None:
        return with_hint(outcome.error)
    problem = _native_problem(outcome.value)
    return f"CEL result of type {type_name(outcome.value)} could not be converted to bool: {problem}"


def with_hint(text: str) -> str:
    """The advice that upstream adds to the errors of missing keys."""
    return text + _HINT if "no such key:" in text else text


_NATIVE_PROBLEMS: Final = {
    "bytes": "type conversion error from Bytes to 'bool'",
    "double": "type conversion error from Double to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "string": "unsupported native conversion from string to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "type": "type conversion not supported for 'type'",
}


def _native_problem(value: Any) -> str:
    """What the conversion of a result to a Go bool says, by its type."""
    if value.__class__ is OptionalValue:
        return _native_problem(value.value[0]) if value.value else "optional.none() dereference"
    name = type_name(value)
    return _NATIVE_PROBLEMS.get(name, f"type conversion error from '{name.rpartition('.')[2]}' to 'bool'")


def _file(target: dict[str, NativeMap], name: str, driver: str, value: Any) -> None:
    domain, slash, identifier = name.partition("/")
    if not slash:
        domain, identifier = driver, name
    inner = target.get(domain)
    if inner is None:
        inner = target[domain] = NativeMap({})
    inner.entries[identifier] = value


def _attribute(attribute: DeviceAttribute) -> Any:
    for many in (attribute.ints, attribute.bools, attribute.strings):
        if many is not None:
            return tuple(many)
    if attribute.versions is not None:
        return tuple(_version(one) for one in attribute.versions)
    for single in (attribute.int_, attribute.bool_, attribute.string):
        if single is not None:
            return single
    if attribute.version is not None:
        return _version(attribute.version)
    raise ValueError("unsupported attribute value")


def _version(text: str) -> Any:
    try:
        return parse_semver(text)
    except ValueError as error:
        raise ValueError(f"parse semantic version: {error}") from error


# --- what an expression reads ----------------------------------------------------------------------------------------


def _calls_any(root: Node, functions: frozenset[str]) -> bool:
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and node.function in functions:
            return True
        stack.extend(children(node))
    return False


def _reads(root: Node, found: set[Read]) -> bool:
    """Collect what a tree reads; False if it can read anything."""
    stack = [root]
    while stack:
        node = stack.pop()
        path = _path(node)
        if path is None:
            stack.extend(children(node))
            continue
        match path:
            case ["driver" | "allowMultipleAllocations" as kind, *_]:
                found.add((kind, "", ""))
            case ["attributes" | "capacity" as kind, str(domain), str(name), *_]:
                found.add(("attribute" if kind == "attributes" else "capacity", domain, name))
            case _:
                return False
        stack.extend(_indexes(node))
    return True


def _path(node: Node) -> list[Any] | None:
    """The constant names by which a node selects from the device (None for others), None if it does not."""
    names: list[Any] = []
    while True:
        step = _step(node)
        if step is None:
            break
        node, name = step
        names.append(name)
    if not isinstance(node, Ident) or node.name.removeprefix(".") != "device":
        return None
    names.reverse()
    return names


def _step(node: Node) -> tuple[Node, Any] | None:
    """The operand and the constant name of a selection; the name is None if it is computed."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in ("_[_]", "_[?_]", "_?._"):
        index = node.args[1]
        return node.args[0], index.value if isinstance(index, Literal) else None
    return None


def _indexes(node: Node) -> list[Node]:
    """The computed indices within a path, which may read the device themselves."""
    found: list[Node] = []
    while (step := _step(node)) is not None:
        if isinstance(node, Call) and step[1] is None:
            found.append(node.args[1])
        node = step[0]
    return found
