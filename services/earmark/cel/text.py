"""Numbers and strings as Go's fmt and strconv write them."""

from __future__ import annotations

import math
import re
from typing import Final


def go_float(value: float) -> str:
    """FormatFloat(value, 'f', -1, 64): the shortest digits that read back, never an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    digits, exponent = _shortest(value)
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if exponent >= len(digits):
        return sign + digits + "0" * (exponent - len(digits))
    if exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    return f"{sign}{digits[:exponent]}.{digits[exponent:]}"


def go_g(value: float) -> str:
    """Sprintf("%g"): the shortest digits, with an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return go_float(value)
    digits, exponent = _shortest(value)
    if value != 0 and not -4 <= exponent - 1 < 6:
        sign = "-" if value < 0 else ""
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        power = exponent - 1
        return f"{sign}{digits[0]}{rest}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return go_float(value)


def _shortest(value: float) -> tuple[str, int]:
    """The digits of a number and where the point is: 0.digits * 10**exponent."""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(whole) + (int(power) if power else 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return (digits, exponent) if digits else ("0", 1)


_GO_ESCAPES: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip


def go_quote(text: str) -> str:
    """Sprintf("%q")."""
    parts = ['"']
    for char in text:
        escaped = _GO_ESCAPES.get(char)
        code = ord(char)
        if escaped is not None:
            parts.append(escaped)
        elif char.isprintable():
            parts.append(char)
        elif code < 0x80:
            parts.append(f"\\x{code:02x}")
        elif code < 0x10000:
            parts.append(f"\\u{code:04x}")
        else:
            parts.append(f"\\U{code:08x}")
    parts.append('"')
    return "".join(parts)


# Unicode's White_Space, which is what Go's TrimSpace removes; Python's strip removes four control characters more.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
)

_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9](?:_?[0-9])*)?\.?(?:[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.I | re.ASCII
)
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII)


def parse_float(text: str) -> float | None:
    """ParseFloat(text, 64), None where it gives an error."""
    if _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return None
    if not _FLOAT.fullmatch(text) or "_" in text:
        return None
    if text[:1] in "+-" and text[1:].lower() == "nan":
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if math.isinf(value) and "inf" not in text.lower():
        return None
    return value


_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


def parse_int(text: str, low: int, high: int, signed: bool) -> int | None:
    """ParseInt or ParseUint in base 10, None where it gives an error."""
    if not _INT.fullmatch(text) or (not signed and text[0] in "+-"):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > 20:
        return None
    value = int(digits or "0")
    value = -value if text[0] == "-" else value
    return value if low <= value <= high else None
