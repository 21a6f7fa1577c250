"""Device selectors: conversion of devices, hints, what an expression reads, and that devices can be shared."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.devicecel import SelectorCompileError, SelectorRuntimeError, compile_selector
from support.cel_devices import HINT, prepared

_DEVICE = prepared(
    {
        "driver": "gpu.example.com",
        "attributes": {"model": {"string": "A100"}, "other.example.com/rack": {"int": 7}},
        "capacity": {"memory": {"value": "80Gi"}},
    }
)


def test_names_without_a_domain_are_filed_under_the_driver() -> None:
    assert compile_selector('device.attributes["gpu.example.com"].model == "A100"').matches(_DEVICE)
    assert compile_selector('device.attributes["other.example.com"].rack == 7').matches(_DEVICE)


def test_a_missing_key_comes_with_a_hint() -> None:
    with pytest.raises(SelectorRuntimeError) as raised:
        compile_selector('device.attributes["gpu.example.com"].nope').matches(_DEVICE)
    assert str(raised.value) == "no such key: nope" + HINT


def test_a_device_that_cannot_be_converted_fails_every_evaluation() -> None:
    device = prepared({"driver": "d", "attributes": {"v": {"version": "1.0"}}})
    with pytest.raises(SelectorRuntimeError, match="attribute v: parse semantic version: No Major"):
        compile_selector("true").matches(device)
    with pytest.raises(SelectorRuntimeError, match="attribute x: unsupported attribute value"):
        compile_selector("true").matches(prepared({"driver": "d", "attributes": {"x": {}}}))


def test_a_selector_must_be_able_to_give_a_bool() -> None:
    with pytest.raises(SelectorCompileError, match="must evaluate to bool or the unknown type, not int"):
        compile_selector("1")


def test_a_selector_longer_than_the_api_allows_is_refused() -> None:
    with pytest.raises(SelectorCompileError, match="longer than 10240 bytes"):
        compile_selector("true" + " " * 10_240)


def test_a_selector_is_compiled_once() -> None:
    assert compile_selector("1 == 1") is compile_selector("1 == 1")


@pytest.mark.parametrize(
    ("selector", "reads"),
    [
        ("true", set()),
        ('device.attributes["a"].b == 1', {("attribute", "a", "b")}),
        ('has(device.attributes["a"].b) && device.attributes["a"]["c"]', {("attribute", "a", "b"), ("attribute", "a", "c")}),
        ('device.attributes["a"].?b.orValue(1) == 1', {("attribute", "a", "b")}),
        ('device.capacity["a"].b.isInteger()', {("capacity", "a", "b")}),
        ('device.driver == "x" || device.allowMultipleAllocations', {("driver", "", ""), ("allowMultipleAllocations", "", "")}),
        ('device.attributes[device.driver].b == 1', None),
        ('cel.bind(d, device.attributes["a"], d.b == 1)', None),
        ('device.attributes.exists(d, d == "a")', None),
    ],
)  # fmt: skip
def test_what_a_selector_reads_is_known(selector: str, reads: set[tuple[str, str, str]] | None) -> None:
    assert compile_selector(selector).reads() == reads


def test_comparing_with_a_big_quantity_changes_the_form_within_one_evaluation_only() -> None:
    memory = 'device.capacity["gpu.example.com"].memory'
    changing = compile_selector(f'{memory}.isGreaterThan(quantity("0.5Ki")) && {memory}.isInteger()')
    plain = compile_selector(f"{memory}.isInteger()")
    comparing = compile_selector(f'{memory}.isGreaterThan(quantity("0.5Ki"))')
    assert plain.matches(_DEVICE)
    assert not changing.matches(_DEVICE)
    wrapping = compile_selector(f"{memory}.sub(-9223372036854775807 - 1).isLessThan(quantity('0'))")
    assert comparing.matches(_DEVICE)
    assert plain.matches(_DEVICE)
    assert wrapping.matches(_DEVICE)
