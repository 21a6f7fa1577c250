"""The strings extension, version 2: char positions count code points."""

from __future__ import annotations

from typing import Any, Final

from earmark.cel.declarations import Library
from earmark.cel.formatting import format_string
from earmark.cel.limits import joined, text_bound
from earmark.cel.regex import Pattern, compile_pattern
from earmark.cel.text import WHITE_SPACE
from earmark.cel.values import Failure, shown


def _range(index: int) -> Failure:
    return Failure(f"index out of range: {index}")


def _char_at(text: str, index: int) -> Any:
    return text[index : index + 1] if 0 <= index <= len(text) else _range(index)


def _index_of(text: str, part: str, offset: int = 0) -> Any:
    if offset < 0:
        return _range(offset)
    if not part:
        return min(offset, len(text))
    return text.find(part, offset)


def _last_index_of(text: str, part: str) -> Any:
    return text.rfind(part)


def _last_index_of_offset(text: str, part: str, offset: int) -> Any:
    if offset < 0:
        return _range(offset)
    if not part:
        return min(offset, len(text))
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, offset + len(part))


_LOWER: Final = {code: code + 32 for code in range(65, 91)}
_UPPER: Final = {code: code - 32 for code in range(97, 123)}


def _replace(text: str, old: str, new: str, count: int = -1) -> Any:
    if len(new) > len(old):
        found = text.count(old)
        text_bound(len(text) + (found if count < 0 else min(found, count)) * (len(new) - len(old)))
    return text.replace(old, new, count)


def _split(text: str, separator: str, count: int = -1) -> Any:
    if count == 0:
        return ()
    if not separator:
        parts = list(text)
        if 0 < count < len(parts):
            parts[count - 1 :] = ["".join(parts[count - 1 :])]
        return tuple(parts)
    return tuple(text.split(separator, count - 1 if count > 0 else -1))


def _substring(text: str, start: int) -> Any:
    return text[start:] if 0 <= start <= len(text) else _range(start)


def _substring_range(text: str, start: int, end: int) -> Any:
    if start > end:
        return Failure(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        return _range(start)
    return text[start:end] if 0 <= end <= len(text) else _range(end)


def _join(parts: Any, separator: str = "") -> Any:
    for part in parts:
        if part.__class__ is not str:
            return Failure(f"join: invalid input: {shown(part)}")
    return joined(parts, separator)


_QUOTED: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def _quote(text: str) -> Any:
    return '"' + "".join(_QUOTED.get(char, char) for char in text) + '"'


def _find(text: str, pattern: str) -> Any:
    compiled = compile_pattern(pattern)
    return compiled.find(text) if isinstance(compiled, Pattern) else Failure(f"Illegal regex: {compiled.text}")


def _find_all(text: str, pattern: str, count: int = -1) -> Any:
    compiled = compile_pattern(pattern)
    if isinstance(compiled, Failure):
        return Failure(f"Illegal regex: {compiled.text}")
    return compiled.find_all(text, count)


def declare(library: Library) -> None:
    """Add the strings extension and the Kubernetes regex functions."""

    def member(name: str, identifier: str, signature: str, implementation: Any, sequential: bool = False) -> None:
        library.add(name, identifier, signature, implementation, member=True, sequential=sequential)

    member("charAt", "string_char_at_int", "string, int -> string", _char_at)
    member("indexOf", "string_index_of_string", "string, string -> int", _index_of)
    member("indexOf", "string_index_of_string_int", "string, string, int -> int", _index_of, True)
    member("lastIndexOf", "string_last_index_of_string", "string, string -> int", _last_index_of)
    member("lastIndexOf", "string_last_index_of_string_int", "string, string, int -> int", _last_index_of_offset, True)
    member("lowerAscii", "string_lower_ascii", "string -> string", lambda text: text.translate(_LOWER))
    member("upperAscii", "string_upper_ascii", "string -> string", lambda text: text.translate(_UPPER))
    member("replace", "string_replace_string_string", "string, string, string -> string", _replace, True)
    member("replace", "string_replace_string_string_int", "string, string, string, int -> string", _replace, True)
    member("split", "string_split_string", "string, string -> list<string>", _split)
    member("split", "string_split_string_int", "string, string, int -> list<string>", _split, True)
    member("substring", "string_substring_int", "string, int -> string", _substring)
    member("substring", "string_substring_int_int", "string, int, int -> string", _substring_range, True)
    member("trim", "string_trim", "string -> string", lambda text: text.strip(WHITE_SPACE))
    member("format", "string_format", "string, list<dyn> -> string", format_string, True)
    library.add("strings.quote", "strings_quote", "string -> string", _quote)
    member("join", "list_join", "list<string> -> string", _join)
    member("join", "list_join_string", "list<string>, string -> string", _join)
    member("find", "string_find_string", "string, string -> string", _find)
    member("findAll", "string_find_all_string", "string, string -> list<string>", _find_all)
    member("findAll", "string_find_all_string_int", "string, string, int -> list<string>", _find_all, True)
