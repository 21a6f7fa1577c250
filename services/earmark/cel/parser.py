"""From tokens to nodes: cel-go's grammar by precedence climbing, with its limits on size and nesting."""

from __future__ import annotations

from typing import Final

from earmark.cel.errors import Fault, SourceError
from earmark.cel.lexer import Token, bytes_value, string_value, tokens
from earmark.cel.macros import Copies, expand
from earmark.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from earmark.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

# cel-go's defaults.
MAX_CODE_POINTS: Final = 100_000
MAX_DEPTH: Final = 250

_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_RELATIONS: Final = {
    "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in",
}  # fmt: skip
_ARITHMETIC: Final = {"+": ("_+_", 0), "-": ("_-_", 0), "*": ("_*_", 1), "/": ("_/_", 1), "%": ("_%_", 1)}
_EXPECTED: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def parse(source: str) -> Node:
    """The tree of an expression, macros expanded.

    Raises:
        SourceError: if it does not parse, is longer than 100,000 code points or nested deeper than 250 levels.
    """
    if len(source) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        raise SourceError([Fault(None, message)])
    parser = _Parser(tokens(source))
    node = parser.whole()
    if node.depth > MAX_DEPTH:
        raise SourceError([Fault(None, "max recursion depth exceeded")])
    return node


