"""What a step can do to the cluster that is being played. Implemented by earmark.simulation.player."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from earmark.simulation.expectation import Expectation
from earmark.simulation.scenario import Manifest


class StepRefused(Exception):
    """A step cannot be done: the scenario asks for what the cluster does not allow."""


@dataclass(frozen=True, slots=True)
class RequestMatch:
    """Which requests to the API a fault is for; None matches everything."""

    verb: str
    kind: str
    name: str | None = None
    subresource: str | None = None


class Stage(Protocol):
    """The cluster, as the timeline works on it."""

    async def apply(self, manifest: Manifest) -> None:
        """Create an object, or replace the spec (and the status where one is given) of the one that exists."""

    async def delete(self, kind: str, namespace: str, name: str) -> None:
        """Delete an object with its default grace period."""

    async def patch(self, kind: str, namespace: str, name: str, subresource: str, merge: Mapping[str, Any]) -> None:
        """Change an object by a JSON merge patch."""

    async def stop(self, service: str) -> None:
        """Kill a service; it loses its memory."""

    async def start(self, service: str) -> None:
        """Start a service that was stopped."""

    def fail(self, match: RequestMatch, times: int, status: int) -> None:
        """Let the API refuse the next matching requests of the services."""

    def delay(self, match: RequestMatch, seconds: float) -> None:
        """Let the API answer matching requests of the services later; 0 ends it."""

    async def hold(self, node: str) -> None:
        """Stop a node's kubelet."""

    async def release(self, node: str) -> None:
        """Let a node's kubelet go on."""

    async def attach(self, namespace: str, claim: str, condition: str, status: str, reason: str, message: str) -> None:
        """Set a condition on all devices of a claim, as its driver does."""

    async def expect(self, expectation: Expectation) -> None:
        """Wait until everything that is due has happened, then check."""
