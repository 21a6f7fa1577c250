"""Upstream's structured-parameters allocator, exactly: compile, solve, decode (docs/allocator.md).

What is allocated already comes from a ledger, what there is from an inventory. Which claims, nodes and ledgers to ask
about is decided elsewhere.
"""

from earmark.dynamicresources.allocator.answers import Outcome, Query
from earmark.dynamicresources.allocator.api import Allocator, Problem
from earmark.dynamicresources.allocator.errors import AllocationError
from earmark.dynamicresources.allocator.features import ALL_FEATURES, DEFAULT_FEATURES, UnsupportedFeatures
from earmark.dynamicresources.allocator.nodes import NodeFacts

__all__ = [
    "ALL_FEATURES",
    "DEFAULT_FEATURES",
    "AllocationError",
    "Allocator",
    "NodeFacts",
    "Outcome",
    "Problem",
    "Query",
    "UnsupportedFeatures",
]
