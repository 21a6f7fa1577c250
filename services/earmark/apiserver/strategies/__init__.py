"""The rules of the served kinds: one module a kind or family, and the table that says which kind has which."""

from __future__ import annotations

from earmark.apiserver.strategies.base import Strategy
from earmark.kube.resources import RESOURCES


def strategies() -> dict[str, Strategy]:
    """Return the strategy of every kind."""
    own: dict[str, type[Strategy]] = {}
    return {resource.kind: own.get(resource.kind, Strategy)(resource) for resource in RESOURCES}