class _Parser:
    """One parse. The counters follow the depth of the grammar's recursive rules, as cel-go's listener does."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0
        self._token = found[0]
        self._expressions = 0
        self._relations = 0
        self._sums = 0
        self._members = 0
        self._copies = Copies()

    # --- tokens ------------------------------------------------------------------------------------------------------

    def _next(self) -> Token:
        token = self._token
        if token.kind != "end":
            self._at += 1
            self._token = self._tokens[self._at]
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._next() if self._token.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._token.kind != kind:
            problem = "missing" if kind in (")", "]", "}", ":") else "mismatched input"
            shown = self._token.text
            if problem == "missing":
                raise self._fault(f"Syntax error: missing '{kind}' at '{shown}'")
            raise self._fault(f"Syntax error: mismatched input '{shown}' expecting {kind.upper()}")
        return self._next()

    def _fault(self, message: str, offset: int | None = None) -> SourceError:
        at = self._token.offset if offset is None else offset
        if offset is None and self._token.kind == "end" and not at:
            at = 0
        return SourceError([Fault(at, message)])

    def _limit(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise SourceError([Fault(None, f"expression recursion limit exceeded: {MAX_DEPTH}")])

    # --- expressions -------------------------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise self._fault(f"Syntax error: mismatched input '{self._token.text}' expecting <EOF>")
        return node

    def _expression(self) -> Node:
        self._expressions += 1
        self._limit(self._expressions)
        node = self._logical("||")
        question = self._accept("?")
        if question is not None:
            truthy = self._logical("||")
            self._expect(":")
            falsy = self._expression()
            node = Call(question.offset, "_?_:_", None, [node, truthy, falsy], counted=True)
        self._expressions -= 1
        return node

    def _logical(self, operator: str) -> Node:
        """A chain of || or of &&, as the balanced tree that cel-go makes of it."""
        part = self._relation if operator == "&&" else self._conjunction
        first = part()
        if self._token.kind != operator:
            return first
        terms, offsets = [first], []
        while (found := self._accept(operator)) is not None:
            offsets.append(found.offset)
            terms.append(part())
        return _balanced("_||_" if operator == "||" else "_&&_", terms, offsets, 0, len(offsets) - 1)

    def _conjunction(self) -> Node:
        return self._logical("&&")

    def _relation(self, right: bool = False) -> Node:
        """A chain of comparisons; the right side of one is a rule of its own for the limit."""
        self._relations += 1
        self._limit(self._relations)
        start = self._relations
        node = self._calculation(0)
        while not right and (function := _RELATIONS.get(self._token.kind)) is not None:
            self._relations += 1
            self._limit(self._relations)
            offset = self._next().offset
            node = Call(offset, function, None, [node, self._relation(right=True)], counted=True)
        self._relations = start - 1
        return node

    def _calculation(self, least: int) -> Node:
        """Sums (precedence 0) and products (1), which are one left-recursive rule."""
        self._sums += 1
        self._limit(self._sums)
        start = self._sums
        node = self._unary()
        while (operator := _ARITHMETIC.get(self._token.kind)) is not None and operator[1] >= least:
            self._sums += 1
            self._limit(self._sums)
            offset = self._next().offset
            node = Call(offset, operator[0], None, [node, self._calculation(operator[1] + 1)], counted=True)
        self._sums = start - 1
        return node

    def _unary(self) -> Node:
        token = self._token
        if token.kind == "!" or (token.kind == "-" and not self._signed_number()):
            count = 0
            while self._token.kind == token.kind:
                self._next()
                count += 1
            operand = self._member()
            if count % 2 == 0:
                return operand
            return Call(token.offset, "!_" if token.kind == "!" else "-_", None, [operand])
        return self._member()

    def _signed_number(self) -> bool:
        """Whether the minus here belongs to a number."""
        return self._token.kind == "-" and self._tokens[self._at + 1].kind in ("int", "float")

    def _member(self) -> Node:
        self._members += 1
        self._limit(self._members)
        start = self._members
        node = self._primary()
        while self._token.kind in (".", "["):
            self._members += 1
            self._limit(self._members)
            opening = self._next()
            node = self._selection(node, opening) if opening.kind == "." else self._index(node, opening)
        self._members = start - 1
        return node

    def _selection(self, operand: Node, dot: Token) -> Node:
        optional = self._accept("?") is not None
        token = self._token
        if token.kind not in ("name", "quoted"):
            raise self._fault(f"Syntax error: no viable alternative at input '.{token.text}'")
        self._next()
        if token.kind == "name" and not optional and self._token.kind == "(":
            opening = self._next()
            args = self._arguments()
            expanded = expand(opening.offset, token.text, operand, args, self._copies)
            return Call(opening.offset, token.text, operand, args, counted=True) if expanded is None else expanded
        field = token.text[1:-1] if token.kind == "quoted" else token.text
        if optional:
            return Call(dot.offset, "_?._", None, [operand, Literal(token.offset, field)])
        return Select(dot.offset, operand, field)

    def _index(self, operand: Node, bracket: Token) -> Node:
        function = "_[?_]" if self._accept("?") is not None else "_[_]"
        index = self._expression()
        self._expect("]")
        return Call(bracket.offset, function, None, [operand, index], counted=True)

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        if self._accept(")") is not None:
            return args
        args.append(self._expression())
        while self._accept(",") is not None:
            args.append(self._expression())
        self._expect(")")
        return args

    # --- what an expression begins with ------------------------------------------------------------------------------

    def _primary(self) -> Node:
        token = self._token
        match token.kind:
            case "(":
                self._next()
                node = self._expression()
                self._expect(")")
                return node
            case "[":
                return self._list()
            case "{":
                return self._map()
            case "." | "name":
                return self._name()
            case _:
                return self._literal()

    def _list(self) -> Node:
        opening = self._next()
        elements: list[Node] = []
        optional: set[int] = set()
        while self._token.kind not in ("]", ","):
            if self._accept("?") is not None:
                optional.add(len(elements))
            elements.append(self._expression())
            if self._token.kind != ",":
                break
            self._next()
            if self._token.kind == "]":
                break
        else:
            # An empty list may hold a comma.
            if not elements:
                self._accept(",")
        self._expect("]")
        return ListNode(opening.offset, elements, frozenset(optional))

    def _map(self) -> Node:
        opening = self._next()
        entries: list[tuple[Node, Node, bool]] = []
        if self._token.kind == ",":
            self._next()
        else:
            while self._token.kind != "}":
                optional = self._accept("?") is not None
                key = self._expression()
                self._expect(":")
                entries.append((key, self._expression(), optional))
                if self._accept(",") is None:
                    break
        self._expect("}")
        return MapNode(opening.offset, entries)

    def _name(self) -> Node:
        start = self._token.offset
        leading = "." if self._accept(".") is not None else ""
        token = self._token
        if token.kind != "name":
            raise self._unexpected()
        self._next()
        struct = self._struct_ahead()
        if struct is not None:
            return self._struct(leading + token.text)
        if token.text in _RESERVED:
            raise self._fault(f"reserved identifier: {token.text}", start)
        if self._token.kind == "(":
            opening = self._next()
            args = self._arguments()
            expanded = expand(opening.offset, leading + token.text, None, args, self._copies)
            return Call(opening.offset, leading + token.text, None, args) if expanded is None else expanded
        return Ident(token.offset, leading + token.text)

    def _struct_ahead(self) -> int | None:
        """Where the brace of a message literal is, if the names here lead to one."""
        at = self._at
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "name":
            at += 2
        return at if self._tokens[at].kind == "{" else None

    def _struct(self, name: str) -> Node:
        while self._accept(".") is not None:
            name += "." + self._next().text
        opening = self._next()
        fields: list[tuple[int, str, Node, bool]] = []
        if self._token.kind == ",":
            self._next()
        else:
            while self._token.kind != "}":
                optional = self._accept("?") is not None
                token = self._token
                if token.kind not in ("name", "quoted"):
                    raise self._unexpected()
                self._next()
                colon = self._expect(":")
                field = token.text[1:-1] if token.kind == "quoted" else token.text
                fields.append((colon.offset, field, self._expression(), optional))
                if self._accept(",") is None:
                    break
        self._expect("}")
        return StructNode(opening.offset, name, fields)

    def _unexpected(self) -> SourceError:
        message = f"Syntax error: mismatched input '{self._token.text}' expecting {_EXPECTED}"
        if self._token.kind == "end" and self._token.offset == 0:
            # Upstream reports the column before the first one.
            return SourceError([Fault(-1, message)])
        return self._fault(message)

    def _literal(self) -> Node:
        start = self._token.offset
        sign = "-" if self._signed_number() and self._accept("-") else ""
        token = self._token
        text = token.text
        match token.kind:
            case "true" | "false":
                value: object = token.kind == "true"
            case "null":
                value = None
            case "int":
                value = int(text, 16) if text.startswith("0x") else _decimal(text)
                value = -value if sign else value
                if not MIN_INT <= value <= MAX_INT:
                    raise self._fault("invalid int literal", start)
            case "uint":
                number = int(text[:-1], 16) if text.startswith("0x") else _decimal(text[:-1])
                if number > MAX_UINT:
                    raise self._fault("invalid uint literal", start)
                value = Uint(number)
            case "float":
                value = float(sign + text)
                if value in (float("inf"), float("-inf")):
                    raise self._fault("invalid double literal", start)
            case "string" | "bytes":
                try:
                    value = string_value(text) if token.kind == "string" else bytes_value(text)
                except ValueError as error:
                    raise self._fault(str(error), start) from error
            case _:
                raise self._unexpected()
        self._next()
        return Literal(start, value)


def _decimal(digits: str) -> int:
    """int() for any length; what is too long is too large anyway."""
    digits = digits.lstrip("0")
    return int(digits or "0") if len(digits) <= 20 else MAX_UINT + 1


def _balanced(function: str, terms: list[Node], offsets: list[int], low: int, high: int) -> Node:
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balanced(function, terms, offsets, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balanced(function, terms, offsets, middle + 1, high)
    return Call(offsets[middle], function, None, [left, right])
