"""string.format(): the clauses of the strings extension before version 4, with their odd spaces and quotes.

Those versions hand %f and %e to a locale-aware printer, which groups digits by thousands and writes exponents its own
way; that is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from earmark.cel.limits import joined, text_bound
from earmark.cel.text import go_quote
from earmark.cel.values import Duration, Failure, ListBuilder, MapValue, Timestamp, TypeValue, Uint, type_name

_PRECISION: Final = 6
# Beyond it there are only zeros; upstream would print them all.
_MAX_PRECISION: Final = 10_000
_CLAUSE: Final = re.compile(r"(?:\.([0-9]*))?(.)", re.S)
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})


class _FormatProblem(Exception):
    """A clause and its argument do not fit."""


STRING_PROBLEM: Final = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given "
)
PROBLEMS: Final = {
    "s": STRING_PROBLEM,
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}


def scan(text: str, count: int, render: Callable[[int, str, int | None], str]) -> str:
    """Go through a format string.

    Args:
        count: how many arguments there are.
        render: gives the text of an argument: its index, the clause's letter and its precision.

    Raises:
        ValueError: with upstream's text.
    """
    parts: list[str] = []
    at, index, length = 0, 0, 0
    while at < len(text):
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            parts.append(text[at:end])
            at = end
            continue
        if text[at + 1 : at + 2] == "%":
            parts.append("%")
            at += 2
            continue
        if index >= count:
            raise ValueError(f"index {index} out of range")
        if at + 1 >= len(text):
            raise ValueError("unexpected end of string")
        letter, precision, at = _clause(text, at + 1)
        try:
            parts.append(render(index, letter, precision))
        except _FormatProblem as problem:
            raise ValueError(f"error during formatting: {problem}") from problem
        length += len(parts[-1])
        text_bound(length)
        index += 1
    return "".join(parts)


def _clause(text: str, at: int) -> tuple[str, int | None, int]:
    start = "could not parse formatting clause: "
    match = _CLAUSE.match(text, at)
    if match is None:
        raise ValueError(f"{start}error while parsing precision: could not find end of precision specifier")
    precision: int | None = None
    if match[1] is not None:
        if not match[1]:
            problem = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
            raise ValueError(f"{start}error while parsing precision: {problem}")
        precision = min(int(match[1][:9]), _MAX_PRECISION)
    letter = match[2]
    if letter not in "sdfebxXo":
        raw = letter.encode("utf-8", "replace")[0]
        raise ValueError(f'{start}unrecognized formatting clause "{chr(raw)}"')
    return letter, precision, match.end()


def problem(letter: str, name: str) -> _FormatProblem:
    """The error of a clause for a type that it cannot print."""
    return _FormatProblem(PROBLEMS[letter.lower()] + name)


def format_string(text: str, args: Any) -> Any:
    """text.format(args)."""
    try:
        return scan(text, len(args), lambda index, letter, precision: _render(args[index], letter, precision))
    except ValueError as error:
        return Failure(str(error))


def _render(value: Any, letter: str, precision: int | None) -> str:
    kind = value.__class__
    match letter:
        case "s":
            return _string(value)
        case "d" if kind in (int, Uint):
            return str(int(value))
        case "f" | "e":
            if kind is str and value in _SPECIAL:
                value = float(value.replace("Infinity", "inf"))
            elif kind is not float:
                raise problem(letter, type_name(value))
            digits = _PRECISION if precision is None else precision
            return fixed(value, digits) if letter == "f" else scientific(value, digits)
        case "b" if kind in (int, Uint, bool):
            return format(int(value), "b")
        case "x" | "X" if kind in (int, Uint, str, bytes):
            raw = value.encode("utf-8", "surrogatepass") if kind is str else value
            shown = raw.hex() if kind in (str, bytes) else format(int(value), "x")
            return shown.upper() if letter == "X" else shown
        case "o" if kind in (int, Uint):
            return format(int(value), "o")
        case _:
            raise problem(letter, type_name(value))


def fixed(value: float, digits: int) -> str:
    """%.nf as the English printer writes it."""
    if not math.isfinite(value):
        return _unusual(value)
    return f"{value:,.{digits}f}"


_SUPERSCRIPT: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def scientific(value: float, digits: int) -> str:
    """%.ne as the English printer writes it: 1.500000×10⁰⁰."""
    if not math.isfinite(value):
        return _unusual(value)
    # Upstream builds its format string without the point, so that the precision is a width.
    mantissa, _, exponent = f"{value:.{_PRECISION}e}".partition("e")
    power = int(exponent)
    sign = "-" if power < 0 else ""
    text = f"{mantissa}×10{(sign + f'{abs(power):02d}').translate(_SUPERSCRIPT)}"
    return text.rjust(digits)


def _unusual(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"


def _string(value: Any) -> str:
    kind = value.__class__
    if kind is tuple or kind is ListBuilder:
        return "[" + joined((_quoted(one, _member(one)) for one in value), ", ") + "]"
    if isinstance(value, MapValue):
        return _map(value)
    if value is None:
        return "null"
    if kind is TypeValue:
        return str(value.name)
    if kind in (int, Uint, float, bool, str, bytes, Timestamp, Duration):
        return _plain(value)
    raise problem("s", type_name(value))


def _plain(value: Any) -> str:
    from earmark.cel.stdlib import to_string

    converted = to_string(value)
    if isinstance(converted, Failure):
        raise _FormatProblem(f"could not convert argument {go_quote(converted.text)} to string")
    return str(converted)


def _member(value: Any) -> str:
    """An element of a list or map."""
    kind = value.__class__
    if kind in (int, Uint):
        return str(int(value))
    if kind is Timestamp:
        return f"timestamp({go_quote(_plain(value))})"
    if kind is Duration:
        return f"duration({go_quote(_plain(value))})"
    if kind is float:
        return _go_fixed(value)
    if kind in (str, bytes, bool, tuple, ListBuilder, TypeValue) or value is None or isinstance(value, MapValue):
        return _string(value)
    raise _FormatProblem(f"no formatting function for {type_name(value)}")


def _go_fixed(value: float) -> str:
    if math.isfinite(value):
        return f"{value:.{_PRECISION}f}"
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _quoted(value: Any, text: str) -> str:
    kind = value.__class__
    if kind is str or (kind is float and not math.isfinite(value)):
        return go_quote(text)
    return "b" + go_quote(text) if kind is bytes else text


def _map(value: MapValue) -> str:
    pairs = []
    for key in value:
        if key.__class__ not in (str, bool, int, Uint):
            raise _FormatProblem(f"no formatting function for map key of type {type_name(key)}")
        shown_key = _quoted(key, _plain(key))
        member = value.find(key)
        pairs.append((shown_key, _quoted(member, _member(member))))
    pairs.sort(key=lambda pair: pair[0])
    return "{" + joined((f"{key}:{member}" for key, member in pairs), ", ") + "}"
