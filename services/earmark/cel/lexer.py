"""From text to tokens, with the rules of cel-go's grammar (longest match)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from earmark.cel.errors import Fault, SourceError

_ESCAPE: Final = r"(?:\\[abfnrtv\"'\\?`]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\[0-3][0-7][0-7])"
_STRING: Final = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        r'[rR]"""(?s:.)*?"""',
        r"[rR]'''(?s:.)*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_TOKEN: Final = re.compile(
    "|".join(
        (
            r"(?P<space>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            rf"(?P<string>{_STRING})",
            r"(?P<uint>0x[0-9a-fA-F]+[uU])",
            r"(?P<int>0x[0-9a-fA-F]+)",
            r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<uint10>[0-9]+[uU])",
            r"(?P<int10>[0-9]+)",
            r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<op>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])",
        )
    )
)
_KINDS: Final = {"uint10": "uint", "int10": "int"}
_WORDS: Final = frozenset({"in", "true", "false", "null"})


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `kind` is the operator or word itself, or one of name quoted int uint float string bytes end."""

    kind: str
    text: str
    offset: int


def tokens(source: str) -> list[Token]:
    """All tokens of a source, ended by one of kind "end".

    Raises:
        SourceError: for a character that starts no token.
    """
    found: list[Token] = []
    at, end = 0, len(source)
    while at < end:
        match = _TOKEN.match(source, at)
        if match is None:
            # How far upstream's lexer goes before it gives up differs; the place where it starts does not.
            raise SourceError([Fault(at, f"Syntax error: token recognition error at: '{source[at]}'")])
        group = match.lastgroup or ""
        text = match.group()
        if group != "space":
            if group == "op" or (group == "name" and text in _WORDS):
                found.append(Token(text, text, at))
            else:
                found.append(Token(_KINDS.get(group, group), text, at))
        at = match.end()
    found.append(Token("end", "<EOF>", end))
    return found


_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_UNESCAPE: Final = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7][0-7])|(.))")


def string_value(text: str) -> str:
    """The value of a string literal.

    Raises:
        ValueError: with cel-go's text.
    """
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    return _UNESCAPE.sub(_string_escape, body)


def bytes_value(text: str) -> bytes:
    """The value of a bytes literal; escapes of two digits and of three octal ones are bytes.

    Raises:
        ValueError: with cel-go's text.
    """
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    at = 0
    for match in _UNESCAPE.finditer(body):
        parts.append(body[at : match.start()].encode("utf-8", "surrogatepass"))
        two, four, eight, octal, simple = match.groups()
        if four or eight:
            raise ValueError("unable to unescape string")
        if two:
            parts.append(bytes([int(two, 16)]))
        elif octal:
            parts.append(bytes([int(octal, 8)]))
        else:
            parts.append(_SIMPLE[simple].encode())
        at = match.end()
    parts.append(body[at:].encode("utf-8", "surrogatepass"))
    return b"".join(parts)


def _body(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    triple = len(text) >= 6 and text[:3] in ('"""', "'''")
    return (text[3:-3] if triple else text[1:-1]), raw


def _string_escape(match: re.Match[str]) -> str:
    two, four, eight, octal, simple = match.groups()
    if simple:
        return _SIMPLE[simple]
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)
