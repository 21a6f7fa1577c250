"""What tools say of selectors: the JSON lines protocol and the reasons why a device does not match."""

from __future__ import annotations

import json

import msgspec
import pytest

from earmark.dynamicresources.celcheck import answer, explain, readable
from earmark.dynamicresources.devicecel import SelectorCompileError
from earmark.kube.objects import ResourceSlice

_SLICE = msgspec.convert(
    {
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p"},
            "devices": [
                {"name": "a", "attributes": {"model": {"string": "A100"}, "index": {"int": 1}}},
                {"name": "b", "attributes": {"model": {"string": "H100"}, "index": {"int": 2}}},
                {"name": "c", "attributes": {"index": {"int": 3}}},
            ],
        }
    },
    ResourceSlice,
)
_MODEL = 'device.attributes["gpu.example.com"].model == "A100"'
_INDEX = 'device.attributes["gpu.example.com"].index < 3'


def _answer(expression: str) -> dict[str, object]:
    device = {"driver": "d", "attributes": {"x": {"int": 1}}, "capacity": {"m": {"value": "1Gi"}}}
    found: dict[str, object] = json.loads(answer(json.dumps({"expression": expression, "device": device})))
    return found


def test_a_line_is_answered_with_result_and_cost() -> None:
    assert _answer('device.attributes["d"].x == 1') == {"expect": {"result": True}, "cost": 5}


def test_errors_are_told_apart() -> None:
    assert "compile_error" in str(_answer("1 +"))
    assert "no such key: y" in str(_answer('device.attributes["d"].y == 1'))
    assert "input_error" in json.loads(answer("{"))["expect"]
    assert "input_error" in json.loads(answer('{"expression": "true", "device": {"attributes": 3}}'))["expect"]


def test_matching_devices_and_the_parts_to_blame_are_shown() -> None:
    found = {one.device: one for one in explain(f"({_MODEL}) && {_INDEX}", [_SLICE])}
    assert found["a"].matches
    assert [part.outcome for part in found["b"].part.parts] == ["false", "true"]
    assert [part.outcome for part in found["c"].part.parts] == ["error", "false"]
    assert found["c"].part.parts[0].error.startswith("no such key: model. consider using")
    assert list(readable(found["b"].part)) == [
        f"false: ({_MODEL}) && {_INDEX}",
        f"  false: {_MODEL}",
        f"  true: {_INDEX}",
    ]


def test_an_or_and_a_not_are_taken_apart_too() -> None:
    (first, *_) = explain(f'!({_MODEL}) || device.driver == "a && b"', [_SLICE])
    assert [part.text for part in first.part.parts] == [f"!({_MODEL})", 'device.driver == "a && b"']
    assert first.part.parts[0].parts[0].outcome == "true"


def test_an_expression_that_does_not_compile_is_an_error() -> None:
    with pytest.raises(SelectorCompileError):
        list(explain("nope", [_SLICE]))
