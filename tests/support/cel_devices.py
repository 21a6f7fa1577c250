"""Devices of selector tests, and what a selector gives for one in the form of the golden file."""

from __future__ import annotations

from typing import Any

import msgspec

from earmark.dynamicresources.devicecel import (
    PreparedDevice,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
    prepare_device,
)
from earmark.kube.objects import Device

HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional "
    "fields"
)


def prepared(description: dict[str, Any]) -> PreparedDevice:
    """A device given as {"driver", "attributes", "capacity", ...}."""
    fields = {name: value for name, value in description.items() if name != "driver"}
    return prepare_device(description["driver"], msgspec.convert({"name": "d", **fields}, Device))


def outcome(selector: str, device: PreparedDevice) -> tuple[Any, int | None]:
    """What a selector gives, and its cost: true or false, {"compile": text} or {"runtime": text without hint}."""
    try:
        compiled = compile_selector(selector)
    except SelectorCompileError as error:
        return {"compile": str(error).split("\n")[0]}, None
    cost = None if device.error is not None else compiled.evaluate(device).cost
    try:
        return compiled.matches(device), cost
    except SelectorRuntimeError as error:
        return {"runtime": str(error).removesuffix(HINT)}, cost
