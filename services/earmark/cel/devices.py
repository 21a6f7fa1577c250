"""What a device is to a selector: the variables of its expressions, and what such an expression must give.

The plugin compiles and evaluates selectors by it, the API refuses by it those that do not compile. Devices themselves
are prepared by who evaluates (earmark.dynamicresources.devicecel).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from earmark.cel.declarations import QUANTITY
from earmark.cel.environment import Environment
from earmark.cel.errors import CompileError
from earmark.cel.types import BOOL, DYN, STRING, Type, map_of, struct

DEVICE: Final = "kubernetes.DRADevice"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The environment of selectors: one variable, the device (upstream A5.6)."""
    fields = {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, DYN)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    return Environment({"device": struct(DEVICE)}, {DEVICE: fields})


def refusal(output: Type) -> str | None:
    """Why an expression with this output type cannot be a selector: it must be able to give a bool."""
    if output.kind in ("bool", "dyn"):
        return None
    return f"must evaluate to bool or the unknown type, not {output.full_name}"


@lru_cache(maxsize=4096)
def selector_problem(expression: str) -> str:
    """Why a selector does not compile, in the words of upstream's admission; "" if it does."""
    try:
        environment().compile(expression, refusal)
    except CompileError as error:
        return str(error)
    return ""
