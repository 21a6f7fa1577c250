"""A small CEL that means what cel-go means in Kubernetes, down to error texts and costs.

The language, its libraries and quantities live here, and what a device is to a selector (devices); devices are
prepared and selectors evaluated elsewhere (earmark.dynamicresources.devicecel).
"""

from earmark.cel.environment import DEFAULT_COST_LIMIT, Environment, Outcome, Program
from earmark.cel.errors import CompileError

__all__ = ["DEFAULT_COST_LIMIT", "CompileError", "Environment", "Outcome", "Program"]
