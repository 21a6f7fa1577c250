"""Quantities: reading, writing, exact arithmetic, and what Go's representation shows."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earmark.kube.quantity import (
    WRONG_FORMAT,
    WRONG_NUMBER,
    WRONG_SUFFIX,
    Format,
    Quantity,
    QuantityError,
    parse_quantity,
)
from support.quantity_random import quantity_text


def _q(text: str) -> Quantity:
    return Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1.5Gi", "1536Mi"),
        ("1e9", "1e9"),
        ("1610612736", "1610612736"),
        ("8192Mi", "8Gi"),
        ("0.5Ki", "512"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0", "0"),
        ("-", "0"),
        ("Mi", "0"),
        (".5", "500m"),
        ("+5", "+5"),
        ("1.0000000001", "1000000001n"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("100000Ei", "9223372036854775807"),
        ("1000E", "1"),
    ],
)
def test_a_quantity_is_written_as_go_writes_it(text: str, canonical: str) -> None:
    assert str(_q(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [("", WRONG_FORMAT), ("1,3G", WRONG_FORMAT), ("٣", WRONG_FORMAT), (" 1", WRONG_FORMAT), ("200K", WRONG_SUFFIX),
     ("1e3Gi", WRONG_FORMAT), ("1ki", WRONG_SUFFIX), (".e-20", WRONG_NUMBER)],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_upstreams_text(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as raised:
        _q(text)
    assert str(raised.value) == message


def test_space_around_a_quantity_of_an_object_is_dropped() -> None:
    assert parse_quantity(" 1Gi ") == _q("1Gi")


def test_values_of_different_formats_are_equal_and_hash_alike() -> None:
    assert _q("1Gi") == _q("1073741824") == _q("1024Mi")
    assert hash(_q("1Gi")) == hash(_q("1073741824"))
    assert len({_q("1"), _q("1000m"), _q("1e0")}) == 1


def test_structs_are_the_same_only_with_the_same_format_and_form() -> None:
    assert _q("8Gi").same_struct(_q("8192Mi"))
    assert not _q("8Gi").same_struct(_q("8589934592"))
    assert not _q("0.5Ki").same_struct(_q("0.5Ki"))


def test_a_struct_stays_the_same_after_it_was_written() -> None:
    one, other = _q("8192Mi"), _q("8192Mi")
    str(one)
    assert one.same_struct(other)


def test_sums_keep_the_first_format_unless_it_is_zero() -> None:
    assert str(_q("1Gi") + _q("1")) == "1073741825"
    assert (_q("1Gi") + _q("1")).format is Format.BINARY_SI
    assert str(_q("0") + _q("1Gi")) == "1Gi"
    assert str(_q("5G") - _q("1G")) == "4G"


def test_only_a_whole_small_form_is_an_integer() -> None:
    assert _q("50k").as_int64() == 50_000
    assert _q("2.0").as_int64() is None
    assert _q("2000m").as_int64() is None
    assert _q("1.5Gi").as_int64() is None
    assert (_q("0.5") + _q("0.5")).as_int64() is None


def test_values_are_rounded_up() -> None:
    assert _q("1500m").value() == 2
    assert _q("-1500m").value() == -2
    assert _q("1u").milli_value() == 1
    assert _q("1500m").nano == 1_500_000_000


def test_absurd_exponents_do_not_take_time() -> None:
    assert _q("1e2000000000") > _q("1E")
    assert str(_q("1e-2000000000")) == "1e-9"
    with pytest.raises(QuantityError):
        _q("1e2000000000") + _q("1")


@given(st.integers(0, 2**32))
def test_arithmetic_and_order_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    try:
        left, right = _q(quantity_text(rng)), _q(quantity_text(rng))
    except QuantityError:
        return
    assert (left + right).nano == left.nano + right.nano
    assert (left - right).nano == left.nano - right.nano
    assert (left < right) == (left.nano < right.nano)
    assert (left == right) == (left.nano == right.nano)


@given(st.integers(0, 2**32))
def test_reading_back_gives_the_same_value_within_the_suffixes(seed: int) -> None:
    try:
        quantity = _q(quantity_text(random.Random(seed)))
    except QuantityError:
        return
    if abs(quantity.nano) < 10**29 or quantity.format is Format.DECIMAL_EXPONENT:
        assert _q(str(quantity)) == quantity
