"""Kubernetes quantities ("1536Mi", "1e9"): exact, immutable values with the text that Go writes.

The rules are those of apimachinery's resource.Quantity, with what it keeps of a parsed text: a quantity is a decimal
mantissa and a power of ten, either in 64 bits ("small") or of any size ("big"), and a format. Which of the two forms
a value has can be seen from outside (is it an integer? are two the same as Go structs?), so the form is kept too.
CEL's view of quantities is not here (earmark.cel).
"""

from __future__ import annotations

import enum
import re
from functools import lru_cache
from typing import Final

_MAX_INT64: Final = 2**63 - 1
_MIN_INT64: Final = -(2**63)
# Decimal digits that always fit into 64 bits.
_SAFE_DIGITS: Final = 18
_NANO: Final = -9
# Go computes 10**n for any n up to 2**31 and hangs; nothing real is near this bound.
_MAX_SHIFT: Final = 20_000

_POWERS: Final = {power: float(f"1e{power}") for power in range(-323, 309)}

_SHAPE: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<zeros>0*)(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?(?P<suffix>[eEinumkKMGTP]*[-+]?[0-9]*)",
    re.ASCII,
)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)


class QuantityError(ValueError):
    """A text is no quantity, or a calculation leaves the range that is supported."""


class Format(enum.Enum):
    """How a quantity is written: as 12M, 12Mi or 12e6."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


WRONG_FORMAT: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_NUMBER: Final = "unable to parse numeric part of quantity"
WRONG_SUFFIX: Final = "unable to parse quantity's suffix"

_DECIMAL_SUFFIXES: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_BY_EXPONENT: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}


class Quantity:
    """An exact amount. Equality, order and hash are those of the value; `same_struct` compares as Go's == does."""

    __slots__ = ("_big", "_format", "_kept", "_key", "_mantissa", "_nano", "_scale", "_text")

    def __init__(self, mantissa: int, scale: int, big: bool, form: Format, kept: str | None = None) -> None:
        """Make mantissa * 10**scale. Use `parse`, `of` or `of_milli` instead.

        Args:
            mantissa: the digits with their sign; within 64 bits if not big.
            scale: the power of ten.
            big: whether Go would hold it as an inf.Dec.
            form: how it is written.
            kept: the text that it was read from, if Go remembers it.
        """
        self._mantissa = mantissa
        self._nano: int | None = None
        self._scale = scale
        self._big = big
        self._format = form
        self._kept = kept
        self._text = kept
        self._key: tuple[int, int] | None = None

    # --- making ------------------------------------------------------------------------------------------------------

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read a quantity as resource.ParseQuantity does (no surrounding space is allowed).

        Raises:
            QuantityError: with upstream's text.
        """
        if not text:
            raise QuantityError(WRONG_FORMAT)
        if text == "0":
            return cls(0, 0, False, Format.DECIMAL_SI, "0")
        shape = _SHAPE.fullmatch(text)
        if shape is None:
            raise QuantityError(WRONG_FORMAT)
        base, exponent, form = _suffix(shape["suffix"])
        whole = shape["whole"] or "0"
        fraction = shape["fraction"] or ""
        negative = shape["sign"] == "-"
        small = _parse_small(text, negative, whole, fraction, exponent, form)
        if small is not None:
            return small
        if not (shape["zeros"] or shape["whole"] or fraction):
            raise QuantityError(WRONG_NUMBER)
        return _parse_big(negative, shape["whole"], fraction, base, exponent, form)

    @classmethod
    def of(cls, value: int, form: Format = Format.DECIMAL_SI) -> Quantity:
        """Make a whole amount (resource.NewQuantity).

        Raises:
            QuantityError: if it does not fit into 64 bits.
        """
        return cls._of_scaled(value, 0, form)

    @classmethod
    def of_milli(cls, value: int, form: Format = Format.DECIMAL_SI) -> Quantity:
        """Make an amount of thousandths (resource.NewMilliQuantity).

        Raises:
            QuantityError: if it does not fit into 64 bits.
        """
        return cls._of_scaled(value, -3, form)

    @classmethod
    def _of_scaled(cls, value: int, scale: int, form: Format) -> Quantity:
        if not _MIN_INT64 <= value <= _MAX_INT64:
            raise QuantityError(f"{value} does not fit into 64 bits")
        return cls(value, scale, False, form)

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def format(self) -> Format:
        """How it is written."""
        return self._format

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self._mantissa > 0) - (self._mantissa < 0)

    @property
    def is_big(self) -> bool:
        """Whether Go holds it as a big decimal; such a quantity is no integer for CEL, whatever its value."""
        return self._big

    @property
    def nano(self) -> int:
        """The value in 1e-9 units: exact, since parsing rounds up to whole nanos.

        Raises:
            QuantityError: for absurd exponents ("1e100000").
        """
        if self._nano is None:
            self._nano = _shifted(self._mantissa, self._scale - _NANO)
        return self._nano

    def value(self) -> int:
        """The value rounded up to a whole number (Quantity.Value, with its results on overflow)."""
        return self._scaled_value(0)

    def milli_value(self) -> int:
        """The value in thousandths, rounded up (Quantity.MilliValue, with its results on overflow)."""
        return self._scaled_value(-3)

    def _scaled_value(self, scale: int) -> int:
        if not self._big:
            if self._scale < scale:
                return _wrapped(_round_away(self._mantissa, scale - self._scale))
            shift = self._scale - scale
            scaled = _scale_up(self._mantissa, shift)
            if scaled is not None:
                return scaled
            # Upstream ignores the overflow: its short cuts give the low bits, its loop gives zero.
            wraps = shift in (1, 2, 3, 6, 9) and self._mantissa != _MIN_INT64
            return _wrapped(self._mantissa * 10**shift) if wraps else 0
        drop = scale - self._scale
        if drop <= 0:
            factor = 10**-drop if -drop < 19 else _MIN_INT64
            return _wrapped(_wrapped(self._mantissa) * factor)
        if self._mantissa < _MAX_INT64 and drop < 19:
            # Upstream truncates towards zero and then adds one, for negative values too.
            return _wrapped(_truncated(_wrapped(self._mantissa), 10**drop))
        whole, rest = divmod(self._mantissa, _power(drop))
        return _wrapped(whole + (1 if rest else 0))

    def as_int64(self) -> int | None:
        """The value if Go's AsInt64 gives one: a small form without fraction digits that fits; else None."""
        if self._big or self._scale < 0:
            return None
        return _scale_up(self._mantissa, self._scale)

    def approximate_float(self) -> float:
        """The value as a float: mantissa times power of ten, each rounded (AsApproximateFloat64)."""
        try:
            base = float(self._mantissa)
        except OverflowError:
            base = float("inf") if self._mantissa > 0 else float("-inf")
        if self._scale == 0:
            return base
        if self._scale < -323:
            return base * 0.0
        if self._scale > 308:
            return base * float("inf")
        return base * _POWERS[self._scale]

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1: how the values compare, exactly."""
        if self._scale == other._scale:
            return (self._mantissa > other._mantissa) - (self._mantissa < other._mantissa)
        if self.sign != other.sign:
            return (self.sign > other.sign) - (self.sign < other.sign)
        if self.sign == 0:
            return 0
        # Magnitudes first: no power of ten is made of an absurd exponent.
        mine = _digits(self._mantissa) + self._scale
        theirs = _digits(other._mantissa) + other._scale
        if mine != theirs:
            return self.sign if mine > theirs else -self.sign
        low = min(self._scale, other._scale)
        left: int = self._mantissa * 10 ** (self._scale - low)
        right: int = other._mantissa * 10 ** (other._scale - low)
        return (left > right) - (left < right)

    def same_struct(self, other: Quantity) -> bool:
        """Whether Go's == on the structs holds: form, digits, format and remembered text; never for big decimals."""
        return (
            not self._big
            and not other._big
            and self._mantissa == other._mantissa
            and self._scale == other._scale
            and self._format is other._format
            and self._kept == other._kept
        )

    # --- arithmetic --------------------------------------------------------------------------------------------------

    def add(self, other: Quantity) -> Quantity:
        """The exact sum; a zero takes the other's format (Quantity.Add)."""
        return self._plus(other, other._mantissa)

    def sub(self, other: Quantity) -> Quantity:
        """The exact difference; a zero takes the other's format (Quantity.Sub)."""
        return self._plus(other, -other._mantissa)

    def _plus(self, other: Quantity, addend: int) -> Quantity:
        form = other._format if self._mantissa == 0 else self._format
        if not self._big and not other._big:
            # Upstream's negation of the smallest 64-bit number gives itself.
            total = _add_small(self._mantissa, self._scale, _wrapped(addend), other._scale)
            if total is not None:
                return Quantity(total[0], total[1], False, form)
        low = min(self._scale, other._scale)
        total_mantissa = _shifted(self._mantissa, self._scale - low) + _shifted(addend, other._scale - low)
        return Quantity(total_mantissa, low, True, form)

    def neg(self) -> Quantity:
        """The value with the other sign."""
        mantissa = -self._mantissa if self._big else _wrapped(-self._mantissa)
        return Quantity(mantissa, self._scale, self._big, self._format)

    def as_big(self) -> Quantity:
        """The same value in the big form: what comparing with a big one makes of a small one upstream."""
        return self if self._big else Quantity(self._mantissa, self._scale, True, self._format, self._kept)

    def __add__(self, other: Quantity) -> Quantity:
        return self.add(other)

    def __sub__(self, other: Quantity) -> Quantity:
        return self.sub(other)

    def __neg__(self) -> Quantity:
        return self.neg()

    # --- as a Python value -------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __lt__(self, other: Quantity) -> bool:
        return self.compare(other) < 0

    def __le__(self, other: Quantity) -> bool:
        return self.compare(other) <= 0

    def __gt__(self, other: Quantity) -> bool:
        return self.compare(other) > 0

    def __ge__(self, other: Quantity) -> bool:
        return self.compare(other) >= 0

    def __bool__(self) -> bool:
        return self._mantissa != 0

    def __hash__(self) -> int:
        if self._key is None:
            mantissa, times = _without_factors(self._mantissa, 10)
            self._key = (mantissa, self._scale + times if mantissa else 0)
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __str__(self) -> str:
        """The text that Go writes: the text it was read from if it was canonical, else the canonical one."""
        if self._text is None:
            self._text = self._canonical()
        return self._text

    def canonical(self) -> str:
        """The canonical text in its format, also if another one was kept from parsing."""
        return self._canonical()

    def _canonical(self) -> str:
        if self._mantissa == 0:
            return "0"
        form = self._format
        if form is Format.BINARY_SI:
            kilo = Quantity(1024, 0, False, Format.DECIMAL_SI)
            whole = self._whole()
            if (self.compare(kilo.neg()) > 0 and self.compare(kilo) < 0) or whole is None:
                form = Format.DECIMAL_SI
            else:
                if whole == _MIN_INT64 and not self._big:
                    # Upstream cannot take the sign off this one and so leaves its factors in.
                    return str(whole)
                mantissa, times = _without_factors(whole, 1024)
                return f"{mantissa}{_BINARY_BY_EXPONENT.get(times * 10, '')}"
        mantissa, times = _without_factors(self._mantissa, 10)
        exponent = self._scale + times
        mantissa *= 10 ** (exponent % 3)
        exponent -= exponent % 3
        if form is Format.DECIMAL_SI:
            # A power beyond the last suffix loses it, as upstream.
            return f"{_text(mantissa)}{_DECIMAL_BY_EXPONENT.get(exponent, '')}"
        return _text(mantissa) if exponent == 0 else f"{_text(mantissa)}e{exponent}"

    def _whole(self) -> int | None:
        """The value as a whole number, None if it has a fraction."""
        if self._scale >= 0:
            return _shifted(self._mantissa, self._scale)
        if -self._scale > _digits(self._mantissa):
            return None
        whole, rest = divmod(self._mantissa, 10**-self._scale)
        return None if rest else whole


@lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity of an API object: surrounding space is dropped, as in JSON decoding. Remembered.

    Raises:
        QuantityError: with upstream's text.
    """
    # Go's TrimSpace drops what Python's strip does in the texts that can follow: anything else is an error anyway.
    return Quantity.parse(text.strip())


def _suffix(text: str) -> tuple[int, int, Format]:
    """Base, exponent and format of a suffix."""
    decimal = _DECIMAL_SUFFIXES.get(text)
    if decimal is not None:
        return 10, decimal, Format.DECIMAL_SI
    binary = _BINARY_SUFFIXES.get(text)
    if binary is not None:
        return 2, binary, Format.BINARY_SI
    exponent = _EXPONENT.fullmatch(text)
    if exponent is None or len(exponent[1]) > 4_000 or not _MIN_INT64 <= int(exponent[1]) <= _MAX_INT64:
        raise QuantityError(WRONG_SUFFIX)
    return 10, _wrapped32(int(exponent[1])), Format.DECIMAL_EXPONENT


def _parse_small(text: str, negative: bool, whole: str, fraction: str, exponent: int, form: Format) -> Quantity | None:
    """The 64-bit form, None if upstream would not choose it."""
    if form is Format.BINARY_SI:
        if fraction or 15 - len(whole) - int(exponent * 3 / 10) - 1 < 0:
            return None
        factor, scale = 1 << exponent, 0
    else:
        if len(whole) + len(fraction) > _SAFE_DIGITS:
            return None
        factor, scale = 1, _wrapped32(exponent - len(fraction))
    if scale < _NANO:
        return None
    digits = whole + fraction
    value = int(digits)
    result = value * factor
    if result > _MAX_INT64:
        return None
    if form is Format.BINARY_SI:
        canonical = value & 7 != 0
    else:
        canonical = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(-result if negative else result, scale, False, form, text if canonical else None)


def _parse_big(negative: bool, whole: str, fraction: str, base: int, exponent: int, form: Format) -> Quantity:
    """The big form: rounded up to nanos, binary ones capped at 64 bits."""
    if len(whole) + len(fraction) > _MAX_SHIFT:
        raise QuantityError(WRONG_NUMBER)
    digits = whole + fraction
    mantissa = _number(digits) if digits else 0
    scale = -len(fraction)
    if base == 10:
        scale = _wrapped32(scale + exponent)
    else:
        mantissa <<= exponent
    if mantissa:
        mantissa, scale = _rounded_to_nano(mantissa, scale)
    if form is Format.BINARY_SI:
        unit = 10**-scale if scale < 0 else 1
        if mantissa > _MAX_INT64 * unit:
            mantissa, scale = _MAX_INT64, 0
        elif 0 < mantissa < unit:
            form = Format.DECIMAL_SI
    return Quantity(-mantissa if negative else mantissa, scale, True, form)


def _rounded_to_nano(mantissa: int, scale: int) -> tuple[int, int]:
    """A positive number at exactly scale -9, rounded up."""
    drop = _NANO - scale
    if drop <= 0:
        return _shifted(mantissa, -drop), _NANO
    if drop > _digits(mantissa):
        return 1, _NANO
    return -(-mantissa // 10**drop), _NANO


def _add_small(left: int, left_scale: int, right: int, right_scale: int) -> tuple[int, int] | None:
    """The sum in 64 bits, None if it leaves them."""
    if right == 0:
        return left, left_scale
    if left == 0:
        return right, right_scale
    low = min(left_scale, right_scale)
    scaled_left = _scale_up(left, left_scale - low)
    scaled_right = _scale_up(right, right_scale - low)
    if scaled_left is None or scaled_right is None:
        return None
    total = scaled_left + scaled_right
    return (total, low) if _MIN_INT64 <= total <= _MAX_INT64 else None


def _scale_up(value: int, scale: int) -> int | None:
    """value * 10**scale, None if it leaves 64 bits."""
    if scale == 0 or value == 0:
        return value
    if scale > 19 or value == _MIN_INT64:
        return None
    result = int(value * 10**scale)
    return result if _MIN_INT64 <= result <= _MAX_INT64 else None


def _round_away(value: int, drop: int) -> int:
    """value / 10**drop, rounded away from zero."""
    if value == 0:
        return 0
    if drop > 20:
        return 1 if value > 0 else -1
    whole = int(-(-abs(value) // 10**drop))
    return whole if value > 0 else -whole


def _truncated(value: int, divisor: int) -> int:
    whole = abs(value) // divisor
    whole = whole if value >= 0 else -whole
    return whole + (1 if value % divisor else 0)


def _without_factors(value: int, factor: int) -> tuple[int, int]:
    """The value without its factors, and how many there were."""
    times = 0
    while value and value % factor == 0:
        value //= factor
        times += 1
    return value, times


def _shifted(mantissa: int, scale: int) -> int:
    """mantissa * 10**scale for scale >= 0; rounded away from zero for a negative one."""
    if mantissa == 0 or scale == 0:
        return mantissa
    if scale < 0:
        return -_round_up(-mantissa, -scale) if mantissa < 0 else _round_up(mantissa, -scale)
    return int(mantissa * _power(scale))


def _round_up(mantissa: int, drop: int) -> int:
    return 1 if drop > _digits(mantissa) else int(-(-mantissa // 10**drop))


def _power(scale: int) -> int:
    if scale > _MAX_SHIFT:
        raise QuantityError(f"a power of ten of {scale} is not supported")
    return int(10**scale)


def _digits(value: int) -> int:
    """How many decimal digits a number other than zero has, without making its text if it is long."""
    value = abs(value)
    if value < 10**18:
        return len(str(value))
    # 0.30103 = log10(2), from below; at most one step is missing.
    guess = (value.bit_length() - 1) * 30103 // 100000
    while value >= 10**guess:
        guess += 1
    return guess


def _number(digits: str) -> int:
    """int() without CPython's limit on long texts."""
    value = 0
    for start in range(0, len(digits), 4_000):
        part = digits[start : start + 4_000]
        value = value * 10 ** len(part) + int(part)
    return value


def _text(value: int) -> str:
    """str() without CPython's limit on long numbers."""
    if -(10**4_000) < value < 10**4_000:
        return str(value)
    sign, value = ("-", -value) if value < 0 else ("", value)
    parts = []
    while value:
        value, part = divmod(value, 10**4_000)
        parts.append(f"{part:04000d}" if value else str(part))
    return sign + "".join(reversed(parts))


def _wrapped(value: int) -> int:
    """The low 64 bits as a signed number."""
    return (value - _MIN_INT64) % 2**64 + _MIN_INT64


def _wrapped32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31
