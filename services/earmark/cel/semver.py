"""Semantic versions as the allocator reads and orders them (blang/semver)."""

from __future__ import annotations

from typing import Any, Final

from earmark.cel.text import go_quote
from earmark.cel.values import OpaqueValue

_MAX: Final = 2**64 - 1
_DIGITS: Final = frozenset("0123456789")
_ALPHANUMERIC: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-0123456789")


class Semver(OpaqueValue):
    """A version. `key` is what is compared: numbers and pre-release parts, without build metadata."""

    __slots__ = ("build",)
    type_name = "kubernetes.Semver"
    go_name = "cel.Semver"

    def __init__(self, key: tuple[int, int, int, tuple[Any, ...]], build: str = "") -> None:
        super().__init__(key)
        self.build = build

    def compare(self, other: Semver) -> int:
        """-1, 0 or 1; a pre-release comes before its release."""
        return (self._order > other._order) - (self._order < other._order)

    @property
    def _order(self) -> tuple[Any, ...]:
        major, minor, patch, pre = self.key
        # Numbers come before words; a shorter list comes before a longer one that begins with it.
        parts = tuple((0, one, "") if one.__class__ is int else (1, 0, one.encode()) for one in pre)
        return (major, minor, patch, not pre, parts)

    def __str__(self) -> str:
        major, minor, patch, pre = self.key
        text = f"{major}.{minor}.{patch}"
        if pre:
            text += "-" + ".".join(str(one) for one in pre)
        return f"{text}+{self.build}" if self.build else text


def parse_semver(text: str) -> Semver:
    """Read a version strictly.

    Raises:
        ValueError: with upstream's text.
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "major", "Major")
    minor = _number(parts[1], "minor", "Minor")
    patch_text, plus, build = parts[2].partition("+")
    patch_text, minus, pre = patch_text.partition("-")
    patch = _number(patch_text, "patch", "Patch")
    released = tuple(_pre_release(one) for one in pre.split(".")) if minus else ()
    if plus:
        for one in build.split("."):
            if not one:
                raise ValueError("Build meta data is empty")
            if not _ALPHANUMERIC.issuperset(one):
                raise ValueError(f"Invalid character(s) found in build meta data {go_quote(one)}")
    return Semver((major, minor, patch, released), build)


def normalized_semver(text: str) -> Semver:
    """Read a version with a leading v, leading zeros or fewer than three numbers.

    Raises:
        ValueError: with upstream's text.
    """
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        # Upstream counts bytes.
        if len(part.encode("utf-8", "surrogatepass")) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in _DIGITS else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return parse_semver(".".join(parts))


def _number(text: str, name: str, title: str) -> int:
    if not _DIGITS.issuperset(text):
        raise ValueError(f"Invalid character(s) found in {name} number {go_quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{title} number must not contain leading zeroes {go_quote(text)}")
    return _parse_uint(text)


def _parse_uint(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > _MAX:
        raise ValueError(f"strconv.ParseUint: parsing {go_quote(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {go_quote(text)}")
        return _parse_uint(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise ValueError(f"Invalid character(s) found in prerelease {go_quote(text)}")
    return text
