"""Regular expressions: RE2 with what differs from Go's regexp repaired, and Go's error texts."""

from __future__ import annotations

import re as _re
from functools import lru_cache
from typing import Any, Final

import re2

from earmark.cel.values import Failure

_ANY_BYTE: Final = _re.compile(r"(?<!\\)(?:\\\\)*\\C")
# Escapes and classes are passed over as a whole.
_TOKENS: Final = _re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", _re.S)
# Go's limit, about: it counts repetitions and alternatives too.
_MAX_NESTING: Final = 1000
_QUOTED: Final = _re.compile(r"\\Q.*?(?:\\E|$)", _re.S)


class Pattern:
    """A compiled pattern with Go's find operations."""

    __slots__ = ("_compiled",)

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere."""
        return self._compiled.search(text) is not None

    def find(self, text: str) -> str:
        """The first match, "" if there is none."""
        match = self._compiled.search(text)
        return "" if match is None else str(match.group())

    def find_all(self, text: str, count: int) -> tuple[str, ...]:
        """All matches that do not overlap, at most `count` if it is not negative.

        As in Go, an empty match right after another match does not count.
        """
        found: list[str] = []
        at, last = 0, -1
        while at <= len(text) and (count < 0 or len(found) < count):
            match = self._compiled.search(text, at)
            if match is None:
                break
            start, end = match.span()
            if end > start or start != last:
                found.append(str(match.group()))
            last = end
            at = end if end > start and end > at else max(end, at) + (1 if end <= at else 0)
            if start == end:
                at = end + 1
        return tuple(found)


@lru_cache(maxsize=512)
def compile_pattern(pattern: str) -> Pattern | Failure:
    """The compiled pattern, or what Go says of it."""
    if _ANY_BYTE.search(_QUOTED.sub("", pattern)):
        # RE2 knows \\C, Go does not.
        return Failure("error parsing regexp: invalid escape sequence: `\\C`")
    if _nesting(pattern) > _MAX_NESTING:
        return Failure(f"error parsing regexp: expression nests too deeply: `{pattern}`")
    options = re2.Options()
    options.log_errors = False
    # Only whole matches are asked for; groups would cost memory for every one of them.
    options.never_capture = True
    try:
        return Pattern(re2.compile(pattern, options))
    except re2.error as error:
        return Failure(_go_text(error.args[0] if error.args else ""))


def _nesting(pattern: str) -> int:
    """How deep groups are nested."""
    depth = deepest = 0
    for token in _TOKENS.finditer(_QUOTED.sub("", pattern)):
        if token[0] == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif token[0] == ")":
            depth -= 1
    return deepest


_TEXTS: Final = (
    ("missing argument to repetition operator", "no argument for repetition operator"),
    ("invalid nested repetition operator", "bad repetition operator"),
    ("invalid escape sequence", "invalid escape sequence"),
    ("invalid or unsupported Perl syntax", "invalid perl operator"),
    ("invalid repeat count", "invalid repetition size"),
    ("missing closing ]", "missing ]"),
    ("missing closing )", "missing )"),
    ("unexpected )", "unexpected )"),
    ("invalid character class range", "invalid character class range"),
    ("invalid named capture", "invalid named capture group"),
    ("invalid UTF-8", "invalid UTF-8"),
    ("trailing backslash at end of expression", "trailing \\"),
)


def _go_text(message: object) -> str:
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    for go, ours in _TEXTS:
        if text.startswith(ours):
            subject = text[len(ours) :].removeprefix(": ")
            return f"error parsing regexp: {go}: `{subject}`"
    return f"error parsing regexp: {text}"
