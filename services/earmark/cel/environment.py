"""The way in: an environment declares variables, compiles expressions to programs, and a program is evaluated."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from earmark.cel import formatlib, kubelib, listlib, netlib, stdlib, stringlib
from earmark.cel.checker import Declarations, check
from earmark.cel.declarations import CIDR, IP, Library
from earmark.cel.errors import CompileError, EvaluationAborted, SourceError, describe
from earmark.cel.frames import Frame, Run
from earmark.cel.macros import UNUSED
from earmark.cel.parser import parse
from earmark.cel.planner import plan
from earmark.cel.syntax import Comprehension, Node, children, walk
from earmark.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of_type,
)
from earmark.cel.validators import validate
from earmark.cel.values import Failure

# resource.CELSelectorExpressionMaxCost.
DEFAULT_COST_LIMIT: Final = 1_000_000
# Trees are at most 250 levels deep; a macro makes up to eight frames of a level. Python's own limit is lower.
_FRAMES: Final = 12_000
_SHALLOW: Final = 60
# Slots of the interpreter's stack that are taken at once for what is deep or loops: see _roomy.
_ROOM: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an evaluation gave: a value, or the text of an error; and what it cost."""

    value: Any
    error: str | None
    cost: int


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression."""

    source: str
    root: Node
    output: Type
    run: Run
    slots: int
    deep: bool

    def evaluate(self, variables: dict[str, Any], cost_limit: int = DEFAULT_COST_LIMIT) -> Outcome:
        """Evaluate the expression.

        Args:
            variables: values (see earmark.cel.values) of all declared variables.
            cost_limit: in cost units; beyond it the evaluation ends with an error.
        """
        frame = Frame(variables, self.slots, cost_limit)
        try:
            value = self._deep(frame) if self.deep else self.run(frame)
        except EvaluationAborted as error:
            return Outcome(None, str(error), frame.cost)
        if value.__class__ is Failure:
            return Outcome(None, value.text, frame.cost)
        return Outcome(value, None, frame.cost)

    def _deep(self, frame: Frame) -> Any:
        with _Deep():
            return _roomy(self.run, frame)


class _Deep:
    """Allows more Python frames for the time of a compilation or evaluation; they are bounded by the parser."""

    def __enter__(self) -> None:
        self._before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(self._before, _FRAMES))

    def __exit__(self, *_: object) -> None:
        sys.setrecursionlimit(self._before)


def _called(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


# CPython keeps the frames of Python functions in chunks of 16 KiB: mapped when a call crosses the end of the last one,
# unmapped when it returns. A loop that calls across such an end pays two system calls a round, which made nests of
# folds ten times slower at unlucky depths. A frame this large gets a chunk of its own, with room for all it calls.
_roomy: Final = FunctionType(_called.__code__.replace(co_stacksize=_ROOM), globals(), "_roomy")


@dataclass(frozen=True, slots=True)
class Environment:
    """The declarations that expressions are compiled against.

    Attributes:
        variables: names and types.
        structs: the fields of the message types that variables have.
    """

    variables: dict[str, Type]
    structs: dict[str, dict[str, Type]] = field(default_factory=dict)
    _library: Library = field(default_factory=lambda: _standard(), repr=False)

    def compile(self, source: str, refusal: Callable[[Type], str | None] | None = None) -> Program:
        """Compile an expression.

        Args:
            refusal: says why an expression of a type is not accepted, None if it is.

        Raises:
            CompileError: with upstream's text ("compilation failed: ..." or "program instantiation failed: ...").
        """
        with _Deep():
            program: Program = _roomy(self._compiled, source, refusal)
        return program

    def _compiled(self, source: str, refusal: Callable[[Type], str | None] | None) -> Program:
        declarations = Declarations(self._library.functions, self.variables, _TYPE_NAMES, self.structs)
        try:
            root = parse(source)
            output = check(root, declarations)
            faults = validate(root)
            if faults:
                raise SourceError(faults)
            refused = None if refusal is None else refusal(output)
            if refused is not None:
                raise CompileError(refused)
            run, slots = plan(root, declarations)
        except SourceError as error:
            raise CompileError(f"compilation failed: {describe(source, error.faults)}") from error
        except EvaluationAborted as error:
            # A constant part cannot even be evaluated; upstream crashes here.
            raise CompileError(f"program instantiation failed: {error}") from error
        except RecursionError as error:
            raise CompileError("compilation failed: the expression is nested too deeply") from error
        return Program(source, root, output, run, slots, _loops(root) or _height(root) > _SHALLOW)


def _standard() -> Library:
    library = Library()
    # In upstream's order: of overloads that fit alike the first one decides what is known of type variables.
    for module in (stdlib, stringlib, kubelib, netlib, formatlib, listlib):
        module.declare(library)
    return library


def _loops(root: Node) -> bool:
    """Whether there are folds, other than those that only bind a name."""
    return any(isinstance(node, Comprehension) and node.iter_var != UNUSED for node in walk(root))


def _height(root: Node) -> int:
    """How many levels a tree has."""
    height, level = 0, [root]
    while level:
        height += 1
        level = [below for node in level for below in children(node)]
    return height


_TYPE_NAMES: Final = {
    one.name: type_of_type(one)
    for one in (
        BOOL, BYTES, DOUBLE, DURATION, INT, list_of(DYN), map_of(DYN, DYN), NULL, STRING, TIMESTAMP, UINT,
        type_of_type(DYN), optional_of(DYN), IP, CIDR,
    )
}  # fmt: skip
